/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases that nobody named, from what the memory did: load, profile, kv-init, graph capture, warm-up, serving. The rules
 * are in README.md. They are meant to miss rather than to claim: a program that fits none has none.
 */
#include "analysis/phases/phases.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/replay/replay.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"

enum {
	STEPS_MAX = 1 << 16,      /* driver events looked at: inference begins with what comes first */
	LOAD_COUNT = 4, RUN_COUNT = 4, BURST_COUNT = 3, CAPTURES_MAX = 16,
};
#define LOAD_BYTES ((uint64_t)64 << 20)
#define KV_BYTES ((uint64_t)64 << 20)
#define BURST_NS 1000000000ull
#define CAPTURE_GAP_NS 5000000000ull
#define LEVEL_MAX ((uint64_t)1 << 57) /* a hostile file */

/* One thing that the driver did. lives: the block was never freed by the program. */
struct step { uint64_t seq, time_ns, addr, bytes; enum { STEP_ALLOC, STEP_FREE, STEP_ASKED, STEP_FAILED, STEP_CAPTURE } sort; uint8_t device, role; bool lives; };

struct look {
	const struct events *events;
	struct step *steps; size_t count, room;
	const char *const *hook_names; size_t hook_name_count;
	struct arena *arena;
	struct inferred *found; size_t found_count;
	struct inferred captures[CAPTURES_MAX]; size_t capture_count; bool captures_many;
	uint64_t capture_calls;
};

/* ---- the steps ---- */

static bool asked_by_program(const struct look *l, const struct cuf_event *e)
{
	const char *name = e->hook < l->hook_name_count ? l->hook_names[e->hook] : NULL;
	return name && strstr(name, "MemGetInfo");
}

static bool step_of(const struct look *l, const struct cuf_event *e, struct step *step)
{
	*step = (struct step){ .seq = e->seq, .time_ns = e->time_ns, .addr = e->addr, .bytes = e->bytes, .device = e->device };
	if (e->op == CUF_OP_FREE_MEMORY && asked_by_program(l, e))
		step->sort = STEP_ASKED;
	else if (e->op == CUF_OP_FAIL)
		step->sort = STEP_FAILED;
	else if (e->op == CUF_OP_CAPTURE)
		step->sort = STEP_CAPTURE;
	else if (kind_is_device_memory(e->kind) && e->kind != CUF_KIND_GRAPH && (e->op == CUF_OP_ALLOC || e->op == CUF_OP_FREE))
		step->sort = e->op == CUF_OP_ALLOC ? STEP_ALLOC : STEP_FREE;
	else
		return false;
	step->lives = step->sort == STEP_ALLOC;
	return true;
}

static void see_capture(struct look *l, const struct cuf_event *e)
{
	struct inferred *last = l->capture_count ? &l->captures[l->capture_count - 1] : NULL;
	if (e->extra) {
		l->capture_calls++;
		if (last && e->time_ns - last->end_ns <= CAPTURE_GAP_NS)
			return;
		if (l->capture_count == CAPTURES_MAX) {
			l->captures_many = true;
			return;
		}
		l->captures[l->capture_count++] = (struct inferred){ .begin_ns = e->time_ns, .end_ns = e->time_ns, .begin_seq = e->seq, .end_seq = e->seq };
	} else if (last) {
		last->end_ns = e->time_ns;
		last->end_seq = e->seq;
	}
}

/* The last allocation at each address, by its step + 1. */
enum { ADDRESSES = 4 * STEPS_MAX };

static uint32_t *place_of(const struct look *l, uint32_t *last_at, uint64_t addr)
{
	uint32_t i = (uint32_t)((addr >> 9) * 0x9E3779B97F4A7C15ull >> 40) % ADDRESSES;
	while (last_at[i] && l->steps[last_at[i] - 1].addr != addr)
		i = (i + 1) % ADDRESSES;
	return &last_at[i];
}

static void take_event(struct look *l, uint32_t *last_at, const struct cuf_event *e)
{
	uint32_t *place = place_of(l, last_at, e->addr);
	struct step step;
	if (e->op == CUF_OP_CAPTURE)
		see_capture(l, e);
	if (e->op == CUF_OP_ROLE && *place)
		l->steps[*place - 1].role = (uint8_t)(e->extra < CUF_ROLE_MAX ? e->extra : 0);
	if (!step_of(l, e, &step))
		return;
	if (step.sort == STEP_FREE && *place)
		l->steps[*place - 1].lives = false;
	if (l->count == STEPS_MAX)
		return;
	xalloc_grow(&l->steps, l->count, &l->room, sizeof *l->steps);
	l->steps[l->count++] = step;
	if (step.sort == STEP_ALLOC)
		*place = (uint32_t)l->count;
}

