/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A framework's blocks inside the driver's: segments, their holes, what pins them, who owns their
 * bytes, what failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)
#define BASE 0x700000000000ull
#define SEGMENT (20 * MiB)

static struct maker *begin(void)
{
	static const struct maker_plan plan = { 256, 4096, 16, 4096, 8192, 1024,
		                                256, 64,   32, 256,  4096 };
	struct maker *m = maker_new(&plan);
	maker_device(m, 0, TOTAL);
	for (uint32_t id = 1; id < 20; id++)
		maker_stack(m, id, 0x401000 + id * 0x1000, 2);
	maker_meta(m, CUF_META_FRAMEWORK, 0, "framework=PyTorch\nversion=2.9.0\nstreams=0\n");
	maker_meta(m, CUF_META_FRAMEWORK, 0, "backend=native");
	return m;
}

static struct facts *report_at(struct maker *m, enum facts_at at, uint64_t value)
{
	struct facts_options options = { .at = at, .at_value = value };
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, &options, &facts, NULL), 0);
	return facts;
}

static void done(struct maker *m, struct facts *facts)
{
	for (size_t d = 0; d < facts->device_count; d++) {
		uint64_t sum = 0;
		for (size_t i = 0; i < facts->devices[d].owner_count; i++)
			if (facts->devices[d].owners[i].in_sum &&
			    facts->devices[d].owners[i].bytes != CUF_UNKNOWN)
				sum += facts->devices[d].owners[i].bytes;
		assert_int_equal(sum, facts->devices[d].total_bytes);
	}
	facts_free(facts);
	maker_free_all(m);
}

static uint64_t row(const struct facts *facts, enum fact_owner kind, const char *role)
{
	uint64_t bytes = CUF_UNKNOWN;
	for (size_t i = 0; i < facts->devices[0].owner_count; i++) {
		const struct fact_owner_row *r = &facts->devices[0].owners[i];
		if (r->kind == kind && (role ? r->role && !strcmp(r->role, role) : !r->role))
			bytes = r->bytes;
	}
	return bytes;
}

static const struct fact_framework *framework(const struct facts *facts)
{
	assert_true(facts->devices[0].fragmentation.framework_count > 0);
	return &facts->devices[0].fragmentation.frameworks[0];
}

static uint64_t segment(struct maker *m, uint64_t addr, uint64_t bytes, uint32_t stack)
{
	m->reserved[0] += bytes;
	return maker_alloc(m, addr, bytes, stack);
}

static void segment_freed(struct maker *m, uint64_t addr)
{
	m->reserved[0] -= maker_find(m, cuf_key(CUF_SPACE_DEVICE, addr))->bytes;
	maker_free(m, addr);
}

/* T6: 100 segments of 20 MiB, each with 1 MiB live. Nothing larger than 19 MiB fits, although 1.9
 * GiB are free inside. */
static void test_segments__checkerboard(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	const struct fact_framework *f;
	const struct fact_incident *i;
	for (unsigned n = 0; n < 100; n++) {
		segment(m, BASE + n * SEGMENT, SEGMENT, 1);
		maker_block(m, 0, BASE + n * SEGMENT, 1 * MiB, 3);
		maker_block(m, 0, BASE + n * SEGMENT + 1 * MiB, 19 * MiB, 4);
		maker_block_freed(m, BASE + n * SEGMENT + 1 * MiB);
	}
	maker_fail(m, 0, 200 * MiB, 100 * MiB, TOTAL, 2);
	maker_fail(m, 0, 200 * MiB, 100 * MiB, TOTAL, 2);
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 199 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, 5);
	maker_end(m, CUF_END_ABORT, 6);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	f = framework(facts);
	assert_string_equal(f->name, "PyTorch");
	assert_string_equal(f->version, "2.9.0");
	assert_string_equal(f->backend, "native");
	assert_int_equal(f->allocated_bytes, 100 * MiB);
	assert_int_equal(f->reserved_bytes, 100 * SEGMENT);
	assert_int_equal(f->placed_bytes, 100 * MiB);
	assert_int_equal(f->segment_count, 100);
	assert_int_equal(f->largest_hole.bytes, 19 * MiB);
	assert_string_equal(f->largest_hole.words, "exact");
	assert_int_equal(f->emptyable_bytes, 100 * SEGMENT);
	assert_int_equal(f->empty_bytes, 0);
	assert_int_equal(f->pin_count, 1);
	assert_int_equal(f->pins[0].stack.id, 3);
	assert_int_equal(f->pins[0].stack.depth, 2);
	assert_int_equal(f->pins[0].pages, 100);
	assert_int_equal(f->pins[0].open_bytes, 1900 * MiB);
	assert_int_equal(row(facts, OWNER_DEVICE, NULL), 100 * MiB);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), 1900 * MiB);
	assert_int_equal(facts->incident_count, 1);
	i = &facts->incidents[0];
	assert_int_equal(i->outcome, OUTCOME_FATAL);
	assert_int_equal(i->attempt_count, 2);
	assert_int_equal(i->requested_bytes, 200 * MiB);
	assert_int_equal(i->framework_requested_bytes, 199 * MiB);
	assert_int_equal(i->framework_allocated_bytes, 100 * MiB);
	assert_int_equal(i->framework_reserved_bytes, 100 * SEGMENT);
	assert_int_equal(i->free_bytes, 100 * MiB);
	assert_int_equal(i->largest_free[LAYER_SEGMENT].bytes, 19 * MiB);
	assert_int_equal(i->packed_bytes, 2000 * MiB);
	assert_int_equal(i->fits_if_packed, FACT_YES);
	done(m, facts);
}

