/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a run is the same with one thread and with many, character by character. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/parallel.h"
#include "analysis/explain/facts_build.h"
#include "analysis/view/json/report_json.h"
#include "tests/unit/fixtures/recording_maker.h"

enum { PROCESSES = 9 };

static char directory[64];

static void path_of(char path[128], unsigned i)
{
	snprintf(path, 128, "%s/%u.cuf", directory, i);
}

/* Processes that share two devices, with leaks, host blocks, failures, and an end each. */
static void write_process(unsigned number)
{
	struct maker *m = maker_new(&maker_small);
	char path[128];

	m->h->pid = 100 + number;
	m->h->start_realtime_ns += number;
	for (unsigned device = 0; device < 2; device++)
		maker_device(m, device, 16 * GiB)->uuid[0] = (uint8_t)(1 + device);
	for (uint32_t stack = 1; stack <= 12; stack++)
		maker_stack(m, stack, 0x401000 + 0x100 * stack * (1 + number % 3), 3);
	for (uint64_t i = 0; i < 600; i++) {
		maker_born(m, CUF_KIND_DEVICE, i % 2, 0x700000000000ull + i * 3 * MiB,
			   MiB / 3 + 17 * number + i, 1 + (uint32_t)i % 11, 0, 0);
		maker_host_alloc(m, 0x10000 + i * 4096, 100 + i, 1 + (uint32_t)i % 12);
		if (i % 3 == 0)
			maker_freed(m, CUF_KIND_DEVICE, 0x700000000000ull + i * 3 * MiB);
		if (i % 150 == 100)
			maker_fail(m, i % 2, GiB + i, MiB, 16 * GiB, 3);
	}
	if (number % 2)
		maker_end(m, CUF_END_EXIT, number % 4 == 1);
	path_of(path, number);
	maker_write(m, path);
	maker_free_all(m);
}

static int make_run(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/cuflight-threads-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	for (unsigned i = 0; i < PROCESSES; i++)
		write_process(i);
	return 0;
}

static int remove_run(void **state)
{
	char path[128];
	(void)state;
	for (unsigned i = 0; i < PROCESSES; i++) {
		path_of(path, i);
		unlink(path);
	}
	return rmdir(directory);
}

static char *report(unsigned threads)
{
	const struct facts_options options = { .threads = threads };
	struct symbols *symbols = symbols_new(&(struct symbols_options){ .sysroot = "/nowhere" });
	struct facts *facts;
	struct frames *frames;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(facts_build(directory, &options, &facts, NULL), 0);
	frames = frames_new(facts, symbols);
	assert_true(report_json(out, facts, frames));
	fclose(out);
	frames_free(frames);
	facts_free(facts);
	symbols_free(symbols);
	return text;
}

static void test_report__does_not_depend_on_threads(void **state)
{
	static const unsigned counts[] = { 2, 3, 7, 16 };
	char *alone = report(1);
	(void)state;
	assert_non_null(strstr(alone, "\"incidents\""));
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		for (unsigned again = 0; again < 3; again++) {
			char *together = report(counts[i]);
			assert_string_equal(together, alone);
			free(together);
		}
	free(alone);
}

static void count_piece(void *context, size_t i)
{
	((unsigned *)context)[i]++;
}

static void test_pieces__are_done_once(void **state)
{
	unsigned done[1000];
	(void)state;
	for (unsigned threads = 0; threads < 40; threads += 5)
		for (size_t count = 0; count <= 1000; count += 333) {
			memset(done, 0, sizeof done);
			parallel_each(count, threads, count_piece, done);
			for (size_t i = 0; i < 1000; i++)
				assert_int_equal(done[i], i < count);
		}
	assert_true(parallel_threads(0) >= 1);
	assert_int_equal(parallel_threads(3), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report__does_not_depend_on_threads),
		cmocka_unit_test(test_pieces__are_done_once),
	};
	return cmocka_run_group_tests(tests, make_run, remove_run);
}