static void read_steps(struct look *l)
{
	uint32_t *last_at = xalloc_zeroed(ADDRESSES, sizeof *last_at);
	for (size_t i = 0; i < l->events->count; i++) {
		struct cuf_event e = events_get(l->events, i);
		if (e.op == CUF_OP_EXIT)
			break;
		take_event(l, last_at, &e);
		events_passed(l->events, i);
	}
	free(last_at);
}

/* ---- what they make ---- */

static void claim(struct look *l, const char *name, enum fact_basis basis, const struct step *first, const struct step *last, const char *why)
{
	if (l->found_count < INFERRED_MAX)
		l->found[l->found_count++] = (struct inferred){ name, why, basis, first->time_ns, last->time_ns, first->seq, last->seq };
}

/*
 * A framework asks the driver for more in its first requests, too: its load is over when its own blocks begin to come and
 * go (a twentieth of what lives was freed). If then much less lives than stays later, those were conversions, and where
 * loading ended cannot be told. Returns the last seq of it; CUF_UNKNOWN: no framework, 0: unknown.
 */
static uint64_t framework_load_end(const struct events *framework)
{
	int64_t level = 0, freed = 0, then = 0, least = INT64_MAX;
	uint64_t seq = 0;
	for (size_t i = 0; i < framework->count; i++) {
		struct cuf_event e = events_get(framework, i);
		int64_t bytes = e.bytes < LEVEL_MAX ? (int64_t)e.bytes : (int64_t)LEVEL_MAX;
		if (e.kind != CUF_KIND_FRAMEWORK || (e.op != CUF_OP_ALLOC && e.op != CUF_OP_FREE))
			continue;
		events_passed(framework, i);
		level += e.op == CUF_OP_ALLOC ? bytes : -bytes;
		freed += e.op == CUF_OP_FREE ? bytes : 0;
		level = level < 0 ? 0 : level > (int64_t)LEVEL_MAX * 2 ? (int64_t)LEVEL_MAX * 2 : level;
		freed = freed > (int64_t)LEVEL_MAX * 2 ? (int64_t)LEVEL_MAX * 2 : freed;
		if (!seq && freed > level / 20) {
			seq = e.seq;
			then = level;
		} else if (seq && level < least) {
			least = level;
		}
	}
	if (!level && !freed)
		return CUF_UNKNOWN;
	return seq && least != INT64_MAX && then / 8 * 10 >= least ? seq : 0;
}

/* Where the first steps end that only allocate; a freed hundredth is scaffolding. */
static size_t load_end(const struct look *l)
{
	uint64_t until = framework_load_end(l->events->framework);
	uint64_t bytes = 0, freed = 0;
	size_t last = 0;
	for (size_t i = 0; i < l->count; i++) {
		const struct step *s = &l->steps[i];
		if (s->sort == STEP_FAILED || s->sort == STEP_CAPTURE || s->seq > until)
			break;
		if (s->sort == STEP_FREE && (freed += s->bytes) > bytes / 100)
			break;
		if (s->sort != STEP_ALLOC)
			continue;
		bytes += s->bytes;
		last = i + 1;
	}
	return last;
}

/* At least RUN_COUNT allocations of one size in a row, all kept, and no other such row of that size with something
 * between: rows that repeat are layers. Returns its first step; count: none. */
static size_t find_run(const struct look *l, size_t *end)
{
	size_t best = l->count, best_count = 0, runs_of_best = 0;
	for (size_t i = 0; i < l->count;) {
		size_t n = i, count = 0;
		const struct step *s = &l->steps[i];
		for (; n < l->count && (l->steps[n].sort == STEP_ASKED || (l->steps[n].sort == STEP_ALLOC && l->steps[n].bytes == s->bytes && l->steps[n].device == s->device && l->steps[n].lives)); n++)
			count += l->steps[n].sort == STEP_ALLOC;
		if (s->sort == STEP_ALLOC && s->bytes >= KV_BYTES && count >= RUN_COUNT) {
			if (best < l->count && l->steps[best].bytes == s->bytes)
				runs_of_best++;
			else if (count > best_count) {
				best = i;
				best_count = count;
				runs_of_best = 1;
				*end = n;
			}
		}
		i = n > i ? n : i + 1;
	}
	return runs_of_best == 1 ? best : l->count;
}

