/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaks, and what only looks like one: each trace has its verdict, at several sizes, on the device
 * and on the host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

/* of which the rings have room for some 2000 device events */
static const struct maker_plan small = { 32, 4096, 32, 1024, 8192, 8192, 64, 64, 8, 0, 0 };
static const struct maker_plan roomy = { 512, 16384, 1024, 4096, 8192, 8192, 64, 64, 8, 0, 0 };

/* One interface for both streams, so that each trace is judged twice. */
struct tracer { struct maker *m; bool host; uint64_t next; };

enum { SITE_SCRATCH = 11, SITE_LEAK = 12, SITE_WEIGHTS = 13, SITE_CACHE = 14, SITE_OUTPUT = 15 };

static struct tracer tracer_of(const struct maker_plan *plan, bool host)
{
	struct tracer t = { maker_new(plan), host, 1 };
	maker_device(t.m, 0, 80 * GiB);
	for (uint32_t id = 1; id < 32; id++)
		maker_stack(t.m, id, 0x401000 + id * 256, 2);
	return t;
}

static struct tracer tracer_new(bool host, uint64_t step_ns)
{
	struct tracer t = tracer_of(&roomy, host);
	t.m->step_ns = step_ns;
	return t;
}

static uint64_t take(struct tracer *t, uint64_t bytes, uint32_t site)
{
	uint64_t addr = t->host ? 0x10000 + t->next * 64 : 0x700000000000 + t->next * (64 * MiB);
	t->next++;
	if (t->host)
		maker_host_alloc(t->m, addr, bytes, site);
	else
		maker_alloc(t->m, addr, bytes, site);
	return addr;
}

static void give(struct tracer *t, uint64_t addr)
{
	if (t->host)
		maker_host_free(t->m, addr);
	else
		maker_free(t->m, addr);
}

