/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each cause and its neighbour, from recordings made by hand. The rule for confidence and the
 * tables of sentences are in cause_rules.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>
#include "analysis/explain/causes.h"
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)
#define CONTEXT (64 * MiB)

static const struct maker_plan roomy = { 512, 16384, 512, 4096, 8192, 8192, 64, 64, 8, 0, 0 };

enum {
	SITE_WEIGHTS = 11,
	SITE_KV = 12,
	SITE_SLOT = 13,
	SITE_STEP = 14,
	SITE_KEEP = 15,
	SITE_GROW = 16,
	SITE_OTHER = 17
};

struct world { struct maker *m; uint64_t next, held; };

static void name(struct world *w, uint32_t site, const char *function)
{
	maker_meta(w->m, CUF_META_FUNCTION, 0x401000 + site * 256, function);
}

static struct world begin(uint64_t others_bytes)
{
	struct world w = { maker_new(&roomy), 0x700000000000, 0 };
	struct cuf_device *d = maker_device(w.m, 0, TOTAL);
	maker_meta(w.m, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_meta(w.m, CUF_META_HOOK, 200, "cudaMalloc");
	maker_meta(w.m, CUF_META_HOOK, 104, "cuMemGetInfo_v2");
	for (uint32_t id = 1; id < 32; id++)
		maker_stack(w.m, id, 0x401000 + id * 256, 2);
	d->first_free_bytes = TOTAL - CONTEXT - others_bytes;
	d->first_live_bytes = 0;
	w.held = CONTEXT + others_bytes;
	return w;
}

static uint64_t pages(uint64_t bytes) { return (bytes + 2 * MiB - 1) / (2 * MiB) * (2 * MiB); }
static uint64_t room(const struct world *w) { return TOTAL - w->held; }

static uint64_t take(struct world *w, uint64_t bytes, uint32_t site)
{
	uint64_t addr = w->next;
	w->next += pages(bytes);
	w->held += pages(bytes);
	maker_alloc(w->m, addr, bytes, site);
	return addr;
}

static void give(struct world *w, uint64_t addr, uint64_t bytes)
{
	w->held -= pages(bytes);
	maker_free(w->m, addr);
}

static void step(struct world *w, uint64_t bytes) { give(w, take(w, bytes, SITE_STEP), bytes); }

static void weights(struct world *w, unsigned layers, uint64_t layer_bytes)
{
	static const unsigned eighths[] = { 4, 2, 1, 1 };
	name(w, SITE_WEIGHTS, "load_tensors");
	for (unsigned i = 0; i < layers; i++)
		for (unsigned part = 0; part < 4; part++)
			take(w, layer_bytes / 8 * eighths[part] + part * 4096, SITE_WEIGHTS);
}

static void ask_memory(struct world *w)
{
	maker_event(w->m, (struct cuf_event){
		.op = CUF_OP_FREE_MEMORY, .bytes = room(w), .aux = TOTAL, .hook = 104,
	});
}

static struct facts *ends(struct world *w)
{
	struct facts *facts;
	maker_end(w->m, CUF_END_EXIT, 1);
	assert_int_equal(facts_build_memory(w->m->data, w->m->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(facts->fatal_incident, facts->incident_count);
	return facts;
}

static struct facts *fails(struct world *w, uint64_t bytes, uint32_t site)
{
	maker_fail(w->m, 0, bytes, room(w), TOTAL, site);
	return ends(w);
}

static bool in_recording(const struct maker *m, uint64_t seq)
{
	return seq && seq <= m->h->next_seq; /* nothing left these rings */
}

/* What every verdict must keep: a sentence, events that exist, a confidence within its bounds,
 * figures in its advice. */
static void check_form(const struct world *w, const struct fact_cause *c)
{
	assert_non_null(c);
	assert_true(c->confidence >= 0 && c->confidence <= CAUSE_MOST);
	assert_true(strlen(c->summary) > 10);
	for (size_t i = 0; i < c->evidence_count; i++) {
		assert_true(c->evidence[i].seq_count || c->evidence[i].time_ns != CUF_UNKNOWN);
		assert_null(strchr(c->evidence[i].text, '{'));
		for (size_t s = 0; s < c->evidence[i].seq_count; s++)
			assert_true(in_recording(w->m, c->evidence[i].seqs[s]));
	}
	for (size_t i = 0; i < c->fix_count; i++)
		assert_null(strchr(c->fixes[i].text, '{'));
	assert_true(!*c->id || c->evidence_count > 0);
}

static void expect(struct world *w, struct facts *facts, const char *id, double least)
{
	const struct fact_cause *c = facts->cause;
	check_form(w, c);
	if (strcmp(c->id, id) != 0)
		fail_msg("expected %s, found %s (%.2f): %s", id, c->id, c->confidence, c->summary);
	if (c->confidence < least)
		fail_msg("%s is %.2f sure, expected %.2f", id, c->confidence, least);
	facts_free(facts);
	maker_free_all(w->m);
}

static void test_causes__a_model_too_large_and_a_tenant_beside_it(void **state)
{
	struct world w = begin(0);
	weights(&w, 30, 512 * MiB);
	expect(&w, fails(&w, 256 * MiB, SITE_WEIGHTS), "S2a", CAUSE_HIGH);
	w = begin(7 * GiB);
	weights(&w, 16, 512 * MiB);
	expect(&w, fails(&w, 1 * GiB, SITE_WEIGHTS), "S1.tenant", CAUSE_HIGH);
	/* as many bytes are free, but not as many whole pages */
	w = begin(7 * GiB + 1 * MiB);
	weights(&w, 16, 512 * MiB);
	expect(&w, fails(&w, room(&w) - MiB / 2, SITE_WEIGHTS), "S1.tenant", CAUSE_HIGH);
}

static void test_causes__a_cache_in_advance_and_slots(void **state)
{
	struct world w = begin(0);
	weights(&w, 16, 256 * MiB);
	step(&w, 600 * MiB);
	ask_memory(&w);
	while (room(&w) >= 512 * MiB)
		take(&w, 512 * MiB, SITE_KV);
	expect(&w, fails(&w, 512 * MiB, SITE_KV), "S3", CAUSE_MEDIUM);
	/* the same blocks without a look at free memory, at the program's start: one a slot */
	w = begin(0);
	while (room(&w) >= 256 * MiB)
		take(&w, 256 * MiB, SITE_SLOT);
	struct facts *facts = fails(&w, 256 * MiB, SITE_SLOT);
	assert_int_equal(facts->cause->fixes[0].value, (TOTAL - CONTEXT) / (256 * MiB));
	expect(&w, facts, "S5", CAUSE_MEDIUM);
}

static void test_causes__a_cache_that_leaves_no_room(void **state)
{
	struct world w = begin(0);
	weights(&w, 16, 256 * MiB);
	step(&w, 300 * MiB);
	ask_memory(&w);
	for (unsigned i = 0; i < 23; i++)
		take(&w, 512 * MiB, SITE_KV);
	name(&w, SITE_OTHER, "capture_model");
	expect(&w, fails(&w, 600 * MiB, SITE_OTHER), "S3.V", CAUSE_MEDIUM);
}

/* torch.cat: a block one step longer, then the old one is freed. */
static uint64_t generate(struct world *w, uint64_t each, unsigned tokens)
{
	uint64_t old = 0;
	for (unsigned t = 1; t <= tokens; t++) {
		uint64_t now = take(w, t * each, SITE_KV);
		if (old)
			give(w, old, (t - 1) * each);
		old = now;
	}
	return old;
}

static void test_causes__a_cache_that_grows_with_the_context(void **state)
{
	struct world w = begin(0);
	weights(&w, 16, 512 * MiB);
	for (unsigned r = 0; r < 3; r++)
		give(&w, generate(&w, 64 * MiB, 12), 12 * 64 * MiB);
	generate(&w, 64 * MiB, 60);
	struct facts *facts = fails(&w, 61 * 64 * MiB, SITE_KV);
	assert_int_equal(facts->cause->fixes[0].value, 60);
	expect(&w, facts, "S4", CAUSE_HIGH);
	/* only one request: a leak cannot be excluded, and the report states that */
	w = begin(0);
	weights(&w, 16, 512 * MiB);
	generate(&w, 64 * MiB, 60);
	facts = fails(&w, 61 * 64 * MiB, SITE_KV);
	bool said = false;
	for (size_t i = 0; i < facts->cause->evidence_count; i++)
		said |= strstr(facts->cause->evidence[i].text, "leak") != NULL;
	assert_true(said);
	expect(&w, facts, "S4", CAUSE_MEDIUM);
}

static void test_causes__a_long_prompt(void **state)
{
	struct world w = begin(0);
	weights(&w, 16, 512 * MiB);
	for (unsigned i = 0; i < 20; i++)
		step(&w, (60 + i) * MiB);
	name(&w, SITE_OTHER, "attention_forward");
	struct facts *facts = fails(&w, 9 * GiB, SITE_OTHER);
	assert_int_equal(facts->cause->fixes[0].value, room(&w));
	expect(&w, facts, "S2b", CAUSE_HIGH);
}

/* One buffer that is larger than the device, without a name: a step, or the cache for the context
 * that was set. Where a doubt is named, it is the other one. */
static void test_causes__a_buffer_larger_than_the_device(void **state)
{
	for (unsigned is_set = 0; is_set < 2; is_set++) {
		struct world w = begin(0);
		struct facts *facts;

		if (is_set)
			maker_meta(w.m, CUF_META_CMDLINE, 0, "server -c 131072 -m model");
		weights(&w, 8, 512 * MiB);
		facts = fails(&w, 2 * TOTAL, SITE_OTHER);
		if (is_set) {
			assert_true(facts->cause->confidence < CAUSE_HIGH);
			assert_string_equal(facts->cause->runner_up_id, "S3");
		}
		expect(&w, facts, "S2b", is_set ? CAUSE_MEDIUM : CAUSE_HIGH);
	}
}

/* A sampler's buffer for all sequences that were set, without a name. */
static void test_causes__a_buffer_for_all_sequences_that_were_set(void **state)
{
	struct world w = begin(0);
	struct facts *facts;

	maker_meta(w.m, CUF_META_CMDLINE, 0, "server --max-num-seqs 1024");
	weights(&w, 31, 512 * MiB);
	facts = fails(&w, 600 * MiB, SITE_OTHER);
	assert_string_equal(facts->cause->runner_up_id, "S5");
	expect(&w, facts, "S2b", CAUSE_MEDIUM);
}

/* Requests side by side: blocks come in a burst and go together; at the failure there are more than
 * ever. late: another thread was given its block just before, and it is recorded just after. */
static void test_causes__too_many_at_once(void **state)
{
	for (unsigned late = 0; late < 2; late++) {
		struct world w = begin(0);
		uint64_t blocks[16];
		struct facts *facts;

		weights(&w, 16, 256 * MiB);
		for (unsigned wave = 0; wave < 10; wave++) {
			for (unsigned i = 0; i < 4 + wave % 3; i++)
				blocks[i] = take(&w, 1 * GiB, SITE_SLOT);
			for (unsigned i = 0; i < 4 + wave % 3; i++)
				give(&w, blocks[i], 1 * GiB);
		}
		while (room(&w) >= (1 + late) * GiB)
			take(&w, 1 * GiB, SITE_SLOT);
		maker_fail(w.m, 0, 1 * GiB, room(&w) - late * GiB, TOTAL, SITE_SLOT);
		w.m->thread = 1;
		if (late)
			take(&w, 1 * GiB, SITE_SLOT);
		facts = ends(&w);
		assert_int_equal(facts->cause->fixes[0].value,
				 (TOTAL - CONTEXT - 16 * (256 * MiB + 8 * MiB)) / (1 * GiB));
		expect(&w, facts, "S5", CAUSE_MEDIUM);
	}
}

/* The wave that fails is called from elsewhere than the waves before it: what they have in common
 * is the size. */
static void test_causes__too_many_at_once_from_another_caller(void **state)
{
	struct world w = begin(0);
	uint64_t blocks[16];
	weights(&w, 16, 256 * MiB);
	for (unsigned wave = 0; wave < 10; wave++) {
		for (unsigned i = 0; i < 3; i++)
			blocks[i] = take(&w, 1 * GiB, SITE_SLOT);
		for (unsigned i = 0; i < 3; i++)
			give(&w, blocks[i], 1 * GiB);
	}
	while (room(&w) >= 1 * GiB)
		take(&w, 1 * GiB, SITE_OTHER);
	struct facts *facts = fails(&w, 1 * GiB, SITE_OTHER);
	assert_string_equal(facts->cause->name, "too many requests at once");
	assert_non_null(strstr(facts->cause->summary, "before there were at most 3"));
	expect(&w, facts, "S5", CAUSE_MEDIUM);
}

/* A cache of sequences that come and go is at its highest, and a small step is refused: it is the
 * cache that filled the device. */
static struct facts *fill_by_sequences(struct world *w, bool named)
{
	uint64_t blocks[256] = { 0 };
	unsigned turn = 0;
	if (named)
		name(w, SITE_KV, "append_kv");
	weights(w, 16, 256 * MiB);
	for (; room(w) >= 64 * MiB; turn++) {
		unsigned lengthens = turn / 6 + 5;
		for (unsigned i = 0; turn % 8 == 7 && i < 4; i++) /* a sequence ends now and then */
			if (blocks[(turn + i) % lengthens]) {
				give(w, blocks[(turn + i) % lengthens], 48 * MiB);
				blocks[(turn + i) % lengthens] = 0;
			}
		for (unsigned i = 0; i < 256; i++)
			if (!blocks[i]) {
				blocks[i] = take(w, 48 * MiB, SITE_KV);
				break;
			}
		step(w, 8 * MiB);
	}
	while (room(w) >= 8 * MiB)
		take(w, 8 * MiB, SITE_OTHER);
	return fails(w, 40 * MiB, SITE_STEP);
}

/* Without a name its pages tell, which end by the sequence while others go on. */
static void test_causes__whoever_asks_last_did_not_fill_the_device(void **state)
{
	struct world w = begin(0);
	struct facts *facts = fill_by_sequences(&w, true);
	assert_int_equal(facts->cause->site.id, SITE_KV);
	expect(&w, facts, "S4", CAUSE_MEDIUM);
	w = begin(0);
	expect(&w, fill_by_sequences(&w, false), "S4", CAUSE_MEDIUM);
}

/* Four blocks of 512 KiB in each page, all but one freed. */
static void checkerboard(struct world *w, unsigned count)
{
	uint64_t first = w->next;
	for (unsigned i = 0; i < count * 4; i++)
		maker_alloc(w->m, first + i * 512 * 1024ull, 512 * 1024, SITE_KEEP);
	for (unsigned i = 0; i < count * 4; i++)
		if (i % 4)
			maker_free(w->m, first + i * 512 * 1024ull);
	w->next += count * 2 * MiB;
	w->held += count * 2 * MiB;
}

static void test_causes__fragmentation_and_plain_shortage(void **state)
{
	struct world w = begin(0);
	take(&w, room(&w) - 420 * MiB, SITE_WEIGHTS);
	checkerboard(&w, 200);
	expect(&w, fails(&w, 128 * MiB, SITE_STEP), "S6.F1", CAUSE_MEDIUM);
	/* the holes would not have been enough: a share of the blame, in percent */
	w = begin(0);
	take(&w, room(&w) - 420 * MiB, SITE_WEIGHTS);
	checkerboard(&w, 200);
	struct facts *facts = fails(&w, 1 * GiB, SITE_STEP);
	bool percent = false;
	assert_null(strstr(facts->cause->id, "S6"));
	for (size_t i = 0; i < facts->cause->evidence_count; i++)
		percent |= strchr(facts->cause->evidence[i].text, '%') != NULL;
	assert_true(percent);
	check_form(&w, facts->cause);
	facts_free(facts);
	maker_free_all(w.m);
}

static void test_causes__a_ladder_of_sizes_and_a_leak_that_grows(void **state)
{
	struct world w = begin(0);
	uint64_t bytes = 64 * MiB;
	weights(&w, 16, 256 * MiB);
	for (; room(&w) > bytes; bytes += bytes / 20) {
		take(&w, bytes, SITE_GROW);
		step(&w, 8 * MiB);
	}
	expect(&w, fails(&w, bytes, SITE_GROW), "S6.F2", CAUSE_MEDIUM);
	w = begin(0);
	weights(&w, 16, 256 * MiB);
	for (bytes = 8 * MiB; room(&w) > bytes + 40 * MiB; bytes += 8 * MiB) {
		take(&w, bytes, SITE_KEEP);
		step(&w, 40 * MiB);
	}
	expect(&w, fails(&w, bytes + 64 * MiB, SITE_KEEP), "S8", CAUSE_MEDIUM);
}

static void test_causes__a_leak_and_a_cache_that_fills(void **state)
{
	struct world w = begin(0);
	weights(&w, 16, 256 * MiB);
	while (room(&w) >= 96 * MiB) {
		take(&w, 64 * MiB, SITE_KEEP);
		step(&w, 30 * MiB);
	}
	struct facts *facts = fails(&w, 96 * MiB, SITE_STEP);
	/* its rounds are inferred, so that nothing is said of what each leaves */
	assert_int_equal(facts->cause->fixes[0].value, CUF_UNKNOWN);
	assert_null(strstr(facts->cause->fixes[0].text, "each"));
	assert_null(strstr(facts->cause->summary, "each"));
	expect(&w, facts, "S8", CAUSE_HIGH);
	/* it fills, then it turns over: nothing is wrong */
	w = begin(0);
	uint64_t entries[64] = { 0 };
	weights(&w, 16, 256 * MiB);
	for (unsigned i = 0; i < 300; i++) {
		if (entries[i % 64])
			give(&w, entries[i % 64], 64 * MiB);
		entries[i % 64] = take(&w, 64 * MiB, SITE_KEEP);
		step(&w, 30 * MiB);
	}
	maker_end(w.m, CUF_END_EXIT, 0);
	assert_int_equal(facts_build_memory(w.m->data, w.m->bytes, NULL, &facts, NULL), 0);
	assert_null(facts->cause);
	facts_free(facts);
	maker_free_all(w.m);
}

static void test_causes__a_limit_and_a_near_miss(void **state)
{
	struct world w = begin(0);
	weights(&w, 8, 256 * MiB);
	expect(&w, fails(&w, 1 * GiB, SITE_STEP), "S1.cap", CAUSE_HIGH);
	w = begin(0);
	weights(&w, 16, 512 * MiB);
	uint64_t cached = take(&w, 4 * GiB, SITE_STEP);
	maker_fail(w.m, 0, 5 * GiB, room(&w), TOTAL, SITE_STEP);
	give(&w, cached, 4 * GiB);
	take(&w, 5 * GiB, SITE_STEP);
	maker_end(w.m, CUF_END_EXIT, 0);
	struct facts *facts;
	assert_int_equal(facts_build_memory(w.m->data, w.m->bytes, NULL, &facts, NULL), 0);
	assert_null(facts->cause); /* of the run: nothing is wrong */
	check_form(&w, facts->incidents[0].cause);
	assert_string_equal(facts->incidents[0].cause->id, "S0");
	facts_free(facts);
	maker_free_all(w.m);
}

static void test_causes__page_locked_memory_is_not_the_device(void **state)
{
	struct world w = begin(0);
	weights(&w, 8, 256 * MiB);
	maker_fail(w.m, 0, 1 * GiB, room(&w), TOTAL, SITE_STEP)->kind = CUF_KIND_PINNED;
	maker_end(w.m, CUF_END_EXIT, 1);
	struct facts *facts;
	assert_int_equal(facts_build_memory(w.m->data, w.m->bytes, NULL, &facts, NULL), 0);
	assert_non_null(
		strstr(facts->cause->summary, "1.00 GiB of page-locked host memory was refused"));
	assert_int_equal(facts->cause->site.id, SITE_STEP);
	expect(&w, facts, "S9.H6", CAUSE_HIGH);
}

/* A host leak in a cgroup; the last sample shows whether the kernel killed it. */
static struct facts *host_growth(struct world *w, uint64_t cgroup_bytes)
{
	struct facts *facts;
	struct cuf_sample *s;
	maker_meta(w->m, CUF_META_LIMITS, 0, "memory.max=1073741824\nMemTotal=8589934592\n");
	for (unsigned i = 0; i < 100; i++) {
		uint64_t scratch = 0x100000 + i * 0x1000000ull;
		maker_host_alloc(w->m, scratch, 4 * MiB, SITE_STEP);
		maker_host_alloc(w->m, scratch + 0x800000, 8 * MiB, SITE_KEEP);
		maker_host_free(w->m, scratch);
	}
	s = maker_sample(w->m);
	s->rss_bytes = 900 * MiB;
	s->cgroup_bytes = cgroup_bytes;
	s->host_live_bytes = 800 * MiB;
	assert_int_equal(facts_build_memory(w->m->data, w->m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static void test_causes__killed_for_memory_and_killed_by_somebody(void **state)
{
	struct world w = begin(0);
	struct facts *facts = host_growth(&w, 1020 * MiB);
	assert_int_equal(facts->processes[0].end, END_OOM_KILLED);
	expect(&w, facts, "S9.H2", CAUSE_HIGH);
	w = begin(0);
	weights(&w, 4, 256 * MiB);
	maker_sample(w.m);
	assert_int_equal(facts_build_memory(w.m->data, w.m->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(facts->processes[0].end, END_KILLED);
	assert_null(facts->cause);
	facts_free(facts);
	maker_free_all(w.m);
}

static void test_causes__a_lossy_recording_is_less_sure(void **state)
{
	double whole;
	for (int lossy = 0; lossy < 2; lossy++) {
		struct world w = begin(0);
		weights(&w, 30, 512 * MiB);
		w.m->h->lost[CUF_LOST_RING] = lossy ? 100 : 0;
		struct facts *facts = fails(&w, 512 * MiB, SITE_WEIGHTS);
		check_form(&w, facts->cause);
		assert_int_equal(facts->cause->lack_count, lossy);
		if (!lossy)
			whole = facts->cause->confidence;
		else
			assert_true(facts->cause->confidence < whole - 0.1);
		facts_free(facts);
		maker_free_all(w.m);
	}
}

/* Nothing is known of the device: no verdict, and what would settle it. */
static void test_causes__without_figures_it_is_inconclusive(void **state)
{
	struct world w = begin(0);
	struct facts *facts;
	step(&w, 100 * MiB);
	struct cuf_device *d = maker_device(w.m, 0, CUF_UNKNOWN);
	d->total_bytes = CUF_UNKNOWN;
	maker_fail(w.m, 0, 100 * MiB, CUF_UNKNOWN, CUF_UNKNOWN, SITE_STEP);
	maker_end(w.m, CUF_END_EXIT, 1);
	assert_int_equal(facts_build_memory(w.m->data, w.m->bytes, NULL, &facts, NULL), 0);
	assert_string_equal(facts->cause->id, "");
	assert_string_equal(facts->cause->name, "inconclusive");
	assert_true(facts->cause->lack_count > 0);
	facts_free(facts);
	maker_free_all(w.m);
}

/* No device is that small and no block is empty, but a damaged recording may say so. */
static void test_causes__impossible_sizes_are_no_family(void **state)
{
	static const uint64_t sizes[] = { 0, UINT64_MAX };
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct world w = { maker_new(&roomy), 0x700000000000, 0 };
		struct facts *facts;
		maker_device(w.m, 0, 100);
		for (unsigned block = 0; block < 20; block++)
			maker_alloc(w.m, w.next += 4096, sizes[i], SITE_KV);
		maker_fail(w.m, 0, 100 * MiB, 50, 100, SITE_KV);
		maker_end(w.m, CUF_END_EXIT, 1);
		assert_int_equal(facts_build_memory(w.m->data, w.m->bytes, NULL, &facts, NULL), 0);
		check_form(&w, facts->cause);
		facts_free(facts);
		maker_free_all(w.m);
	}
}

/* Over all tests of this file: a signal that two steps set would depend on their order. */
static int signals_were_set_once(void **state)
{
	return evidence_set_twice ? -1 : 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes__a_model_too_large_and_a_tenant_beside_it),
		cmocka_unit_test(test_causes__a_cache_in_advance_and_slots),
		cmocka_unit_test(test_causes__a_cache_that_leaves_no_room),
		cmocka_unit_test(test_causes__a_cache_that_grows_with_the_context),
		cmocka_unit_test(test_causes__a_long_prompt),
		cmocka_unit_test(test_causes__a_buffer_larger_than_the_device),
		cmocka_unit_test(test_causes__a_buffer_for_all_sequences_that_were_set),
		cmocka_unit_test(test_causes__too_many_at_once),
		cmocka_unit_test(test_causes__too_many_at_once_from_another_caller),
		cmocka_unit_test(test_causes__whoever_asks_last_did_not_fill_the_device),
		cmocka_unit_test(test_causes__fragmentation_and_plain_shortage),
		cmocka_unit_test(test_causes__a_ladder_of_sizes_and_a_leak_that_grows),
		cmocka_unit_test(test_causes__a_leak_and_a_cache_that_fills),
		cmocka_unit_test(test_causes__a_limit_and_a_near_miss),
		cmocka_unit_test(test_causes__page_locked_memory_is_not_the_device),
		cmocka_unit_test(test_causes__killed_for_memory_and_killed_by_somebody),
		cmocka_unit_test(test_causes__a_lossy_recording_is_less_sure),
		cmocka_unit_test(test_causes__without_figures_it_is_inconclusive),
		cmocka_unit_test(test_causes__impossible_sizes_are_no_family),
	};
	return cmocka_run_group_tests(tests, NULL, signals_were_set_once);
}