/* Two pools: a small request is never served from a large segment, nor the other way round;
 * segments that touch are two. */
static void test_segments__pools_and_edges(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	segment(m, BASE, 2 * MiB, 1);
	maker_block(m, 0, BASE + 512, 512, 3);                /* holes of 512 and 2 MiB - 1 KiB */
	segment(m, BASE + 2 * MiB, SEGMENT, 1);
	maker_block(m, 0, BASE + 8 * MiB, 2 * MiB, 4);        /* holes of 6 and 12 MiB */
	segment(m, BASE + 2 * MiB + SEGMENT, SEGMENT, 1);     /* begins where the other ends */
	/* a hole of 11 MiB at its head */
	maker_block(m, 0, BASE + 2 * MiB + SEGMENT + 11 * MiB, 9 * MiB, 4);
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 1 * MiB, 0, TOTAL, 5);
	maker_end(m, CUF_END_ABORT, 6);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(framework(facts)->largest_hole.bytes, 2 * MiB - 1024);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_SEGMENT].bytes, 2 * MiB - 1024);
	facts_free(facts);
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(framework(facts)->largest_hole.bytes, 12 * MiB);
	assert_int_equal(framework(facts)->segments[0].hole_count, 2);
	assert_int_equal(framework(facts)->segments[0].serves_least_bytes, 1 * MiB + 1);
	assert_int_equal(framework(facts)->segments[0].serves_most_bytes, CUF_UNKNOWN);
	assert_int_equal(framework(facts)->segments[2].serves_most_bytes, 1 * MiB);
	assert_false(framework(facts)->segments[0].expandable);
	facts_free(facts);
	maker_meta(m, CUF_META_FRAMEWORK, 0, "streams=1\n");
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_string_equal(framework(facts)->largest_hole.words, "upper bound");
	done(m, facts);
}

/* What is cached and empty is known by its site, by what it once held, or by who asked for it;
 * another's block is not. */
static void test_segments__empty_ones(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	maker_module(m, 1, 0x401000 + 9 * 0x1000, 0x401000 + 10 * 0x1000,
	             "/usr/lib/libc10_cuda.so");
	segment(m, BASE, SEGMENT, 1);
	maker_block(m, 0, BASE, 5 * MiB, 3);
	segment(m, BASE + 1 * GiB, SEGMENT, 1);                /* same site */
	segment(m, BASE + 2 * GiB, SEGMENT, 7);                /* held a block */
	maker_block(m, 0, BASE + 2 * GiB, SEGMENT, 3);
	maker_block_freed(m, BASE + 2 * GiB);
	segment(m, BASE + 3 * GiB, SEGMENT, 9);                /* asked for by the library */
	maker_alloc(m, BASE + 4 * GiB, 64 * MiB, 8);           /* NCCL's, say */
	/* at this address a segment was, but this is none */
	segment(m, BASE + 5 * GiB, SEGMENT, 11);
	maker_block(m, 0, BASE + 5 * GiB, SEGMENT, 3);
	maker_block_freed(m, BASE + 5 * GiB);
	segment_freed(m, BASE + 5 * GiB);
	maker_alloc(m, BASE + 5 * GiB, SEGMENT, 12);
	maker_free_memory(m, 0, 8 * GiB, TOTAL);
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(framework(facts)->segment_count, 4);
	assert_int_equal(framework(facts)->reserved_bytes, 4 * SEGMENT);
	assert_int_equal(framework(facts)->reserved_bytes, m->reserved[0]);
	assert_int_equal(framework(facts)->empty_bytes, 3 * SEGMENT);
	assert_int_equal(framework(facts)->basis, BASIS_OBSERVED);
	assert_int_equal(row(facts, OWNER_DEVICE, NULL), 5 * MiB + 64 * MiB + SEGMENT);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), 4 * SEGMENT - 5 * MiB);
	done(m, facts);
}