/* Blocks that were labelled, first to last of this role. */
static bool find_role(const struct look *l, unsigned role, size_t *first, size_t *last)
{
	size_t count = 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->steps[i].role == role) {
			*first = count++ ? *first : i;
			*last = i;
		}
	return count > 0;
}

/* From `at` on: allocations, then a row of frees that gives back at least half of what they took, then a question for
 * free memory; nothing failed. Returns its last free; count: none. */
static size_t find_profile(const struct look *l, size_t at)
{
	uint64_t taken = 0, freed = 0;
	size_t allocs = 0, frees = 0;
	for (size_t i = at; i < l->count; i++) {
		const struct step *s = &l->steps[i];
		if (s->sort == STEP_FAILED || s->sort == STEP_CAPTURE)
			break;
		if (s->sort == STEP_ALLOC && frees)
			break;
		if (s->sort == STEP_ALLOC) {
			taken += s->bytes;
			allocs++;
		} else if (s->sort == STEP_FREE) {
			freed += s->bytes;
			frees++;
		} else if (frees >= BURST_COUNT) {
			const struct step *last = &l->steps[i - 1], *first = &l->steps[i - frees];
			if (allocs >= BURST_COUNT && freed >= taken / 2 && freed >= LOAD_BYTES && last->time_ns - first->time_ns <= BURST_NS && s->time_ns - last->time_ns <= BURST_NS)
				return i - 1;
			break;
		}
	}
	return l->count;
}

/* Work that repeats over what stays: cycles (cycles.h) whose least level is a quarter of the highest, about as many
 * allocations as frees. */
struct serving { bool found; uint64_t begin_ns, end_ns, begin_seq, end_seq, cycles; };

static struct serving find_serving(const struct events *events, const struct work_base *base, uint64_t after_seq)
{
	struct serving s = { 0 };
	struct cycles *cycles = cycles_new();
	const struct cycle_mark *marks;
	struct event_merge merge;
	struct cuf_event e;
	struct work work;
	size_t count;
	int64_t delta, least = INT64_MAX, most = 0;
	uint64_t allocs = 0, frees = 0;
	work_begin(&work, base);
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &e) && e.op != CUF_OP_EXIT) {
		if (!work_follow(&work, &e, &delta) || e.seq <= after_seq)
			continue;
		cycles_feed(cycles, delta, e.seq, e.time_ns);
		allocs += delta > 0;
		frees += delta < 0;
		least = work.level < least ? work.level : least;
		most = work.level > most ? work.level : most;
		s.end_ns = e.time_ns;
		s.end_seq = e.seq;
	}
	s.cycles = cycles_finish(cycles, &marks, &count);
	if (s.cycles && least >= most / 4 && allocs <= frees + frees / 4 + 1 && frees <= allocs + allocs / 4 + 1) {
		s.found = true;
		s.begin_ns = marks[0].time_ns;
		s.begin_seq = marks[0].position > after_seq ? marks[0].position : after_seq + 1;
	}
	work_end(&work);
	cycles_free(cycles);
	return s;
}

static int by_begin(const void *a, const void *b)
{
	const struct inferred *x = a, *y = b;
	return x->begin_seq < y->begin_seq ? -1 : x->begin_seq > y->begin_seq;
}

/* Where the allocations before `end` end that stayed: what comes after them may be a profile's burst. */
static size_t kept_end(const struct look *l, size_t end)
{
	while (end && !(l->steps[end - 1].sort == STEP_ALLOC && l->steps[end - 1].lives))
		end--;
	return end;
}

static void claim_load(struct look *l, size_t end)
{
	uint64_t bytes = 0, kept = 0;
	size_t count = 0;
	for (size_t i = 0; i < end; i++) {
		if (l->steps[i].sort != STEP_ALLOC)
			continue;
		count++;
		bytes += l->steps[i].bytes;
		kept += l->steps[i].lives ? l->steps[i].bytes : 0;
	}
	if (count >= LOAD_COUNT && bytes >= LOAD_BYTES && kept >= bytes - bytes / 20)
		claim(l, "load", BASIS_INFERRED, &l->steps[0], &l->steps[end - 1],
		      arena_format(l->arena, "the first %zu allocations, %s, of which nothing was freed", count, units_bytes(bytes).s));
}