static struct facts *judge(struct tracer *t)
{
	struct facts *facts;
	maker_end(t->m, CUF_END_EXIT, 0);
	assert_int_equal(facts_build_memory(t->m->data, t->m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static void done(struct tracer *t, struct facts *facts)
{
	facts_free(facts);
	maker_free_all(t->m);
}

static unsigned verdicts(const struct facts *facts)
{
	unsigned n = 0;
	for (size_t i = 0; i < facts->leak_count; i++)
		n += facts->leaks[i].class == CLASS_LEAK;
	return n;
}

static const struct fact_site *site_of(const struct facts *facts, uint32_t stack)
{
	for (size_t i = 0; i < facts->leak_count; i++)
		if (facts->leaks[i].stack.id == stack)
			return &facts->leaks[i];
	return NULL;
}

static const unsigned request_counts[] = { 9, 12, 20, 63, 64, 65, 100, 127, 200, 500 };
#define EACH_SIZE(n) for (const unsigned *n = request_counts; n < request_counts + sizeof request_counts / sizeof *request_counts; n++)

static void leak_per_request(bool host, unsigned requests, uint64_t leak_bytes,
                             uint64_t scratch_bytes, bool leak_first)
{
	struct tracer t = tracer_new(host, 1000000);
	struct facts *facts;
	const struct fact_site *s;
	take(&t, 7 * MiB, SITE_WEIGHTS);
	for (unsigned i = 0; i < requests; i++) {
		uint64_t scratch;
		if (leak_first)
			take(&t, leak_bytes, SITE_LEAK);
		scratch = take(&t, scratch_bytes, SITE_SCRATCH);
		if (!leak_first)
			take(&t, leak_bytes, SITE_LEAK);
		give(&t, scratch);
	}
	facts = judge(&t);
	assert_int_equal(verdicts(facts), 1);
	s = &facts->leaks[0];
	assert_int_equal(s->stack.id, SITE_LEAK);
	assert_int_equal(s->class, CLASS_LEAK);
	assert_int_equal(s->shape, SHAPE_LINEAR);
	assert_int_equal(s->bytes, leak_bytes * requests);
	assert_int_equal(s->count, requests);
	assert_int_equal(s->per_request_bytes, leak_bytes);
	assert_int_equal(s->kind, host ? CUF_KIND_HOST : CUF_KIND_DEVICE);
	assert_int_equal(s->cycles, requests);
	/* three milliseconds an iteration; the interval holds the slope */
	assert_true(fabs(s->slope_bytes_per_s / ((double)leak_bytes / 0.004) - 1) < 0.05 ||
	            fabs(s->slope_bytes_per_s / ((double)leak_bytes / 0.003) - 1) < 0.05);
	assert_true(s->interval[0] <= s->slope_bytes_per_s &&
	            s->slope_bytes_per_s <= s->interval[1]);
	assert_int_equal(site_of(facts, SITE_WEIGHTS)->class, CLASS_LIVE);
	assert_int_equal(facts->growth[0].stack.id,
	                 leak_bytes * requests > 7 * MiB ? SITE_LEAK : SITE_WEIGHTS);
	done(&t, facts);
}

static void test_growth__a_leak_per_request_is_that_site_to_the_byte(void **state)
{
	EACH_SIZE(n) {
		for (int host = 0; host < 2; host++) {
			leak_per_request(host, *n, 16 * MiB, 4 * MiB, false);
			leak_per_request(host, *n, 1000, 64 * MiB, false);
			leak_per_request(host, *n, 4096, 100, true);
		}
	}
}

/* Several ups and downs a request are one request; the leak is still told by request. */
/* The work went on for long before: those cycles are no evidence of it. */
static void test_growth__a_leak_that_begins_late_has_cycles_of_its_own(void **state)
{
	enum { BEFORE = 60, WITH = 40 };
	struct tracer t = tracer_new(false, 1000000);
	struct facts *facts;
	const struct fact_site *s;

	(void)state;
	for (unsigned i = 0; i < BEFORE + WITH; i++) {
		uint64_t scratch = take(&t, 64 * MiB, SITE_SCRATCH);
		if (i >= BEFORE)
			take(&t, 2 * MiB, SITE_LEAK);
		give(&t, scratch);
	}
	facts = judge(&t);
	s = site_of(facts, SITE_LEAK);
	assert_non_null(s);
	assert_int_equal(s->cycles, BEFORE + WITH);
	assert_in_range(s->own_cycles, WITH - 1, WITH + 1);
	done(&t, facts);
}

static void test_growth__a_request_of_several_steps(void **state)
{
	struct tracer t = tracer_new(false, 1000000);
	struct facts *facts;
	for (unsigned i = 0; i < 100; i++) {
		give(&t, take(&t, 4 * MiB, SITE_SCRATCH));
		give(&t, take(&t, 4 * MiB, SITE_OUTPUT));
		take(&t, 3000, SITE_LEAK);
	}
	facts = judge(&t);
	assert_int_equal(verdicts(facts), 1);
	assert_int_equal(facts->leaks[0].per_request_bytes, 3000);
	assert_int_equal(facts->leaks[0].cycles, 100);
	done(&t, facts);
}

/* The leak's own site also works properly most of the time. */
static void test_growth__one_block_in_ten_of_a_busy_site(void **state)
{
	struct tracer t = tracer_new(false, 1000000);
	struct facts *facts;
	for (unsigned i = 0; i < 200; i++) {
		uint64_t blocks[10];
		for (unsigned b = 0; b < 10; b++)
			blocks[b] = take(&t, 1 * MiB, SITE_SCRATCH);
		for (unsigned b = 0; b < 9; b++)
			give(&t, blocks[b]);
	}
	facts = judge(&t);
	assert_int_equal(verdicts(facts), 1);
	assert_int_equal(facts->leaks[0].stack.id, SITE_SCRATCH);
	assert_int_equal(facts->leaks[0].bytes, 200 * MiB);
	assert_int_equal(facts->leaks[0].per_request_bytes, 1 * MiB);
	done(&t, facts);
}

static void test_growth__healthy_churn_has_no_verdict(void **state)
{
	EACH_SIZE(n)
		for (int host = 0; host < 2; host++) {
			struct tracer t = tracer_new(host, 100000);
			struct facts *facts;
			uint64_t weights[4];
			for (unsigned i = 0; i < 4; i++)
				weights[i] = take(&t, 5 * MiB, SITE_WEIGHTS);
			for (unsigned i = 0; i < *n; i++) {
				uint64_t scratch = take(&t, (1 + i % 5) * MiB, SITE_SCRATCH),
					 output = take(&t, 4096, SITE_OUTPUT);
				give(&t, scratch);
				give(&t, output);
			}
			facts = judge(&t);
			assert_int_equal(verdicts(facts), 0);
			assert_int_equal(site_of(facts, SITE_WEIGHTS)->class, CLASS_LIVE);
			assert_null(site_of(facts, SITE_SCRATCH));
			assert_int_equal(weights[0] != 0, 1);
			done(&t, facts);
		}
}

/* Requests overlap, so the floor is never quiet; and load doubles half-way. */
static void test_growth__overlapping_requests_have_no_verdict(void **state)
{
	for (unsigned seed = 1; seed <= 40; seed++) {
		struct tracer t = tracer_new(false, 100000);
		struct facts *facts;
		uint64_t flying[32] = { 0 };
		srand(seed);
		for (unsigned i = 0; i < 2000; i++) {
			unsigned slot = (unsigned)rand() % (i < 1000 ? 12 : 24);
			if (flying[slot])
				give(&t, flying[slot]);
			flying[slot] = rand() % 4 ? take(&t, (uint64_t)(1 + rand() % 30) * MiB,
			                                 SITE_SCRATCH + (unsigned)rand() % 3)
			                          : 0;
		}
		facts = judge(&t);
		assert_int_equal(verdicts(facts), 0);
		done(&t, facts);
	}
}

/* Concurrency that climbs all through the run looks like a floor that rises; its blocks are young.
 */
static void test_growth__rising_load_has_no_verdict(void **state)
{
	struct tracer t = tracer_new(false, 100000);
	struct facts *facts;
	uint64_t queue[4096];
	unsigned head = 0, tail = 0;
	for (unsigned i = 0; i < 2000; i++) {
		queue[head++ % 4096] = take(&t, 1 * MiB, SITE_SCRATCH);
		give(&t, take(&t, 8 * MiB, SITE_OUTPUT));
		while (head - tail > 4 + i / 20)
			give(&t, queue[tail++ % 4096]);
	}
	facts = judge(&t);
	assert_int_equal(verdicts(facts), 0);
	assert_int_equal(site_of(facts, SITE_SCRATCH)->class, CLASS_RETAINED);
	done(&t, facts);
}

/* The first sequences of a server: each step takes a little for one of them, and few have come to
 * their end. */
static void test_growth__the_first_long_lifetimes_have_no_verdict(void **state)
{
	struct tracer t = tracer_new(false, 1000000);
	struct facts *facts;
	uint64_t blocks[24][40], steps[24] = { 0 };
	for (unsigned step = 0; step < 400; step++) {
		unsigned slot = step % 24;
		blocks[slot][steps[slot]++] = take(&t, 2 * MiB, SITE_CACHE);
		give(&t, take(&t, 8 * MiB, SITE_SCRATCH));
		if (steps[slot] == 9 + slot * 2) /* some are short */
			while (steps[slot])
				give(&t, blocks[slot][--steps[slot]]);
	}
	facts = judge(&t);
	assert_int_equal(verdicts(facts), 0);
	done(&t, facts);
}

static void test_growth__warm_up_then_constant_has_no_verdict(void **state)
{
	EACH_SIZE(n)
		for (int host = 0; host < 2; host++) {
			struct tracer t = tracer_new(host, 100000);
			struct facts *facts;
			for (unsigned i = 0; i < *n * 3; i++) {
				uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH);
				if (i < *n)
					take(&t, 1 * MiB,
				             SITE_CACHE); /* a workspace for each shape, until all
				                             were seen */
				give(&t, scratch);
			}
			facts = judge(&t);
			assert_int_equal(verdicts(facts), 0);
			assert_int_equal(site_of(facts, SITE_CACHE)->class, CLASS_LIVE);
			assert_int_equal(site_of(facts, SITE_CACHE)->shape, SHAPE_PLATEAU);
			done(&t, facts);
		}
}

static void test_growth__a_cache_that_fills_to_its_bound_has_no_verdict(void **state)
{
	EACH_SIZE(n)
		for (int host = 0; host < 2; host++) {
			struct tracer t = tracer_new(host, 100000);
			struct facts *facts;
			uint64_t cache[600] = { 0 };
			for (unsigned i = 0; i < *n * 3; i++) {
				uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH),
					 *slot = &cache[i % *n];
				if (*slot)
					give(&t, *slot);
				*slot = take(&t, 1 * MiB, SITE_CACHE);
				give(&t, scratch);
			}
			facts = judge(&t);
			assert_int_equal(verdicts(facts), 0);
			assert_int_equal(site_of(facts, SITE_CACHE)->class, CLASS_BOUNDED_CACHE);
			done(&t, facts);
		}
}

/* Loaded once, with a staging buffer for each tensor; then work, or the end. */
static void test_growth__weights_loaded_once_have_no_verdict(void **state)
{
	for (int serve = 0; serve < 2; serve++)
		for (int host = 0; host < 2; host++) {
			struct tracer t = tracer_new(host, 100000);
			struct facts *facts;
			for (unsigned i = 0; i < 80; i++)
				take(&t, (10 + i % 4) * MiB, SITE_WEIGHTS);
			for (unsigned i = 0; serve && i < 200; i++)
				give(&t, take(&t, 30 * MiB, SITE_SCRATCH));
			facts = judge(&t);
			assert_int_equal(verdicts(facts), 0);
			assert_int_equal(site_of(facts, SITE_WEIGHTS)->count, 80);
			done(&t, facts);
		}
}

/* A long run: the ring has only the last requests, the ledger everything that leaked, and
 * there is no end record. */
static void test_growth__a_leak_is_seen_through_a_wrapped_ring(void **state)
{
	for (int host = 0; host < 2; host++) {
		struct tracer t = tracer_of(&small, host);
		struct facts *facts;
		for (unsigned i = 0; i < 3000; i++) {
			uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH);
			take(&t, 5000, SITE_LEAK);
			give(&t, scratch);
		}
		assert_true((host ? t.m->h->host_overwritten : t.m->h->overwritten) > 5000);
		assert_int_equal(facts_build_memory(t.m->data, t.m->bytes, NULL, &facts, NULL), 0);
		assert_int_equal(verdicts(facts), 1);
		assert_int_equal(facts->leaks[0].bytes, 5000 * 3000);
		assert_int_equal(facts->leaks[0].count, 3000);
		assert_int_equal(facts->leaks[0].per_request_bytes, 5000);
		assert_int_equal(facts->processes[0].end, END_KILLED);
		assert_false(facts->coverage.complete);
		done(&t, facts);
	}
}

