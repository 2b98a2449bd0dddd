/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several recordings are one run: related processes, merged devices, other holders of memory, how
 * each ended.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)
#define BASE 0x700000000000ull

static char directory[64];

static int make_directory(void **state)
{
	strcpy(directory, "/tmp/cuflight-run-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	static const char *const names[] = { "a.cuf", "b.cuf", "b.2.cuf", "bad.cuf", "notes.txt",
		"0.cuf", "1.cuf", "2.cuf", "0.child.cuf", "1.child.cuf", "2.child.cuf" };
	char path[128];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "%s/%s", directory, names[i]);
		unlink(path);
	}
	return rmdir(directory);
}

static void keep(struct maker *m, const char *name)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%s", directory, name);
	maker_write(m, path);
	maker_free_all(m);
}

static struct maker *process(uint32_t pid, uint32_t ppid, uint64_t start_s)
{
	struct maker *m = maker_new(&maker_small);
	m->h->pid = pid;
	m->h->ppid = ppid;
	m->h->start_realtime_ns += start_s * 1000000000;
	maker_meta(m, CUF_META_HOSTNAME, 0, "node1");
	maker_device(m, 0, TOTAL);
	maker_stack(m, 1, 0x401000, 2);
	return m;
}

static uint64_t row(const struct fact_device *d, enum fact_owner kind, uint32_t pid)
{
	for (size_t i = 0; i < d->owner_count; i++)
		if (d->owners[i].kind == kind && (!pid || d->owners[i].pid == pid))
			return d->owners[i].bytes;
	return CUF_UNKNOWN;
}

static struct facts *report(void)
{
	struct facts *facts;
	struct reader_error error;
	assert_int_equal(facts_build(directory, NULL, &facts, &error), 0);
	return facts;
}

static void test_run__two_processes_on_one_device(void **state)
{
	struct maker *a = process(10, 1, 0), *b = process(20, 10, 1);
	struct facts *facts;
	const struct fact_device *d;
	uint64_t sum = 0;
	maker_alloc(a, BASE, 2 * GiB, 1);
	maker_sample(a);
	a->now_ns += 60000000000;
	maker_sample(a);
	maker_alloc(b, BASE, 3 * GiB + 1, 1);
	maker_free_memory(b, 0, 10 * GiB, TOTAL);
	maker_fail(b, 0, 12 * GiB, 10 * GiB, TOTAL, 1);
	maker_end(b, CUF_END_ABORT, 6);
	keep(a, "a.cuf");
	keep(b, "b.cuf");
	facts = report();
	assert_int_equal(facts->process_count, 2);
	assert_int_equal(facts->processes[1].parent, 0);
	assert_int_equal(facts->processes[0].parent, FACT_NONE);
	assert_int_equal(facts->device_count, 1);
	d = &facts->devices[0];
	assert_int_equal(facts->processes[facts->focus].pid, 20);
	assert_int_equal(row(d, OWNER_DEVICE, 20), 3 * GiB + 1);
	assert_int_equal(row(d, OWNER_OTHER_PROCESSES, 10), 2 * GiB);
	assert_int_equal(row(d, OWNER_FREE, 0), 10 * GiB);
	for (size_t i = 0; i < d->owner_count; i++)
		if (d->owners[i].in_sum && d->owners[i].bytes != CUF_UNKNOWN)
			sum += d->owners[i].bytes;
	assert_int_equal(sum, TOTAL);
	assert_int_equal(d->alloc_count, 2);
	assert_true(d->peak_bytes >= 3 * GiB + 1);
	facts_free(facts);
}

/* Memory shared by another recorded process is in the row of that process, and listed as an
 * import here. */