/* Expandable: chunks mapped one behind the other are one segment that grows; what is unmapped
 * splits it. */
static void test_segments__expandable(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	const struct fact_framework *f;
	maker_born(m, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, BASE, 18 * GiB, 1, 0, 0);
	for (unsigned n = 0; n < 5; n++) {
		maker_born(m, CUF_KIND_VMM, 0, 0x1000 + n, SEGMENT, 1, 0, 0);
		maker_born(m, CUF_KIND_MAPPING, 0, BASE + n * SEGMENT, SEGMENT, 1, 0x1000 + n, 0);
	}
	/* across two chunks; 65 MiB behind it */
	maker_block(m, 0, BASE + 10 * MiB, 25 * MiB, 3);
	facts = report_at(m, FACTS_AT_NOW, 0);
	f = framework(facts);
	assert_int_equal(f->segment_count, 1);
	assert_true(f->segments[0].expandable);
	assert_int_equal(f->segments[0].bytes, 100 * MiB);
	assert_int_equal(f->largest_hole.bytes, 65 * MiB);
	assert_int_equal(row(facts, OWNER_VMM, NULL), 25 * MiB);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), 75 * MiB);
	facts_free(facts);
	maker_freed(m, CUF_KIND_MAPPING, BASE + 2 * SEGMENT);
	maker_freed(m, CUF_KIND_VMM, 0x1002);
	facts = report_at(m, FACTS_AT_NOW, 0);
	f = framework(facts);
	assert_int_equal(f->segment_count, 2);
	assert_int_equal(f->reserved_bytes, 80 * MiB);
	assert_int_equal(f->largest_hole.bytes, 40 * MiB);
	assert_int_equal(row(facts, OWNER_VMM, NULL), 25 * MiB);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), 55 * MiB);
	done(m, facts);
}

/* The moment of the incident, not of the end: everything freed later is there again. */
static void test_segments__at_any_moment(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	uint64_t then;
	segment(m, BASE, SEGMENT, 1);
	maker_block(m, 0, BASE, 3 * MiB, 3);
	maker_block(m, 0, BASE + 5 * MiB, 2 * MiB, 3);
	then = m->now_ns - MAKER_START_NS;
	maker_block_freed(m, BASE);
	maker_block_freed(m, BASE + 5 * MiB);
	segment_freed(m, BASE);
	facts = report_at(m, FACTS_AT_TIME, then);
	assert_int_equal(framework(facts)->allocated_bytes, 5 * MiB);
	assert_int_equal(framework(facts)->largest_hole.bytes, 13 * MiB);
	assert_int_equal(framework(facts)->segments[0].live_count, 2);
	facts_free(facts);
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(framework(facts)->allocated_bytes, 0);
	assert_int_equal(framework(facts)->segment_count, 0);
	assert_int_equal(framework(facts)->largest_hole.bytes, CUF_UNKNOWN);
	done(m, facts);
}

/* The framework's ring wrapped: what is missing makes the figures estimates; its own counters stand
 * in, and the rows still sum. */