/* The start-up, from the driver's steps. */
static void infer_start(struct look *l)
{
	size_t end = load_end(l), run_end = 0, run, profile, first = 0, last = 0;
	if (find_role(l, CUF_ROLE_KV, &first, &last)) {
		run = first;
		claim(l, "kv-init", BASIS_INFERRED, &l->steps[first], &l->steps[last], "its blocks were labelled KV when they were made");
	} else if ((run = find_run(l, &run_end)) && run < l->count) {
		size_t blocks = run_end - run;
		if (run_end < l->count && l->steps[run_end].sort == STEP_FAILED && l->steps[run_end].bytes == l->steps[run].bytes)
			run_end++; /* it ended in want of the next one */
		claim(l, "kv-init", BASIS_INFERRED, &l->steps[run], &l->steps[run_end - 1],
		      arena_format(l->arena, "%zu blocks of %s in a row, none of them freed", blocks, units_bytes(l->steps[run].bytes).s));
	}
	end = run < end ? run : end;
	profile = find_profile(l, end);
	if (profile == l->count) {
		end = kept_end(l, end);
		profile = find_profile(l, end);
	}
	if (profile < l->count)
		claim(l, "profile", BASIS_INFERRED, &l->steps[end], &l->steps[profile],
		      "a burst of allocations, given back in one row, then free memory was asked for; nothing had failed");
	claim_load(l, end);
}

static uint64_t last_end(const struct look *l)
{
	uint64_t seq = 0;
	for (size_t i = 0; i < l->found_count; i++)
		seq = l->found[i].end_seq > seq ? l->found[i].end_seq : seq;
	return seq;
}

static void infer_serving(struct look *l, const struct work_base *base)
{
	uint64_t start_end = last_end(l), last_grown = 0;
	struct serving s = find_serving(l->events, base, start_end);
	struct step from, to;
	if (!s.found)
		return;
	/* where a framework keeps what it was given, the driver's last allocation ends its warm-up */
	for (size_t i = 0; i < l->count; i++)
		if (l->steps[i].sort == STEP_ALLOC && l->steps[i].seq > start_end)
			last_grown = i;
	if (start_end && last_grown && l->events->framework && l->events->framework->count && l->steps[last_grown].seq > s.begin_seq &&
	    l->steps[last_grown].time_ns - s.begin_ns < (s.end_ns - s.begin_ns) / 2) {
		from = (struct step){ .seq = s.begin_seq, .time_ns = s.begin_ns };
		claim(l, "warm-up", BASIS_INFERRED, &from, &l->steps[last_grown], "the framework asked the driver for memory, which it did no more later");
		s.begin_seq = l->steps[last_grown].seq + 1;
		s.begin_ns = l->steps[last_grown].time_ns;
	}
	from = (struct step){ .seq = s.begin_seq, .time_ns = s.begin_ns };
	to = (struct step){ .seq = s.end_seq, .time_ns = s.end_ns };
	claim(l, "serving", BASIS_INFERRED, &from, &to,
	      arena_format(l->arena, "%" PRIu64 " ups and downs over what stays live, as many frees as allocations", s.cycles));
}

size_t phases_infer(struct inferred found[INFERRED_MAX], const struct events *events, const struct work_base *base, const char *const *hook_names,
		    size_t hook_name_count, struct arena *arena)
{
	struct look l = { .events = events, .hook_names = hook_names, .hook_name_count = hook_name_count, .arena = arena, .found = found };
	read_steps(&l);
	if (!events->complete_since && l.count)
		infer_start(&l);
	for (size_t i = 0; i < l.capture_count && !l.captures_many && l.found_count < INFERRED_MAX - 2; i++) {
		l.found[l.found_count] = l.captures[i];
		l.found[l.found_count].name = "graph capture";
		l.found[l.found_count].basis = BASIS_OBSERVED;
		l.found[l.found_count++].why = l.capture_calls == 1 ? "a stream was captured" :
			arena_format(arena, "streams were captured %" PRIu64 " times", l.capture_calls);
	}
	infer_serving(&l, base);
	if (l.found_count == 1 && !strcmp(found[0].name, "load")) /* nothing followed: any program begins with allocations */
		l.found_count = 0;
	if (l.found_count)
		qsort(found, l.found_count, sizeof *found, by_begin);
	free(l.steps);
	return l.found_count;
}