static void test_run__imported_memory_counts_for_its_exporter(void **state)
{
	struct maker *a = process(10, 1, 0), *b = process(20, 10, 1);
	struct facts *facts;
	const struct fact_device *d;
	maker_alloc(a, BASE, 1 * GiB, 1);
	maker_find(a, BASE)->flags |= CUF_EVENT_EXPORTED;
	maker_sample(a);
	a->now_ns += 60000000000;
	maker_sample(a);
	maker_alloc(b, BASE, 3 * GiB, 1);
	maker_born(b, CUF_KIND_IMPORTED, 0, BASE + 8 * GiB, 1 * GiB, 1, 0, 0);
	maker_fail(b, 0, 12 * GiB, 10 * GiB, TOTAL, 1);
	maker_end(b, CUF_END_ABORT, 6);
	keep(a, "a.cuf");
	keep(b, "b.cuf");
	facts = report();
	d = &facts->devices[0];
	assert_int_equal(row(d, OWNER_IMPORTED, 20), 1 * GiB);
	assert_int_equal(row(d, OWNER_OTHER_PROCESSES, 10), 1 * GiB);
	assert_int_equal(row(d, OWNER_UNEXPLAINED, 0), 2 * GiB);
	for (size_t i = 0; i < d->owner_count; i++)
		if (d->owners[i].kind == OWNER_IMPORTED)
			assert_false(d->owners[i].in_sum);
	facts_free(facts);
}

/* A process that ended before the moment holds nothing. */
static void test_run__who_has_ended_holds_nothing(void **state)
{
	struct maker *a = process(10, 1, 0), *b = process(20, 1, 100);
	struct facts *facts;
	maker_meta(a, CUF_META_ENV, 0, "CUFLIGHT_OPTIONS=start=5"); /* of one cuflight run */
	maker_meta(b, CUF_META_ENV, 0, "CUFLIGHT_OPTIONS=start=5");
	maker_alloc(a, BASE, 2 * GiB, 1);
	maker_end(a, CUF_END_EXIT, 0);
	maker_alloc(b, BASE, 3 * GiB, 1);
	maker_fail(b, 0, 14 * GiB, 13 * GiB, TOTAL, 1);
	maker_end(b, CUF_END_ABORT, 6);
	keep(a, "a.cuf");
	keep(b, "b.2.cuf"); /* what the recorder calls it when the name is taken */
	facts = report();
	assert_int_equal(facts->process_count, 2);
	assert_int_equal(row(&facts->devices[0], OWNER_DEVICE, 20), 3 * GiB);
	assert_int_equal(row(&facts->devices[0], OWNER_OTHER_PROCESSES, 10), CUF_UNKNOWN);
	facts_free(facts);
}

/* A pod that restarts: the same program, often with the same pid, when the last one is over. */
static void test_run__restarts_are_runs_of_their_own(void **state)
{
	static const struct facts_options first = { .run = 1 }, fourth = { .run = 4 };
	struct reader_error error = { 0 };
	struct facts *facts;

	for (unsigned i = 0; i < 3; i++) {
		struct maker *m = process(7, 0, 100 * i), *child = process(8, 7, 100 * i);
		char name[16];
		maker_meta(m, CUF_META_CMDLINE, 0, "server");
		maker_alloc(m, BASE, (i + 1) * GiB, 1);
		maker_end(m, CUF_END_EXIT, i);
		snprintf(name, sizeof name, "%u.cuf", i);
		keep(m, name);
		snprintf(name, sizeof name, "%u.child.cuf", i);
		keep(child, name);
	}
	facts = report(); /* the newest */
	assert_int_equal(facts->run_count, 3);
	assert_int_equal(facts->run_number, 3);
	assert_int_equal(facts->process_count, 2);
	assert_int_equal(facts->processes[0].end_status, 2);
	facts_free(facts);
	assert_int_equal(facts_build(directory, &first, &facts, &error), 0);
	assert_int_equal(facts->process_count, 2);
	assert_int_equal(facts->processes[0].end_status, 0);
	facts_free(facts);
	assert_int_equal(facts_build(directory, &fourth, &facts, &error), READER_E_NO_RUN);
}

static void test_run__different_uuids_are_different_devices(void **state)
{
	struct maker *a = process(10, 1, 0), *b = process(20, 1, 1);
	struct facts *facts;
	memset(((struct cuf_device *)maker_section(b, CUF_SEC_DEVICES))->uuid, 7, 16);
	maker_alloc(a, BASE, 2 * GiB, 1);
	maker_alloc(b, BASE, 3 * GiB, 1);
	keep(a, "a.cuf");
	keep(b, "b.cuf");
	facts = report();
	assert_int_equal(facts->device_count, 2);
	assert_int_equal(row(&facts->devices[0], OWNER_DEVICE, 10), 2 * GiB);
	assert_int_equal(row(&facts->devices[1], OWNER_DEVICE, 20), 3 * GiB);
	facts_free(facts);
}

