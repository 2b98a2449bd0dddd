/* SPDX-License-Identifier: Apache-2.0 */
/* A source that a thread reads ahead has the same steps as the source itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/growth/growth_ahead.h"

/* Steps 0, 1, 2, ... of which each read returns some. */
struct counting { uint64_t next, end; unsigned rewinds; };

static void rewind_counting(void *state)
{
	struct counting *counting = state;
	counting->next = 0;
	counting->rewinds++;
}

static size_t read_counting(void *state, struct growth_step *steps, size_t most)
{
	struct counting *counting = state;
	size_t count = 0;
	while (count < most && counting->next < counting->end) {
		steps[count++] = (struct growth_step){ .time_ns = counting->next++ };
		if (counting->next % 7 == 0)
			break; /* fewer than there is room for */
	}
	return count;
}

/* Reads on from step `from`, `most` at a time, until `until` or the end. */
static uint64_t read_on(const struct growth_source *source, uint64_t from, uint64_t until,
			size_t most)
{
	struct growth_step steps[200];
	uint64_t at = from;
	for (size_t count; at < until && (count = source->read(source->state, steps, most));)
		for (size_t i = 0; i < count; i++)
			assert_int_equal(steps[i].time_ns, at++);
	return at;
}

static void follow(uint64_t steps, size_t most)
{
	struct counting counting = { .end = steps };
	const struct growth_source source = { &counting, rewind_counting, read_counting,
					       NULL };
	struct growth_ahead *ahead = growth_ahead_begin(&source);
	const struct growth_source read = growth_ahead_source(ahead);
	struct growth_step none;
	read.rewind(read.state);
	/* the caller may leave off, and begin again */
	assert_true(read_on(&read, 0, steps / 2, most) >= steps / 2);
	for (unsigned pass = 0; pass < 2; pass++) {
		read.rewind(read.state);
		assert_int_equal(read_on(&read, 0, UINT64_MAX, most), steps);
		assert_int_equal(read.read(read.state, &none, 1), 0);
		assert_int_equal(read.read(read.state, &none, 1), 0);
	}
	growth_ahead_end(ahead);
	assert_int_equal(counting.rewinds, 3);
}

static void test_growth_ahead__the_same_steps_in_the_same_order(void **state)
{
	static const uint64_t lengths[] = { 0, 1, 6, 7, 8, 511, 512, 513, 100000 };
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		follow(lengths[i], 1);
		follow(lengths[i], 128);
		follow(lengths[i], 200);
	}
}

static void test_growth_ahead__ends_while_the_thread_waits_for_room(void **state)
{
	struct counting counting = { .end = 1000000 };
	const struct growth_source source = { &counting, rewind_counting, read_counting,
					       NULL };
	struct growth_ahead *ahead = growth_ahead_begin(&source);
	growth_ahead_end(ahead); /* nothing was read */
	ahead = growth_ahead_begin(&source);
	growth_ahead_source(ahead).rewind(ahead);
	growth_ahead_end(ahead);
	assert_true(counting.next < counting.end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth_ahead__the_same_steps_in_the_same_order),
		cmocka_unit_test(test_growth_ahead__ends_while_the_thread_waits_for_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
