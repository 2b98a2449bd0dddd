/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `cuflight top` over three ranks on two GPUs, and the keys that change them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/live/state.h"

#define MIB ((uint64_t)1 << 20)

static void add_site(struct pass *pass, const char *name, enum watch_memory memory, unsigned device,
		     uint64_t bytes, uint64_t first_ns)
{
	struct pass_site *site = &pass->sites[pass->site_count++];

	*site = (struct pass_site){ .memory = memory, .device = device, .bytes = bytes, .count = 1,
				    .slope_bytes_per_s = NAN, .first_ns = first_ns };
	snprintf(site->name, sizeof site->name, "%s", name);
}

/* Rank 0 and 1 are on GPU 0, rank 2 on GPU 1, where it grows. All are device 0 of their process. */
static struct top_frame three_ranks(void)
{
	struct top_frame frame = { .time_ns = 10000000000, .gpu_count = 2, .process_count = 3 };

	frame.processes = xalloc_zeroed(3, sizeof *frame.processes);
	for (unsigned gpu = 0; gpu < 2; gpu++) {
		frame.gpus[gpu].number = gpu;
		frame.gpus[gpu].uuid[0] = (uint8_t)(gpu + 1);
		frame.gpus[gpu].total_bytes = 1000 * MIB;
	}
	for (unsigned rank = 0; rank < 3; rank++) {
		struct top_process *process = &frame.processes[rank];
		struct pass *pass = xalloc_zeroed(1, sizeof *pass);

		snprintf(process->name, sizeof process->name, "train rank %u", rank);
		snprintf(process->program, sizeof process->program, "train");
		snprintf(process->rank, sizeof process->rank, "%u", rank);
		process->path = xalloc_string("rec/a.cuf");
		process->recording = xalloc_string("a.cuf");
		process->is_running = true;
		process->verdict = rank == 2 ? VERDICT_GROWING : VERDICT_STEADY;
		process->gpu_bytes = 10 * MIB;
		process->resident_bytes = 100 * MIB;
		process->pass = pass;
		pass->device_count = 1;
		pass->devices[0].uuid[0] = rank == 2 ? 2 : 1;
		add_site(pass, "load (a.py:1)", WATCH_DEVICE, 0, (100 + rank) * MIB, 9000000000);
		add_site(pass, "read (a.py:9)", WATCH_HOST, CUF_DEVICE_NONE, 50 * MIB, 1000000000);
	}
	frame.processes[2].pass->sites[0].slope_bytes_per_s = 7;
	frame.processes[2].pass->sites[0].is_judged = true;
	frame.processes[2].pass->sites[0].state = LIVE_GROWING;
	return frame;
}

static void test_rows__ranks_are_merged_and_parts_of_what_they_are_on(void **state)
{
	const struct rows_options options = { .gpu = ROWS_ALL_GPUS };
	struct top_frame frame = three_ranks();
	size_t count;
	struct site_row *rows = rows_of_sites(&frame, &options, &count);

	(void)state;
	assert_int_equal(count, 2);
	assert_string_equal(rows[0].site->name, "load (a.py:1)");
	assert_int_equal(rows[0].process_count, 3);
	assert_int_equal(rows[0].bytes, 303 * MIB);
	assert_int_equal(rows[0].whole_bytes, 2000 * MIB); /* two ranks share a GPU */
	assert_string_equal(rows[0].process->name, "train rank 2"); /* has most */
	assert_int_equal(rows[0].state, LIVE_GROWING);
	assert_true(rows[0].bytes_per_s == 7);
	assert_true(rows[0].age_s == 1);
	assert_int_equal(rows[1].bytes, 150 * MIB);
	assert_int_equal(rows[1].whole_bytes, 300 * MIB); /* resident of all three */
	free(rows);
	top_fini(&frame);
}

static void test_rows__gpu_filter_and_order_choose(void **state)
{
	struct rows_options options = { .gpu = 1 };
	struct top_frame frame = three_ranks();
	size_t count;
	struct site_row *rows = rows_of_sites(&frame, &options, &count);

	(void)state;
	assert_int_equal(count, 1);
	assert_int_equal(rows[0].bytes, 102 * MIB);
	free(rows);
	options = (struct rows_options){ .gpu = ROWS_ALL_GPUS, .is_split = true,
					 .order = ROWS_BY_AGE };
	rows = rows_of_sites(&frame, &options, &count);
	assert_int_equal(count, 6);
	assert_string_equal(rows[0].site->name, "read (a.py:9)"); /* older */
	free(rows);
	options.order = ROWS_BY_RATE;
	rows = rows_of_sites(&frame, &options, &count);
	assert_string_equal(rows[0].process->name, "train rank 2"); /* the unknown come last */
	free(rows);
	snprintf(options.filter, sizeof options.filter, "RANK 1");
	free(rows_of_sites(&frame, &options, &count));
	assert_int_equal(count, 2);
	snprintf(options.filter, sizeof options.filter, "growing");
	free(rows_of_sites(&frame, &options, &count));
	assert_int_equal(count, 1);
	top_fini(&frame);
}