/* The ring has some of the loading and all of the work. What was overwritten made the weights, with
 * a copy for some, and is too little for earlier rounds of that work. */
static void test_growth__a_leak_that_begins_in_the_wrapped_ring_is_seen(void **state)
{
	enum { TENSORS = 2000, REQUESTS = 500 };
	struct tracer t = tracer_of(&small, false);
	struct facts *facts;
	for (unsigned i = 0; i < TENSORS; i++) {
		take(&t, 1 * MiB, SITE_WEIGHTS);
		if (i % 4 == 0)
			give(&t, take(&t, 1 * MiB, SITE_OUTPUT));
	}
	for (unsigned i = 0; i < REQUESTS; i++) {
		uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH);
		take(&t, 5000, SITE_LEAK);
		give(&t, scratch);
	}
	assert_in_range(t.m->h->overwritten, TENSORS, TENSORS * 3 / 2);
	assert_int_equal(facts_build_memory(t.m->data, t.m->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(verdicts(facts), 1);
	assert_int_equal(facts->leaks[0].count, REQUESTS);
	done(&t, facts);
}

/* The ring begins in the pause before the last wave of requests, of which each keeps a block until
 * the wave ends. What was kept in the waves before is gone. */
static void test_growth__the_last_wave_in_a_wrapped_ring_has_no_verdict(void **state)
{
	enum { WAVES = 40, REQUESTS = 60, PAUSE = 100, STEPS = 14 };
	struct tracer t = tracer_of(&small, false);
	uint64_t kept[REQUESTS];
	struct facts *facts;
	for (unsigned wave = 0; wave < WAVES; wave++) {
		for (unsigned n = 0; n < PAUSE; n++)
			give(&t, take(&t, 1 * MiB, SITE_OUTPUT));
		for (unsigned i = 0; i < REQUESTS; i++) {
			uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH);
			kept[i] = take(&t, 1 * MiB, SITE_CACHE);
			for (unsigned n = 0; n < STEPS; n++)
				give(&t, take(&t, 1 * MiB, SITE_OUTPUT));
			give(&t, scratch);
		}
		for (unsigned i = 0; i < REQUESTS && wave < WAVES - 1; i++)
			give(&t, kept[i]);
	}
	assert_true(t.m->h->overwritten > 5000);
	assert_int_equal(facts_build_memory(t.m->data, t.m->bytes, NULL, &facts, NULL), 0);
	assert_non_null(site_of(facts, SITE_CACHE));
	assert_int_equal(verdicts(facts), 0);
	done(&t, facts);
}

