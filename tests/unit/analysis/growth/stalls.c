/* SPDX-License-Identifier: Apache-2.0 */
/* A process that grows, stands at its limit for a while, and is killed there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

static const struct maker_plan roomy = { 512, 16384, 1024, 4096, 8192, 8192, 64, 64, 8, 0, 0 };

enum { SITE = 11, BLOCKS = 400, LIMIT = 64 << 20, SAMPLES = 12 };

/* What the process held, of a limit of which the blocks take nine tenths at last. */
static void sample(struct maker *m, uint64_t blocks, uint64_t full)
{
	struct cuf_sample *sample = maker_sample(m);
	sample->host_live_bytes = blocks * (LIMIT / BLOCKS * 9 / 10);
	sample->rss_bytes = sample->host_live_bytes;
	sample->cgroup_bytes = sample->host_live_bytes / 9 * 10 * full / 100;
}

/* Grows for two seconds, then nothing happens for some more, with the cgroup as full as `full`
 * percent of its limit. */
static enum fact_class class_of(uint64_t stall_ns, uint64_t full)
{
	struct maker *m = maker_new(&roomy);
	struct facts *facts;
	enum fact_class class = CLASS_MAX;
	m->step_ns = 2000000000ull / BLOCKS;
	maker_stack(m, SITE, 0x401000, 2);
	maker_meta(m, CUF_META_LIMITS, 0, "memory.max=67108864\n");
	for (uint64_t i = 0; i < BLOCKS; i++) {
		maker_host_alloc(m, 0x10000 + i * (1 << 20), LIMIT / BLOCKS * 9 / 10, SITE);
		if (i % (BLOCKS / SAMPLES) == 0)
			sample(m, i + 1, full);
	}
	for (unsigned i = 0; i < SAMPLES; i++) {
		sample(m, BLOCKS, full);
		m->now_ns += stall_ns / SAMPLES;
	}
	sample(m, BLOCKS, 99); /* the last one is at the limit: the kernel kills */
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(facts->processes[0].end, END_OOM_KILLED);
	for (size_t i = 0; i < facts->leak_count; i++)
		if (facts->leaks[i].stack.id == SITE)
			class = facts->leaks[i].class;
	facts_free(facts);
	maker_free_all(m);
	return class;
}

static void test_stalls__the_time_at_the_limit_does_not_count(void **state)
{
	assert_int_equal(class_of(100000000, 100), CLASS_GROWING);
	assert_int_equal(class_of(4000000000, 100), CLASS_GROWING);
	assert_int_equal(class_of(40000000000, 99), CLASS_GROWING);
}

/* With memory to spare the process stopped growing by itself. */
static void test_stalls__a_process_that_stopped_below_its_limit_does_not_grow(void **state)
{
	assert_int_equal(class_of(4000000000, 80), CLASS_RETAINED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stalls__the_time_at_the_limit_does_not_count),
		cmocka_unit_test(
			test_stalls__a_process_that_stopped_below_its_limit_does_not_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
