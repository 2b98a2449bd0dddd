/* SPDX-License-Identifier: Apache-2.0 */
/* The live set at any moment: undoing from the ledger, doing from nothing, and the ledger agree. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/replay/replay.h"
#include "tests/unit/fixtures/recording_maker.h"

static uint64_t random_state;
static uint64_t random_below(uint64_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % n;
}

/* A few hundred blocks of several kinds, freed, refused and allocated anew by several threads. */
static struct maker *random_recording(const struct maker_plan *plan, unsigned operations)
{
	static const unsigned kinds[] = { CUF_KIND_DEVICE, CUF_KIND_ASYNC,   CUF_KIND_PINNED,
		                          CUF_KIND_VMM,    CUF_KIND_MAPPING, CUF_KIND_FRAMEWORK };
	static bool live[6][100];
	struct maker *maker = maker_new(plan);
	memset(live, 0, sizeof live);
	random_state = 88172645463325252ull;
	for (unsigned i = 0; i < operations; i++) {
		unsigned k = (unsigned)random_below(6), n = (unsigned)random_below(100);
		uint64_t addr = 0x700000000000 + k * 4 * GiB + n * 4 * MiB;
		maker->thread = (uint32_t)random_below(MAKER_THREADS);
		if (kinds[k] == CUF_KIND_FRAMEWORK && !live[k][n])
			maker_block(maker, n % 3, addr, random_below(4 * MiB) + 1, 1 + n % 7);
		else if (kinds[k] == CUF_KIND_FRAMEWORK)
			maker_block_freed(maker, addr);
		else if (!live[k][n])
			maker_born(maker, kinds[k], n % 3, addr, random_below(4 * MiB) + 1,
			           1 + n % 7, n % 4, 0);
		else if (random_below(10))
			maker_freed(maker, kinds[k], addr);
		else {
			maker_refused_free(maker, kinds[k], addr);
			continue;
		}
		live[k][n] = !live[k][n];
	}
	return maker;
}

static void assert_same(const struct liveset *a, const struct liveset *b)
{
	size_t at = 0;
	assert_int_equal(a->count, b->count);
	for (const struct cuf_block *x; (x = liveset_next(a, &at));) {
		const struct cuf_block *y = liveset_find(b, x->key);
		assert_non_null(y);
		assert_int_equal(x->bytes, y->bytes);
		assert_int_equal(x->aux, y->aux);
		assert_int_equal(x->kind, y->kind);
		assert_int_equal(x->device, y->device);
		assert_int_equal(x->stack, y->stack);
	}
}

/* The other direction, as a judge of replay: what an event does to the live set. */
static void apply(struct liveset *live, const struct cuf_event *event)
{
	struct cuf_block block = {
	        .key = cuf_key(cuf_kind_space(event->kind), event->addr),
	        .bytes = event->bytes,
	        .aux = event->aux,
	        .stack = event->op == CUF_OP_ALLOC ? event->stack : event->alloc_stack,
	        .kind = event->kind,
	        .device = event->device,
	};
	if (event->kind && (event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE))
		liveset_put(live, &block);
	else if (event->kind && event->op == CUF_OP_FREE)
		liveset_take(live, block.key, NULL);
}

static void replay_at(struct reader *r, struct events *e, uint64_t seq, struct liveset *live,
		      struct replay_exact *exact)
{
	struct crossings *moments = crossings_new(e, &seq, 1);
	struct sweep_consumer consumer = crossings_consumer(moments);
	sweep_events(e, &consumer, 1);
	replay_ledger(r, live, exact);
	replay_back(e, moments, CUF_UNKNOWN, seq, live, exact);
	crossings_free(moments);
}