/* Fewer than eight cycles prove nothing. */
static void test_growth__seven_cycles_are_not_enough(void **state)
{
	for (unsigned cycles = 1; cycles <= 7; cycles++) {
		struct tracer t = tracer_new(false, 100000);
		struct facts *facts;
		for (unsigned i = 0; i < cycles; i++) {
			uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH);
			take(&t, 1 * MiB, SITE_LEAK);
			give(&t, scratch);
		}
		facts = judge(&t);
		assert_int_equal(verdicts(facts), 0);
		done(&t, facts);
	}
}

/* Per-conversation growth that is freed: the minimum returns. */
static void test_growth__a_kv_cache_that_resets_has_no_verdict(void **state)
{
	struct tracer t = tracer_new(false, 100000);
	struct facts *facts;
	for (unsigned request = 0; request < 30; request++) {
		uint64_t kv = take(&t, 1 * MiB, SITE_CACHE);
		/* torch.cat: the new one, then the old one goes */
		for (unsigned step = 2; step < 40; step++) {
			uint64_t longer = take(&t, step * MiB, SITE_CACHE);
			give(&t, kv);
			kv = longer;
		}
		give(&t, kv);
	}
	facts = judge(&t);
	assert_int_equal(verdicts(facts), 0);
	done(&t, facts);
}

