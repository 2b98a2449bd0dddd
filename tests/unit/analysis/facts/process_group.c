/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks of one run: which failed first, which were ended by it, which holds more than the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)
#define BASE 0x700000000000ull
#define SECOND 1000000000ull

static char directory[64];

static int make_directory(void **state)
{
	strcpy(directory, "/tmp/cuflight-crowd-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	DIR *dir = opendir(directory);
	char path[512];
	for (struct dirent *entry; (entry = readdir(dir));) {
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		unlink(path);
	}
	closedir(dir);
	return rmdir(directory);
}

/* A rank on a device of its own that holds so many bytes; it has lived for 10 s. */
static struct maker *rank(unsigned number, uint64_t bytes)
{
	struct maker *m = maker_new(&maker_small);
	char text[32];
	m->h->pid = 100 + number;
	m->h->ppid = 99;
	snprintf(text, sizeof text, "RANK=%u", number);
	maker_meta(m, CUF_META_ENV, 0, text);
	maker_meta(m, CUF_META_EXE, 0, "/usr/bin/python3");
	maker_device(m, number, TOTAL);
	((struct cuf_device *)maker_section(m, CUF_SEC_DEVICES))[number].uuid[0] =
		(uint8_t)(number + 1);
	maker_stack(m, 1, 0x401000, 2);
	maker_born(m, CUF_KIND_DEVICE, number, BASE, bytes, 1, 0, 0);
	maker_sample(m);
	m->now_ns += 10 * SECOND;
	maker_sample(m);
	return m;
}

static void keep(struct maker *m)
{
	char path[128];
	snprintf(path, sizeof path, "%s/%u.cuf", directory, m->h->pid);
	maker_write(m, path);
	maker_free_all(m);
}

static struct facts *report(void)
{
	struct facts *facts;
	assert_int_equal(facts_build(directory, NULL, &facts, NULL), 0);
	return facts;
}

static const struct fact_process *process(const struct facts *facts, uint32_t pid)
{
	for (size_t i = 0; i < facts->process_count; i++)
		if (facts->processes[i].pid == pid)
			return &facts->processes[i];
	fail_msg("no process %u", pid);
	return NULL;
}

static void fails(struct maker *m, unsigned device, uint64_t after_ns)
{
	m->now_ns += after_ns;
	maker_fail(m, device, 9 * GiB, GiB, TOTAL, 1);
	maker_end(m, CUF_END_ABORT, 6);
}

static void test_crowd__one_leader_and_its_victims(void **state)
{
	struct maker *launcher = maker_new(&maker_small), *m[4];
	struct facts *facts;
	launcher->h->pid = 99;
	launcher->h->ppid = 1;
	launcher->now_ns += 40 * SECOND;
	maker_end(launcher, CUF_END_EXIT, 1);
	for (unsigned i = 0; i < 4; i++)
		m[i] = rank(i, i == 2 ? 6 * GiB : 4 * GiB);
	fails(m[2], 2, SECOND);
	fails(m[1], 1, 2 * SECOND);
	m[0]->now_ns += 3 * SECOND;
	maker_end(m[0], CUF_END_ABORT, 6); /* NCCL's watchdog */
	m[3]->now_ns += 100 * SECOND;
	maker_end(m[3], CUF_END_EXIT, 1); /* too late to be blamed on it */
	keep(launcher);
	for (unsigned i = 0; i < 4; i++)
		keep(m[i]);
	facts = report();
	assert_int_equal(facts->processes[facts->group.leader].pid, 102);
	assert_int_equal(facts->group.failed_count, 2);
	assert_int_equal(facts->group.ended_count, 1);
	assert_int_equal(process(facts, 100)->ended_by, facts->group.leader);
	assert_int_equal(process(facts, 101)->ended_by, FACT_NONE);
	assert_int_equal(process(facts, 103)->ended_by, FACT_NONE);
	assert_int_equal(process(facts, 99)->ended_by, FACT_NONE);
	assert_string_equal(process(facts, 103)->rank, "3");
	assert_null(process(facts, 99)->rank);
	assert_int_equal(facts->group.peer_count, 4);
	assert_int_equal(facts->group.median_bytes, 4 * GiB);
	assert_int_equal(facts->processes[facts->group.outlier].pid, 102);
	/* one leader's answer: the report is about the first failure, not the last */
	assert_int_equal(facts->processes[facts->focus].pid, 102);
	assert_int_equal(facts->incidents[facts->fatal_incident - 1].pid, 102);
	facts_free(facts);
}

static void test_crowd__equal_ranks_have_no_outlier(void **state)
{
	struct facts *facts;
	for (unsigned i = 0; i < 4; i++) {
		struct maker *m = rank(i, 4 * GiB + i * MiB);
		maker_end(m, CUF_END_EXIT, 0);
		keep(m);
	}
	facts = report();
	assert_int_equal(facts->group.leader, FACT_NONE);
	assert_int_equal(facts->group.outlier, FACT_NONE);
	assert_int_equal(facts->group.failed_count, 0);
	assert_int_equal(facts->group.peer_count, 4);
	facts_free(facts);
}

static void test_crowd__two_have_no_middle(void **state)
{
	struct facts *facts;
	for (unsigned i = 0; i < 2; i++) {
		struct maker *m = rank(i, (i + 1) * 4 * GiB);
		maker_end(m, CUF_END_EXIT, 0);
		keep(m);
	}
	facts = report();
	assert_int_equal(facts->group.outlier, FACT_NONE);
	assert_int_equal(facts->group.median_bytes, CUF_UNKNOWN);
	facts_free(facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_crowd__one_leader_and_its_victims,
		                                make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_crowd__equal_ranks_have_no_outlier,
		                                make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_crowd__two_have_no_middle, make_directory,
		                                remove_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