static void test_segments__a_lost_past_is_estimated(void **state)
{
	static const struct maker_plan plan = { 64, 4096, 4, 4096, 4096, 64, 256, 8, 8, 4, 1024 };
	struct maker *m = maker_new(&plan);
	struct facts *facts;
	uint64_t then;
	maker_device(m, 0, TOTAL);
	segment(m, BASE, SEGMENT, 1);
	maker_block(m, 0, BASE, 4 * MiB, 3);
	maker_block(m, 0, BASE + 4 * MiB, 4 * MiB, 3);
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 100 * MiB, 0, TOTAL, 5);
	then = m->h->incident_count;
	maker_block_freed(m, BASE + 4 * MiB);
	for (unsigned i = 0; i < 500; i++) {
		maker_block(m, 0, BASE + 10 * MiB, 2 * MiB, 4);
		maker_block_freed(m, BASE + 10 * MiB);
	}
	maker_end(m, CUF_END_EXIT, 0);
	facts = report_at(m, FACTS_AT_INCIDENT, then);
	assert_int_equal(framework(facts)->basis, BASIS_ESTIMATED);
	assert_int_equal(framework(facts)->allocated_bytes, 8 * MiB);
	assert_int_equal(framework(facts)->reserved_bytes, SEGMENT);
	assert_string_equal(framework(facts)->largest_hole.words, "upper bound");
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), 12 * MiB);
	assert_int_equal(row(facts, OWNER_DEVICE, NULL), 8 * MiB);
	assert_int_equal(facts->incidents[0].outcome, OUTCOME_HANDLED); /* blocks came later */
	done(m, facts);
}

/* T13: 41 chunks, the 42nd fails, all are released, cached blocks too, and once more. The true
 * request is the framework's. */
static void expandable_try(struct maker *m, unsigned chunks)
{
	for (unsigned n = 0; n < chunks; n++)
		maker_born(m, CUF_KIND_VMM, 0, 0x2000 + n, SEGMENT, 1, 0, 0);
	maker_fail_of(m, CUF_KIND_VMM, 0, SEGMENT, 10 * MiB, TOTAL, 2);
	for (unsigned n = 0; n < chunks; n++)
		maker_freed(m, CUF_KIND_VMM, 0x2000 + n);
}

static struct maker *begin_expandable(void)
{
	struct maker *m = begin();
	maker_born(m, CUF_KIND_RESERVATION, CUF_DEVICE_NONE, BASE, 18 * GiB, 1, 0, 0);
	maker_born(m, CUF_KIND_VMM, 0, 0x1000, SEGMENT, 1, 0, 0);
	maker_born(m, CUF_KIND_MAPPING, 0, BASE, SEGMENT, 1, 0x1000, 0);
	return m;
}

static void test_incidents__expandable_with_the_framework(void **state)
{
	struct maker *m = begin_expandable();
	struct facts *facts;
	maker_block(m, 0, BASE, 3 * MiB, 3);
	expandable_try(m, 41);
	expandable_try(m, 41);
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 850 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, 5);
	maker_end(m, CUF_END_EXIT, 1);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->incident_count, 1);
	assert_int_equal(facts->incidents[0].attempt_count, 2);
	assert_int_equal(facts->incidents[0].kind, CUF_KIND_VMM);
	assert_int_equal(facts->incidents[0].framework_requested_bytes, 850 * MiB);
	assert_int_equal(facts->incidents[0].outcome, OUTCOME_FATAL);
	assert_int_equal(facts->incidents[0].stack.id, 5);
	assert_int_equal(row(facts, OWNER_VMM, NULL), 3 * MiB);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), 17 * MiB);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_SEGMENT].bytes, 17 * MiB);
	done(m, facts);
}

static void test_incidents__expandable_without_the_framework(void **state)
{
	struct maker *m = begin_expandable();
	struct facts *facts;
	expandable_try(m, 41);
	maker_end(m, CUF_END_ABORT, 6);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->incident_count, 1);
	assert_int_equal(facts->incidents[0].framework_requested_bytes, CUF_UNKNOWN);
	assert_int_equal(facts->incidents[0].least_requested_bytes, 840 * MiB);
	assert_int_equal(facts->incidents[0].free_bytes, 830 * MiB);
	/* not the chunks that were released */
	assert_int_equal(row(facts, OWNER_VMM, NULL), SEGMENT);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_NO);
	done(m, facts);
}

/* T14: a limit of the framework's own, with no failing CUDA call. */
static void test_incidents__a_cap_is_an_incident_of_its_own(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	segment(m, BASE, SEGMENT, 1);
	maker_block(m, 0, BASE, SEGMENT, 3);
	maker_free_memory(m, 0, 12 * GiB, TOTAL);
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 300 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, 5);
	maker_end(m, CUF_END_EXIT, 1);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->incident_count, 1);
	assert_int_equal(facts->incidents[0].kind, CUF_KIND_FRAMEWORK);
	assert_int_equal(facts->incidents[0].attempt_count, 1);
	assert_int_equal(facts->incidents[0].requested_bytes, 300 * MiB);
	assert_int_equal(facts->incidents[0].framework_requested_bytes, 300 * MiB);
	assert_int_equal(facts->incidents[0].free_bytes, 12 * GiB);
	assert_int_equal(facts->incidents[0].outcome, OUTCOME_FATAL);
	done(m, facts);
}