/* host=sampled: figures are estimates with an interval that holds the truth. */
static void test_growth__sampled_host_memory_is_estimated(void **state)
{
	struct tracer t = tracer_new(true, 1000);
	struct facts *facts;
	const struct fact_host *h;
	uint64_t truth = 0;
	t.m->h->options_host_mode = CUF_HOST_SAMPLED;
	t.m->h->sample_mean_bytes = 65536;
	srand(5);
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t bytes = 100 + (uint64_t)rand() % 2000;
		truth += bytes;
		if ((double)rand() / RAND_MAX < 1 - exp(-(double)bytes / 65536))
			take(&t, bytes, SITE_OUTPUT + 1 + i % 3);
	}
	take(&t, 1 * MiB, SITE_WEIGHTS);
	truth += 1 * MiB;
	facts = judge(&t);
	h = &facts->processes[0].host;
	assert_int_equal(h->malloc_basis, BASIS_ESTIMATED);
	assert_true(h->malloc_low_bytes < truth && truth < h->malloc_high_bytes);
	assert_true(fabs((double)h->malloc_live_bytes / (double)truth - 1) < 0.1);
	assert_true(fabs((double)h->malloc_live_count / 100001 - 1) < 0.1);
	assert_int_equal(site_of(facts, SITE_WEIGHTS)->bytes, 1 * MiB); /* large blocks are exact */
	assert_int_equal(site_of(facts, SITE_WEIGHTS)->basis, BASIS_OBSERVED);
	done(&t, facts);
}