static void test_run__an_exec_follows_its_recording(void **state)
{
	struct maker *a = process(10, 1, 0), *b = process(10, 1, 1);
	struct facts *facts;
	a->h->process_start_ticks = b->h->process_start_ticks = 777;
	maker_end(a, CUF_END_EXEC, 0);
	maker_end(b, CUF_END_EXIT, 0);
	keep(a, "a.cuf");
	keep(b, "b.cuf");
	facts = report();
	assert_int_equal(facts->processes[0].end, END_EXEC);
	assert_int_equal(facts->processes[1].exec_of, 0);
	facts_free(facts);
}

static void test_run__unreadable_recordings_are_told(void **state)
{
	struct maker *a = process(10, 1, 0), *bad = process(11, 1, 0);
	struct facts *facts;
	struct reader_error error;
	char path[128];
	bad->h->version = 99;
	keep(bad, "bad.cuf");
	assert_int_equal(facts_build(directory, NULL, &facts, &error), READER_E_VERSION);
	assert_null(facts);
	assert_non_null(strstr(error.path, "bad.cuf"));
	keep(a, "a.cuf");
	facts = report();
	assert_int_equal(facts->process_count, 1);
	assert_non_null(strstr(facts->coverage.blind[0].text,
	                       "bad.cuf is left out: written by a newer version of cuflight"));
	assert_false(facts->coverage.complete);
	facts_free(facts);
	snprintf(path, sizeof path, "%s/a.cuf", directory);
	unlink(path);
	snprintf(path, sizeof path, "%s/bad.cuf", directory);
	unlink(path);
	assert_int_equal(facts_build(directory, NULL, &facts, &error), READER_E_NONE_FOUND);
}

static struct facts *single(struct maker *m)
{
	struct facts *facts;
	keep(m, "a.cuf");
	assert_int_equal(facts_build(directory, NULL, &facts, NULL), 0);
	return facts;
}

static void test_ending__by_record_and_without(void **state)
{
	struct maker *m = process(10, 1, 0);
	struct facts *facts;
	maker_end(m, CUF_END_EXIT, 3);
	facts = single(m);
	assert_int_equal(facts->processes[0].end, END_EXIT);
	assert_int_equal(facts->processes[0].end_status, 3);
	facts_free(facts);

	m = process(10, 1, 0);
	maker_end(m, CUF_END_ABORT, 6);
	facts = single(m);
	assert_int_equal(facts->processes[0].end, END_SIGNAL);
	assert_int_equal(facts->processes[0].end_status, 6);
	facts_free(facts);

	m = process(10, 1, 0);
	maker_meta(m, CUF_META_LIMITS, 0, "memory.max=1000000000\nMemTotal=8000000000\n");
	maker_sample(m)->cgroup_bytes = 500000000;
	facts = single(m);
	assert_int_equal(facts->processes[0].end, END_KILLED);
	assert_int_equal(facts->processes[0].end_status, CUF_UNKNOWN);
	assert_int_equal(facts->processes[0].host.cgroup_max_bytes, 1000000000);
	assert_int_equal(facts->processes[0].host.memory_total_bytes, 8000000000);
	facts_free(facts);

	m = process(10, 1, 0);
	maker_meta(m, CUF_META_LIMITS, 0, "memory.max=1000000000\n");
	maker_sample(m)->cgroup_bytes = 960000000;
	facts = single(m);
	assert_int_equal(facts->processes[0].end, END_OOM_KILLED);
	assert_int_equal(facts->processes[0].end_basis, BASIS_INFERRED);
	facts_free(facts);
}

/* This very process, as the recorder would describe it, is running; with another start time the pid
 * was reused. */
static void test_ending__running_is_this_boots_pid_with_its_start(void **state)
{
	struct maker *m;
	struct facts *facts;
	unsigned long long ticks = 0;
	char text[1024] = "";
	struct stat namespace;
	FILE *f = fopen("/proc/self/stat", "r");
	assert_int_equal(stat("/proc/self/ns/pid", &namespace), 0);
	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	sscanf(strrchr(text, ')') + 1,
	       " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
	       &ticks);
	f = fopen("/proc/sys/kernel/random/boot_id", "r");
	assert_non_null(f);
	for (int reused = 0; reused < 2; reused++) {
		m = process((uint32_t)getpid(), 1, 0);
		m->h->process_start_ticks = ticks + (unsigned)reused;
		m->h->pid_namespace = (uint32_t)namespace.st_ino;
		rewind(f);
		for (unsigned i = 0; i < 16; i++) {
			unsigned byte;
			if (i == 4 || i == 6 || i == 8 || i == 10)
				fgetc(f);
			assert_int_equal(fscanf(f, "%2x", &byte), 1);
			m->h->boot_id[i] = (uint8_t)byte;
		}
		facts = single(m);
		assert_int_equal(facts->processes[0].end, reused ? END_KILLED : END_RUNNING);
		facts_free(facts);
	}
	fclose(f);
}