static void test_rows__a_rank_that_grows_has_its_own_row_and_is_first(void **state)
{
	struct top_frame frame = three_ranks();
	size_t count;
	struct process_row *rows = rows_of_processes(&frame, false, &count);

	(void)state;
	assert_int_equal(count, 2);
	assert_string_equal(rows[0].process->name, "train rank 2");
	assert_int_equal(rows[0].process_count, 1);
	assert_int_equal(rows[1].process_count, 2);
	assert_int_equal(rows[1].gpu_bytes, 20 * MIB);
	free(rows);
	free(rows_of_processes(&frame, true, &count));
	assert_int_equal(count, 3);
	frame.processes[0].is_running = frame.processes[1].is_running = false;
	frame.processes[2].is_running = false;
	free(rows_of_sites(&frame, &(struct rows_options){ .gpu = ROWS_ALL_GPUS }, &count));
	assert_int_equal(count, 0); /* what has ended holds nothing */
	top_fini(&frame);
}

static void type(struct state *screen, const char *keys)
{
	for (char key[2] = ""; *keys; keys++) {
		*key = *keys;
		state_key(screen, key, 0);
	}
}

static void test_keys__the_selected_row_is_kept_in_another_frame(void **state)
{
	struct top_frame frame = three_ranks(), next = three_ranks();
	struct state screen;

	(void)state;
	state_init(&screen);
	screen.page = 10;
	state_set_frame(&screen, &frame);
	state_key(&screen, NULL, KEY_OF_DOWN);
	assert_string_equal(state_selected(&screen)->site->name, "read (a.py:9)");
	for (unsigned i = 0; i < 3; i++)
		next.processes[i].pass->sites[1].bytes = 900 * MIB; /* it is the largest now */
	state_set_frame(&screen, &next);
	assert_int_equal(screen.selected, 0);
	assert_string_equal(state_selected(&screen)->site->name, "read (a.py:9)");
	type(&screen, "p");
	next = three_ranks();
	state_set_frame(&screen, &next); /* freed, and not shown */
	assert_int_equal(state_selected(&screen)->bytes, 2700 * MIB);
	state_fini(&screen);
}

static void test_keys__filter_takes_letters_and_escape_restores_it(void **state)
{
	struct top_frame frame = three_ranks();
	struct state screen;

	(void)state;
	state_init(&screen);
	state_set_frame(&screen, &frame);
	type(&screen, "/load");
	assert_int_equal(screen.site_count, 1);
	state_key(&screen, "\xc3\xa9", 0);
	assert_int_equal(screen.site_count, 0);
	assert_null(state_selected(&screen));
	state_key(&screen, NULL, KEY_OF_BACKSPACE);
	assert_string_equal(screen.options.filter, "load");
	state_key(&screen, NULL, KEY_OF_ENTER);
	type(&screen, "/qq");
	assert_false(screen.is_over);
	state_key(&screen, NULL, KEY_OF_ESCAPE);
	assert_string_equal(screen.options.filter, "load");
	for (unsigned i = 0; i < 200; i++)
		type(&screen, i ? "x" : "/");
	assert_true(strlen(screen.options.filter) < FILTER_BYTES);
	state_key(&screen, NULL, KEY_OF_ESCAPE);
	state_key(&screen, NULL, KEY_OF_ENTER);
	assert_int_equal(screen.mode, MODE_STACK);
	type(&screen, "b"); /* of the table */
	assert_int_equal(screen.mode, MODE_STACK);
	type(&screen, "q");
	assert_false(screen.is_over);
	type(&screen, "q");
	assert_true(screen.is_over);
	state_fini(&screen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows__ranks_are_merged_and_parts_of_what_they_are_on),
		cmocka_unit_test(test_rows__gpu_filter_and_order_choose),
		cmocka_unit_test(test_rows__a_rank_that_grows_has_its_own_row_and_is_first),
		cmocka_unit_test(test_keys__the_selected_row_is_kept_in_another_frame),
		cmocka_unit_test(test_keys__filter_takes_letters_and_escape_restores_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