/* T12: a try fails, cached segments are freed, the next try is served; then another thread's need,
 * and one that was caught. */
static void test_incidents__bursts_and_threads(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	for (unsigned n = 0; n < 37; n++)
		segment(m, BASE + n * SEGMENT, SEGMENT, 1);
	maker_fail(m, 0, 200 * MiB, 0, TOTAL, 2);
	for (unsigned n = 0; n < 37; n++)
		segment_freed(m, BASE + n * SEGMENT);
	segment(m, BASE + 2 * GiB, 200 * MiB, 1);
	maker_block(m, 0, BASE + 2 * GiB, 200 * MiB, 3);
	m->thread = 1;
	maker_fail(m, 0, 64 * MiB, 0, TOTAL, 7);               /* NCCL's, in its own thread */
	m->thread = 0;
	maker_fail(m, 0, 300 * MiB, 0, TOTAL, 2);
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 299 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, 5);
	segment(m, BASE + 4 * GiB, SEGMENT, 1);
	maker_block(m, 0, BASE + 4 * GiB, 4 * MiB, 3);
	m->now_ns += 20000000000ull;
	/* long after: another need */
	maker_fail_of(m, CUF_KIND_FRAMEWORK, 0, 500 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, 5);
	maker_end(m, CUF_END_EXIT, 1);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->incident_count, 4);
	assert_int_equal(facts->incidents[0].outcome, OUTCOME_RECOVERED);
	assert_int_equal(facts->incidents[1].requested_bytes, 64 * MiB);
	assert_int_equal(facts->incidents[1].framework_requested_bytes, CUF_UNKNOWN);
	assert_int_equal(facts->incidents[2].requested_bytes, 300 * MiB);
	assert_int_equal(facts->incidents[2].framework_requested_bytes, 299 * MiB);
	assert_int_equal(facts->incidents[2].attempt_count, 1);
	assert_int_equal(facts->incidents[3].framework_requested_bytes, 500 * MiB);
	done(m, facts);
}

static struct cuf_block *block_at(struct maker *m, unsigned space, uint64_t addr)
{
	return maker_find(m, cuf_key(space, addr));
}

/* The role of a block: set by the framework, from the names in its stack, from the library that
 * requested it. */
static void test_roles__rows_by_kind_and_role(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	uint64_t *frames = maker_section(m, CUF_SEC_STACK_FRAMES);
	struct cuf_stack *stacks = maker_section(m, CUF_SEC_STACK_INDEX);
	maker_module(m, 1, 0x401000 + 9 * 0x1000, 0x401000 + 10 * 0x1000, "/usr/lib/libnccl.so.2");
	maker_meta(m, CUF_META_FUNCTION, 0x401000 + 4 * 0x1000 + 16,
	           "_ZN14llama_kv_cacheC1Ev+0x40");
	maker_meta(m, CUF_META_FUNCTION, 0x401000 + 7 * 0x1000 + 16,
	           "llama_kv_cache::llama_kv_cache(int)+0x40");
	maker_meta(m, CUF_META_CODE, 3, "LlamaModel.load_weights\n/opt/vllm/llama.py\n400\n");
	maker_meta(m, CUF_META_CODE, 4,
	           "DynamicLayer.update\n/opt/transformers/cache_utils.py\n90\n");
	maker_meta(m, CUF_META_CODE, 5, "Table.update\n/opt/app/table.py\n90\n");
	frames[stacks[10].first + 1] = cuf_frame_python(3, 412);
	frames[stacks[11].first + 1] = cuf_frame_python(4, 97);
	frames[stacks[12].first + 1] = cuf_frame_python(5, 97);
	segment(m, BASE, 100 * MiB, 1);
	maker_block(m, 0, BASE, 30 * MiB, 11);                 /* stacks are from 1: load_weights */
	maker_block(m, 0, BASE + 30 * MiB, 12 * MiB, 12);      /* DynamicLayer.update */
	maker_block(m, 0, BASE + 42 * MiB, 5 * MiB, 13);       /* somebody's update */
	maker_block(m, 0, BASE + 50 * MiB, 6 * MiB, 0);        /* no stack */
	maker_alloc(m, BASE + 1 * GiB, 64 * MiB, 9);           /* NCCL */
	maker_alloc(m, BASE + 2 * GiB, 128 * MiB, 7);          /* KV, by its name */
	maker_alloc(m, BASE + 3 * GiB, 256 * MiB, 8);          /* weights, as ggml set it */
	block_at(m, CUF_SPACE_DEVICE, BASE + 3 * GiB)->role = CUF_ROLE_WEIGHTS;
	maker_born(m, CUF_KIND_VMM, 0, 0x1000, SEGMENT, 1, 0, 0);
	block_at(m, CUF_SPACE_HANDLE, 0x1000)->role = CUF_ROLE_SCRATCH;
	maker_free_memory(m, 0, 8 * GiB, TOTAL);
	facts = report_at(m, FACTS_AT_NOW, 0);
	assert_int_equal(row(facts, OWNER_DEVICE, "weights"), (256 + 30) * MiB);
	assert_int_equal(row(facts, OWNER_DEVICE, "kv"), (128 + 12) * MiB);
	assert_int_equal(row(facts, OWNER_DEVICE, "communication"), 64 * MiB);
	assert_int_equal(row(facts, OWNER_DEVICE, NULL), (5 + 6) * MiB);
	assert_int_equal(row(facts, OWNER_VMM, "workspace"), SEGMENT);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), (100 - 53) * MiB);
	assert_string_equal(facts->devices[0].owners[0].role, "weights");
	assert_int_equal(facts->devices[0].owners[0].role_basis, BASIS_OBSERVED);
	done(m, facts);
}