static void test_replay__forward_is_backward_is_ledger(void **state)
{
	struct maker *maker = random_recording(&maker_small, 2500);
	struct liveset forward, backward, ledger;
	struct event_merge merge;
	struct cuf_event event;
	struct reader *r;
	struct events *e;
	struct replay_exact exact;
	bool due = false;
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	assert_int_equal(e->count + e->framework->count, maker->h->next_seq);
	assert_int_equal(e->complete_since, 0);
	assert_int_equal(e->framework->complete_since, 0);
	liveset_init(&forward, 0);
	event_merge_begin(&merge, e, 0);
	for (size_t i = 0; event_merge_next(&merge, &event); i++) {
		assert_int_equal(event.seq, i + 1);
		apply(&forward, &event);
		due |= i % 97 == 0;
		/* a free that fails is undone by the next event, and ended nothing */
		if ((due && event.op != CUF_OP_FREE) || i + 1 == maker->h->next_seq) {
			due = false;
			replay_at(r, e, event.seq, &backward, &exact);
			assert_true(exact.device && exact.framework);
			assert_same(&forward, &backward);
			liveset_fini(&backward);
		}
	}
	assert_int_equal(event.seq, maker->h->next_seq);
	replay_now(r, &ledger);
	assert_true(ledger.count > 100);
	assert_same(&forward, &ledger);
	replay_at(r, e, 0, &backward, &exact);
	assert_int_equal(backward.count, 0);
	liveset_fini(&backward);
	liveset_fini(&forward);
	liveset_fini(&ledger);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* Each of many moments from the one after it is what it is by itself from now. */
static void test_replay__back_step_by_step(void **state)
{
	struct maker *maker = random_recording(&maker_small, 2500);
	struct replay_exact exact = { true, true }, fresh;
	struct sweep_consumer consumer;
	struct liveset live, wanted;
	struct crossings *moments;
	struct reader *r;
	struct events *e;
	uint64_t from = CUF_UNKNOWN, seqs[100];
	size_t count = 0;
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	for (uint64_t seq = maker->h->next_seq; seq > 61 && count < 100; seq -= 61)
		seqs[count++] = seq;
	moments = crossings_new(e, seqs, count);
	consumer = crossings_consumer(moments);
	sweep_events(e, &consumer, 1);
	crossings_end(moments);
	replay_now(r, &live);
	for (size_t i = 0; i < count; from = seqs[i++]) {
		assert_true(crossings_have(moments, seqs[i]));
		assert_false(crossings_have(moments, seqs[i] - 1));
		replay_back(e, moments, from, seqs[i], &live, &exact);
		replay_at(r, e, seqs[i], &wanted, &fresh);
		assert_same(&wanted, &live);
		liveset_fini(&wanted);
	}
	assert_true(exact.device && exact.framework);
	crossings_free(moments);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* The framework's ring wrapped: its blocks are not known further back, the driver's are, to the
 * beginning. */
static void test_replay__each_ring_is_exact_by_itself(void **state)
{
	static const struct maker_plan plan = { 64, 4096, 4, 4096, 4096, 64, 256, 8, 8, 4, 1024 };
	struct maker *maker = maker_new(&plan);
	struct replay_exact exact;
	struct liveset live;
	struct reader *r;
	struct events *e;
	uint64_t segment = maker_alloc(maker, 0x700000000000, 20 * MiB, 3), other;
	for (unsigned i = 0; i < 500; i++) {
		maker_block(maker, 0, 0x700000000000 + i % 7 * MiB, 1000, 4);
		if (i == 300)
			other = maker_alloc(maker, 0x700010000000, 20 * MiB, 3);
		maker_block_freed(maker, 0x700000000000 + i % 7 * MiB);
	}
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	assert_int_equal(e->complete_since, 0);
	assert_int_equal(e->framework->count + maker->h->framework_overwritten, 1000);
	assert_true(e->framework->complete_since > other);
	replay_at(r, e, segment, &live, &exact);
	assert_true(exact.device);
	assert_false(exact.framework);
	assert_non_null(liveset_find(&live, 0x700000000000));
	assert_null(liveset_find(&live, 0x700010000000));
	liveset_fini(&live);
	replay_at(r, e, e->framework->complete_since, &live, &exact);
	assert_true(exact.device && exact.framework);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* The role of a block is reported after its allocation, and holds for that block, not for the next
 * one at its address. */
static void test_replay__roles_are_learnt_again(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct replay_exact exact;
	struct liveset live;
	struct reader *r;
	struct events *e;
	uint64_t told, second, later;
	maker_alloc(maker, 0x700000000000, 5000, 3);
	told = maker_event_in(maker, MAKER_FRAMEWORK,
	                      (struct cuf_event){ .addr = 0x700000000000,
	                                          .op = CUF_OP_ROLE,
	                                          .kind = CUF_KIND_DEVICE,
	                                          .extra = CUF_ROLE_KV });
	later = maker_alloc(maker, 0x710000000000, 5000, 3);
	maker_free(maker, 0x700000000000);
	second = maker_alloc(maker, 0x700000000000, 6000, 3);
	maker_free(maker, 0x700000000000);
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	replay_at(r, e, second, &live, &exact);
	assert_int_equal(liveset_find(&live, 0x700000000000)->role, CUF_ROLE_NONE);
	liveset_fini(&live);
	replay_at(r, e, told, &live, &exact);
	assert_int_equal(liveset_find(&live, 0x700000000000)->role, CUF_ROLE_KV);
	liveset_fini(&live);
	replay_at(r, e, later, &live, &exact); /* told before the moment */
	assert_int_equal(liveset_find(&live, 0x700000000000)->role, CUF_ROLE_KV);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* A block brought back by undoing its free has the birth that its ALLOC tells. */
static void test_replay__births_are_found_again(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct liveset live;
	struct reader *r;
	struct events *e;
	uint64_t born = maker_alloc(maker, 0x700000000000, 5000, 3), born_ns = maker->now_ns,
		 middle;
	struct replay_exact exact;
	maker->step_ns = 1234567;
	middle = maker_alloc(maker, 0x700000200000, 6000, 4);
	maker_free(maker, 0x700000000000);
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	replay_at(r, e, middle, &live, &exact);
	assert_int_equal(live.count, 2);
	assert_int_equal(liveset_find(&live, 0x700000000000)->seq, born);
	assert_int_equal(liveset_find(&live, 0x700000000000)->time_ns, born_ns);
	assert_int_equal(liveset_find(&live, 0x700000000000)->stack, 3);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* A free that failed ends nothing, and the block keeps its birth and role. */
static void test_replay__a_failed_free_ends_nothing(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	uint64_t born = maker_alloc(maker, 0x700000000000, 5000, 3), later;
	struct replay_exact exact;
	struct liveset live;
	struct reader *r;
	struct events *e;
	maker_event_in(maker, MAKER_FRAMEWORK, (struct cuf_event){ .addr = 0x700000000000,
								  .op = CUF_OP_ROLE,
								  .kind = CUF_KIND_DEVICE,
								  .extra = CUF_ROLE_KV });
	maker_refused_free(maker, CUF_KIND_DEVICE, 0x700000000000);
	later = maker_alloc(maker, 0x710000000000, 5000, 3);
	maker_free(maker, 0x700000000000);
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	replay_at(r, e, later, &live, &exact);
	assert_int_equal(live.count, 2);
	assert_int_equal(liveset_find(&live, 0x700000000000)->seq, born);
	assert_int_equal(liveset_find(&live, 0x700000000000)->role, CUF_ROLE_KV);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* The ring wrapped: moments after the loss are exact, those before it say that they are not. */
static void test_replay__a_wrapped_ring_says_so(void **state)
{
	static const struct maker_plan plan = { 16, 1024, 4, 1024, 4096, 64, 256, 8, 8, 8, 1024 };
	struct maker *maker = random_recording(&plan, 2500);
	struct liveset live;
	struct reader *r;
	struct events *e;
	struct replay_exact exact;
	assert_true(maker->h->overwritten > 1000);
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	assert_int_equal(e->count + maker->h->overwritten + e->framework->count +
	                         maker->h->framework_overwritten,
	                 maker->h->next_seq);
	assert_true(e->complete_since > 0 && e->complete_since < e->last_seq);
	replay_at(r, e, e->complete_since, &live, &exact);
	assert_true(exact.device);
	liveset_fini(&live);
	replay_at(r, e, e->complete_since - 1, &live, &exact);
	assert_false(exact.device);
	liveset_fini(&live);
	replay_at(r, e, CUF_UNKNOWN, &live, &exact);
	assert_true(exact.device);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* A free was missed and the address allocated again: the hidden block is live again before
 * that. */
static void test_replay__hidden_blocks_come_back(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct liveset live;
	struct reader *r;
	struct events *e;
	uint64_t first = maker_alloc(maker, 0x700000000000, 5000, 3);
	struct replay_exact exact;
	memset(maker_find(maker, 0x700000000000), 0, sizeof(struct cuf_block));
	maker_alloc(maker, 0x700000000000, 7000, 4);
	maker->h->replaced = 1;
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	replay_at(r, e, first, &live, &exact);
	assert_int_equal(live.count, 1);
	assert_int_equal(liveset_find(&live, 0x700000000000)->bytes, 5000);
	liveset_fini(&live);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

/* Damaged numbers: still every event once, in order. */
static void test_replay__descending_lanes_are_sorted(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct cuf_event *events = (void *)((uint8_t *)maker_section(maker, CUF_SEC_RING) +
	                                    sizeof(struct cuf_segment));
	struct reader *r;
	struct events *e;
	for (unsigned i = 0; i < 20; i++)
		maker_alloc(maker, 0x700000000000 + i * 4096, 100, 1);
	events[3].seq = 18;
	events[17].seq = 4;
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	assert_int_equal(e->count, 20);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(events_get(e, i).seq, i + 1);
	assert_int_equal(events_after(e, 7), 7);
	events_free(e);
	reader_close(r);
	maker_free_all(maker);
}

static void test_host_events__merged_by_time_from_all_threads(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct reader *r;
	struct host_stream *stream;
	struct host_event e;
	uint64_t before = 0;
	unsigned seen = 0;
	for (unsigned i = 0; i < 300; i++) {
		maker->thread = i * 7 % 5;
		maker_host_alloc(maker, 0x10000 + i * 64, 1 + i, 1 + i % 9);
	}
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	stream = host_stream_new(r);
	for (; host_stream_next(stream, &e); seen++) {
		assert_true(e.time_ns >= before);
		before = e.time_ns;
		/* a millisecond apart, so the order is exact */
		assert_int_equal(e.bytes, 1 + seen);
		assert_int_equal(e.addr, 0x10000 + seen * 64);
		assert_int_equal(e.stack, 1 + seen % 9);
		assert_int_equal(e.tid, 1000 + seen * 7 % 5);
	}
	assert_int_equal(seen, 300);
	host_stream_free(stream);
	reader_close(r);
	maker_free_all(maker);
}

/* A thread that keeps its first segment has older events than those that were overwritten. */
static void test_host_events__complete_since_the_last_round_of_segments(void **state)
{
	struct maker_plan plan = maker_small;
	struct maker *maker;
	struct reader *r;
	struct host_stream *stream;
	struct host_event e;
	plan.host_segments = 4;
	plan.host_segment_bytes = 1024;
	for (unsigned more = 0; more <= 400; more += 400) {
		maker = maker_new(&plan);
		maker_host_alloc(maker, 0x10000, 100, 1);
		maker->thread = 1;
		for (unsigned i = 0; i < 100 + more; i++)
			maker_host_alloc(maker, 0x20000 + i * 64, 100, 1);
		assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
		stream = host_stream_new(r);
		assert_true(host_stream_next(stream, &e) && e.addr == 0x10000);
		assert_true(host_stream_next(stream, &e));
		assert_int_equal(e.addr == 0x20000, !more);
		if (more) /* to the event before, or the one itself */
			assert_true(e.time_ns - host_stream_complete_ns(stream) <= 1000000);
		else
			assert_int_equal(host_stream_complete_ns(stream), 0);
		host_stream_free(stream);
		reader_close(r);
		maker_free_all(maker);
	}
}

/* Every later event comes, and not all of the earlier ones are read for them. */
static void test_host_events__after_a_time_begin_with_its_segments(void **state)
{
	enum { EVENTS = 300 };
	struct maker_plan plan = maker_small;
	struct maker *maker;
	struct reader *r;
	struct host_stream *stream;
	struct host_event e;
	uint64_t times[EVENTS];
	unsigned seen = 0;
	plan.host_segments = 64;
	plan.host_segment_bytes = 512;
	maker = maker_new(&plan);
	for (unsigned i = 0; i < EVENTS; i++) {
		maker->thread = i * 7 % 3;
		maker_host_alloc(maker, 0x10000 + i * 64, 1 + i, 1);
	}
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	stream = host_stream_new(r);
	for (; host_stream_next(stream, &e); seen++)
		times[seen] = e.time_ns;
	assert_int_equal(seen, EVENTS);
	host_stream_free(stream);
	for (unsigned from = 0; from < EVENTS; from++) {
		unsigned next = from + 1, earlier = 0;

		stream = host_stream_after(r, times[from]);
		while (host_stream_next(stream, &e))
			if (e.time_ns > times[from])
				assert_int_equal(e.bytes, 1 + next++);
			else
				earlier++;
		assert_int_equal(next, EVENTS);
		assert_true(earlier <= EVENTS / 2);
		host_stream_free(stream);
	}
	reader_close(r);
	maker_free_all(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replay__forward_is_backward_is_ledger),
		cmocka_unit_test(test_host_events__after_a_time_begin_with_its_segments),
		cmocka_unit_test(test_replay__back_step_by_step),
		cmocka_unit_test(test_replay__a_failed_free_ends_nothing),
		cmocka_unit_test(test_replay__each_ring_is_exact_by_itself),
		cmocka_unit_test(test_replay__roles_are_learnt_again),
		cmocka_unit_test(test_replay__births_are_found_again),
		cmocka_unit_test(test_replay__a_wrapped_ring_says_so),
		cmocka_unit_test(test_replay__hidden_blocks_come_back),
		cmocka_unit_test(test_replay__descending_lanes_are_sorted),
		cmocka_unit_test(test_host_events__merged_by_time_from_all_threads),
		cmocka_unit_test(test_host_events__complete_since_the_last_round_of_segments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