/* A sampled site gains so many samples in the first and second half of its 128 requests, which are
 * not marked and take 11 s. Its class. */
static enum fact_class class_of_sampled(unsigned first, unsigned second)
{
	struct tracer t = tracer_new(true, 1000000);
	struct facts *facts;
	enum fact_class class;
	t.m->h->options_host_mode = CUF_HOST_SAMPLED;
	t.m->h->sample_mean_bytes = 524288;
	for (unsigned i = 0, taken = 0; i < 128; i++) {
		uint64_t scratch = take(&t, 4 * MiB, SITE_SCRATCH);
		t.m->now_ns += 85000000;
		unsigned due = i < 64 ? first * (i + 1) / 64 : first + second * (i - 63) / 64;
		for (; taken < due; taken++)
			take(&t, 64, SITE_LEAK);
		give(&t, scratch);
	}
	facts = judge(&t);
	class = site_of(facts, SITE_LEAK)->class;
	done(&t, facts);
	return class;
}

/* Where 120 samples are all there is, two thirds of them fall into the first half once in some 600
 * runs of host_leak. */
static void test_growth__chance_is_no_plateau(void **state)
{
	assert_int_equal(class_of_sampled(64, 64), CLASS_GROWING);
	assert_int_equal(class_of_sampled(87, 38), CLASS_GROWING);
	assert_int_equal(class_of_sampled(90, 30), CLASS_RETAINED);
	assert_int_equal(class_of_sampled(300, 80), CLASS_RETAINED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_growth__a_leak_per_request_is_that_site_to_the_byte),
		cmocka_unit_test(test_growth__a_leak_that_begins_late_has_cycles_of_its_own),
		cmocka_unit_test(test_growth__a_request_of_several_steps),
		cmocka_unit_test(test_growth__one_block_in_ten_of_a_busy_site),
		cmocka_unit_test(test_growth__healthy_churn_has_no_verdict),
		cmocka_unit_test(test_growth__overlapping_requests_have_no_verdict),
		cmocka_unit_test(test_growth__rising_load_has_no_verdict),
		cmocka_unit_test(test_growth__the_first_long_lifetimes_have_no_verdict),
		cmocka_unit_test(test_growth__warm_up_then_constant_has_no_verdict),
		cmocka_unit_test(test_growth__a_cache_that_fills_to_its_bound_has_no_verdict),
		cmocka_unit_test(test_growth__weights_loaded_once_have_no_verdict),
		cmocka_unit_test(test_growth__a_leak_is_seen_through_a_wrapped_ring),
		cmocka_unit_test(test_growth__a_leak_that_begins_in_the_wrapped_ring_is_seen),
		cmocka_unit_test(test_growth__the_last_wave_in_a_wrapped_ring_has_no_verdict),
		cmocka_unit_test(test_growth__seven_cycles_are_not_enough),
		cmocka_unit_test(test_growth__a_kv_cache_that_resets_has_no_verdict),
		cmocka_unit_test(test_growth__sampled_host_memory_is_estimated),
		cmocka_unit_test(test_growth__chance_is_no_plateau),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