/* Arenas whose inside is not reported: the requesting library shows the owner, sizes show the
 * kind. */
static void test_regions__of_other_allocators(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	const struct fact_framework *f;
	maker_module(m, 1, 0x401000 + 3 * 0x1000, 0x401000 + 4 * 0x1000,
	             "/opt/libonnxruntime_providers_cuda.so");
	maker_module(m, 2, 0x401000 + 4 * 0x1000, 0x401000 + 5 * 0x1000,
	             "/opt/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
	for (unsigned n = 0; n < 4; n++)
		maker_alloc(m, BASE + n * GiB, 1 * MiB << n, 3);
	maker_alloc(m, BASE + 8 * GiB, 6 * GiB, 4);
	maker_alloc(m, BASE + 15 * GiB, 64 * MiB, 5);
	maker_fail(m, 0, 12 * GiB, 8 * GiB, TOTAL, 2);
	maker_end(m, CUF_END_EXIT, 1);
	facts = report_at(m, FACTS_AT_AUTO, 0);
	assert_int_equal(facts->devices[0].fragmentation.framework_count, 2);
	f = framework(facts);
	assert_string_equal(f[0].name, "ONNX Runtime");
	assert_string_equal(f[0].backend, "BFC arena, regions doubled");
	assert_int_equal(f[0].reserved_bytes, 15 * MiB);
	assert_int_equal(f[0].allocated_bytes, CUF_UNKNOWN);
	assert_int_equal(f[0].segment_count, 4);
	assert_string_equal(f[1].name, "JAX");
	assert_string_equal(f[1].backend, "preallocated");
	assert_int_equal(f[1].basis, BASIS_INFERRED);
	assert_int_equal(row(facts, OWNER_FRAMEWORK_SLACK, NULL), CUF_UNKNOWN);
	assert_int_equal(facts->incidents[0].largest_free[LAYER_SEGMENT].bytes, CUF_UNKNOWN);
	assert_int_equal(facts->incidents[0].fits_if_packed, FACT_CANNOT_TELL);
	done(m, facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_segments__checkerboard),
		cmocka_unit_test(test_segments__pools_and_edges),
		cmocka_unit_test(test_segments__empty_ones),
		cmocka_unit_test(test_segments__expandable),
		cmocka_unit_test(test_segments__at_any_moment),
		cmocka_unit_test(test_segments__a_lost_past_is_estimated),
		cmocka_unit_test(test_incidents__expandable_with_the_framework),
		cmocka_unit_test(test_incidents__expandable_without_the_framework),
		cmocka_unit_test(test_incidents__a_cap_is_an_incident_of_its_own),
		cmocka_unit_test(test_incidents__bursts_and_threads),
		cmocka_unit_test(test_roles__rows_by_kind_and_role),
		cmocka_unit_test(test_regions__of_other_allocators),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
