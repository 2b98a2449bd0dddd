/* SPDX-License-Identifier: Apache-2.0 */
/* One walk for several consumers: each sees every event once, in order, until it has enough. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/replay/driver_state.h"
#include "tests/unit/fixtures/recording_maker.h"

enum { BLOCKS = 2000 };

struct seen { size_t most, count, framework; uint64_t last_seq; };

static bool take(void *state, const struct sweep_row *row)
{
	struct seen *seen = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];

		assert_true(event->seq > seen->last_seq);
		assert_int_equal(row->is_framework[i], event->kind == CUF_KIND_FRAMEWORK);
		seen->last_seq = event->seq;
		seen->framework += row->is_framework[i];
		seen->count++;
	}
	return seen->count < seen->most;
}

/* A block of the driver and one of a framework in turn, and what the driver has free now and then. */
static struct maker *make(void)
{
	static const struct maker_plan plan = { 512, 4096, 16, 4096, 4096, 4096,
					        256, 64,   32, 512,  4096 };
	struct maker *maker = maker_new(&plan);

	maker_device(maker, 0, 8 * GiB);
	for (unsigned i = 0; i < BLOCKS; i++) {
		uint64_t addr = 0x700000000000 + i * 4 * MiB;

		maker_alloc(maker, addr, MiB, 1);
		maker_block(maker, 0, addr, MiB, 2);
		if (i % 300 == 0)
			maker_event(maker, (struct cuf_event){ .op = CUF_OP_FREE_MEMORY,
							       .bytes = 8 * GiB - (i + 1) * 2 * MiB,
							       .aux = 8 * GiB });
	}
	return maker;
}

static struct reader *open_made(const struct maker *maker)
{
	struct reader *reader;

	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &reader, NULL), 0);
	return reader;
}

static void test_sweep__each_sees_all_events_once_until_it_has_enough(void **state)
{
	struct maker *maker = make();
	struct reader *reader = open_made(maker);
	struct events *events = events_new(reader, NULL);
	size_t all = events->count + events->framework->count;
	struct seen seen[3] = { { .most = SIZE_MAX }, { .most = 1 }, { .most = 100 } };
	struct sweep_consumer consumers[4] = { { take, &seen[0] }, { take, &seen[1] },
					       { NULL, NULL }, { take, &seen[2] } };
	(void)state;
	sweep_events(events, consumers, 4);
	assert_int_equal(seen[0].count, all);
	assert_int_equal(seen[0].framework, BLOCKS);
	assert_int_equal(seen[1].count, SWEEP_ROW);
	assert_int_equal(seen[2].count, 2 * SWEEP_ROW);
	assert_int_equal(reader->sweeps[CUF_SEC_RING].decoded, events->count);
	sweep_events(events, &consumers[2], 1);
	assert_int_equal(reader->sweeps[CUF_SEC_RING].decoded, events->count);
	events_free(events);
	reader_close(reader);
	maker_free_all(maker);
}

struct heard { uint64_t last_seq; size_t count, framework, out_of_order, ends, forgotten; };

static void hear(void *state, const struct cuf_event *event, bool is_framework)
{
	struct heard *heard = state;

	assert_int_equal(is_framework, event->kind == CUF_KIND_FRAMEWORK);
	heard->out_of_order += event->seq <= heard->last_seq;
	heard->last_seq = event->seq;
	heard->framework += is_framework;
	heard->count++;
}

static void hear_end(void *state) { ((struct heard *)state)->ends++; }

static void forget(void *state)
{
	*(struct heard *)state = (struct heard){ .forgotten = 1 };
}

static struct heard hear_all(const struct maker *maker)
{
	struct heard heard = { 0 };
	struct reader *reader = open_made(maker);

	events_free(events_new(reader, &(struct events_listener){ hear, hear_end, forget,
								    &heard }));
	reader_close(reader);
	return heard;
}

/* A lane that does not ascend shows only at the end: then all are heard again, in order. */
static void test_events__each_is_heard_once_in_order(void **state)
{
	struct maker *maker = make();
	struct cuf_event *events = (void *)((uint8_t *)maker_section(maker, CUF_SEC_RING) +
					    sizeof(struct cuf_segment));
	struct heard heard = hear_all(maker), again;
	uint64_t seq = events[5].seq;
	(void)state;
	assert_int_equal(heard.framework, BLOCKS);
	assert_true(heard.count > 2 * BLOCKS);
	assert_int_equal(heard.out_of_order, 0);
	assert_int_equal(heard.ends, 1);
	assert_int_equal(heard.forgotten, 0);
	events[5].seq = events[6].seq;
	events[6].seq = seq;
	again = hear_all(maker);
	assert_int_equal(again.forgotten, 1);
	assert_int_equal(again.ends, 1);
	assert_int_equal(again.count, heard.count);
	assert_int_equal(again.out_of_order, 0);
	maker_free_all(maker);
}

/* What was free after event i as the next report tells it, if that is soon and less changed until
 * then than `since`. */
static uint64_t told_later(const struct events *events, size_t i, uint64_t since)
{
	uint64_t until = 0;

	for (size_t k = i + 1; k < events->count && k <= i + 64 && until < since; k++) {
		struct cuf_event event = events_get(events, k);
		if (event.op == CUF_OP_FREE_MEMORY)
			return event.bytes + until;
		until += event.bytes;
	}
	return CUF_UNKNOWN;
}

/* The driver's nearest word, less what was allocated in between. A moment that was expected needs no
 * event again. */
static void test_driver_history__every_moment_is_that_of_a_walk_from_the_start(void **state)
{
	struct maker *maker = make();
	struct reader *reader = open_made(maker);
	struct events *events = events_new(reader, NULL);
	uint64_t expected[2] = { events_seq(events, 0), events_seq(events, events->count / 2) };
	struct driver_history *history = driver_history_new(events, expected, 2);
	struct sweep_consumer consumer = driver_history_consumer(history);
	uint64_t said = CUF_UNKNOWN, since = 0, later, before, read;
	(void)state;
	sweep_events(events, &consumer, 1);
	before = reader->sweeps[CUF_SEC_RING].decoded;
	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		struct driver_state levels;

		if (event.op == CUF_OP_FREE_MEMORY) {
			said = event.bytes;
			since = 0;
		} else {
			since += event.bytes;
		}
		read = reader->sweeps[CUF_SEC_RING].decoded;
		driver_state_at(history, 0, event.seq, DRIVER_NEAREST, &levels);
		if (event.seq == expected[0] || event.seq == expected[1])
			assert_int_equal(reader->sweeps[CUF_SEC_RING].decoded, read);
		assert_int_equal(levels.total_bytes, 8 * GiB);
		later = told_later(events, i, since);
		if (said != CUF_UNKNOWN)
			assert_int_equal(levels.free_bytes,
					 later == CUF_UNKNOWN ? said - since : later);
	}
	/* a question reads few events */
	assert_true(reader->sweeps[CUF_SEC_RING].decoded - before < 160 * events->count);
	driver_history_free(history);
	events_free(events);
	reader_close(reader);
	maker_free_all(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sweep__each_sees_all_events_once_until_it_has_enough),
		cmocka_unit_test(test_events__each_is_heard_once_in_order),
		cmocka_unit_test(test_driver_history__every_moment_is_that_of_a_walk_from_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