static void test_modules__by_address_and_time(void **state)
{
	struct maker *m = process(10, 1, 0);
	struct facts *facts;
	const struct fact_process *p;
	uint64_t first_ns, second_ns, third_ns;
	const struct fact_module *first, *second;
	maker_module(m, 1, 0x400000, 0x500000, "/lib/first.so");
	maker_meta(m, CUF_META_FUNCTION, 0x401010, "earlier");
	m->now_ns += 1000;
	first_ns = m->now_ns - MAKER_START_NS + MAKER_REALTIME_NS;
	m->now_ns += 1000;
	maker_meta(m, CUF_META_MODULE_END, 1, "");
	maker_module(m, 2, 0x400000, 0x480000, "/lib/second.so");
	m->now_ns += 1000;
	second_ns = m->now_ns - MAKER_START_NS + MAKER_REALTIME_NS;
	maker_meta(m, CUF_META_FUNCTION, 0x401010, "later");
	maker_meta(m, CUF_META_FUNCTION, 0x401000, "start+0x4");
	maker_meta(m, CUF_META_FUNCTION, 0x700000, "nowhere");
	m->now_ns += 1000;
	maker_meta(m, CUF_META_MODULE_END, 2, "");
	maker_meta(m, CUF_META_FUNCTION, 0x401020, "nobody's");
	maker_module(m, 1, 0x400000, 0x500000, "/lib/first.so"); /* the first one once more */
	m->now_ns += 1000;
	third_ns = m->now_ns - MAKER_START_NS + MAKER_REALTIME_NS;
	facts = single(m);
	p = &facts->processes[0];
	assert_string_equal(fact_module_at(p, 0x401000, first_ns)->path, "/lib/first.so");
	assert_string_equal(fact_module_at(p, 0x401000, second_ns)->path, "/lib/second.so");
	/* the only one that ever was there */
	assert_string_equal(fact_module_at(p, 0x490000, second_ns)->path, "/lib/first.so");
	assert_null(fact_module_at(p, 0x500000, second_ns));
	first = fact_module_at(p, 0x401000, first_ns);
	second = fact_module_at(p, 0x401000, second_ns);
	assert_string_equal(fact_function_at(p, 0x401000, second), "start+0x4");
	assert_string_equal(fact_function_at(p, 0x401010, second), "later");
	assert_null(fact_function_at(p, 0x401001, second));
	/* a name of the module that was there at another time is none */
	assert_null(fact_function_at(p, 0x401000, first));
	assert_string_equal(fact_function_at(p, 0x401010, first), "earlier");
	assert_string_equal(
		fact_function_at(p, 0x401010, fact_module_at(p, 0x401010, third_ns)), "earlier");
	assert_null(fact_function_at(p, 0x401010, NULL));
	assert_null(fact_function_at(p, 0x401020, second));
	assert_string_equal(fact_function_at(p, 0x700000, NULL), "nowhere");
	facts_free(facts);
}

int main(void)
{
#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)
	const struct CMUnitTest tests[] = {
		IN_DIRECTORY(test_run__two_processes_on_one_device),
		IN_DIRECTORY(test_run__imported_memory_counts_for_its_exporter),
		IN_DIRECTORY(test_run__who_has_ended_holds_nothing),
		IN_DIRECTORY(test_run__restarts_are_runs_of_their_own),
		IN_DIRECTORY(test_run__different_uuids_are_different_devices),
		IN_DIRECTORY(test_run__an_exec_follows_its_recording),
		IN_DIRECTORY(test_run__unreadable_recordings_are_told),
		IN_DIRECTORY(test_ending__by_record_and_without),
		IN_DIRECTORY(test_ending__running_is_this_boots_pid_with_its_start),
		IN_DIRECTORY(test_modules__by_address_and_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
