/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases that the program did not mark, inferred from what its memory did: load, profile, kv-init,
 * graph capture, warm-up, serving. The rules are in analysis/facts/README.md, "Phases and
 * requests". They miss rather than guess: a program that fits none has none.
 */
#include "analysis/growth/phases.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"
#include "analysis/base/hash_index.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"

enum {
	/* driver events, from the first on: later ones are not part of the start */
	STEPS_MAX = 1 << 16,
	/* fewer blocks are not enough to recognise a phase */
	LOAD_COUNT = 4,
	RUN_COUNT = 4,
	BURST_COUNT = 3,
	CAPTURES_MAX = 16, /* with more of them, none is shown */
};
/* Less than this is not a model that is loaded, or a block of a KV cache. */
#define LOAD_BYTES ((uint64_t)64 << 20)
#define KV_BYTES ((uint64_t)64 << 20)
/* The frees at the end of a profile run are one burst, directly followed by the query. */
#define BURST_NS 1000000000ull
/* Captures that are further apart are separate phases. */
#define CAPTURE_GAP_NS 5000000000ull
#define LEVEL_MAX ((uint64_t)1 << 57) /* a hostile file */

/* One operation of the driver. lives: the program never freed the block. */
struct step {
	uint64_t seq, time_ns, addr, bytes;
	enum { STEP_ALLOC, STEP_FREE, STEP_ASKED, STEP_FAILED, STEP_CAPTURE } sort;
	uint8_t device, role;
	bool lives;
};

/*
 * A framework requests memory in its first requests, too. Its load ends when its own blocks begin
 * to come and go: a twentieth of what is live was freed. If much less is live then than later,
 * those were conversions, and the end of loading is unknown.
 */
struct framework_load {
	int64_t level, freed;
	int64_t then, least;      /* level at `seq`, and the least since */
	uint64_t seq;             /* 0: nothing was freed so far */
};

/* Work that repeats over what stays: cycles (cycles.h) whose minimum is at least a quarter of the
 * maximum, with about as many allocations as frees. */
struct serving {
	struct cycles *cycles;
	struct work work;
	uint64_t after_seq;        /* where the start-up ends */
	int64_t least, most;
	uint64_t allocs, frees;
	uint64_t begin_ns, end_ns, begin_seq, end_seq, count;
};

/* What is known of the start-up so far. */
struct look {
	const struct events *events;
	struct step *steps;
	size_t count, room;
	struct hash_index last_at; /* the last allocation at each address, as its step + 1 */
	bool ended;                /* exit handlers are no start-up */
	struct framework_load framework;
	const char *const *hook_names; /* by the hook's number in the events */
	size_t hook_name_count;
	struct arena *arena;
	struct inferred found[INFERRED_MAX];
	size_t found_count;
	struct inferred captures[CAPTURES_MAX];
	size_t capture_count;
	bool captures_many;            /* more than CAPTURES_MAX: none is shown */
	uint64_t capture_calls;
	struct serving serving;        /* after look_start */
};

/*
 * ---- the steps ----
 *
 * Events are reduced to the operations from which phases can be inferred. Only the first STEPS_MAX
 * are kept: the start-up is before them, and memory stays bounded for any recording.
 */

/* The recorder queries free memory, too. Only a query through a hook is one by the program. */
static bool asked_by_program(const struct look *look, const struct cuf_event *event)
{
	const char *name;
	if (event->hook >= look->hook_name_count)
		return false;
	name = look->hook_names[event->hook];
	return name && strstr(name, "MemGetInfo");
}

/* Converts an event to a step. False: it shows nothing about a phase. Blocks of the graph pool are
 * excluded since their sizes are the driver's choice. */
static bool step_of(const struct look *look, const struct cuf_event *event, struct step *step)
{
	*step = (struct step){ .seq = event->seq,
			       .time_ns = event->time_ns,
			       .addr = event->addr,
			       .bytes = event->bytes,
			       .device = event->device };
	if (event->op == CUF_OP_FREE_MEMORY && asked_by_program(look, event))
		step->sort = STEP_ASKED;
	else if (event->op == CUF_OP_FAIL)
		step->sort = STEP_FAILED;
	else if (event->op == CUF_OP_CAPTURE)
		step->sort = STEP_CAPTURE;
	else if (!kind_is_device_memory(event->kind) || event->kind == CUF_KIND_GRAPH)
		return false;
	else if (event->op == CUF_OP_ALLOC)
		step->sort = STEP_ALLOC;
	else if (event->op == CUF_OP_FREE)
		step->sort = STEP_FREE;
	else
		return false;
	step->lives = step->sort == STEP_ALLOC;
	return true;
}

/* event->extra: a capture begins, else it ends. Captures with less than CAPTURE_GAP_NS between them
 * are one phase: a framework captures one graph for each batch size. */
static void see_capture(struct look *look, const struct cuf_event *event)
{
	struct inferred *last =
		look->capture_count ? &look->captures[look->capture_count - 1] : NULL;
	if (event->extra) {
		look->capture_calls++;
		if (last && event->time_ns - last->end_ns <= CAPTURE_GAP_NS)
			return;
		if (look->capture_count == CAPTURES_MAX) {
			look->captures_many = true;
			return;
		}
		look->captures[look->capture_count++] =
			(struct inferred){ .begin_ns = event->time_ns,
					   .end_ns = event->time_ns,
					   .begin_seq = event->seq,
					   .end_seq = event->seq };
	} else if (last) {
		last->end_ns = event->time_ns;
		last->end_seq = event->seq;
	}
}

/* A later free or label of an address changes its step, also when no more steps are kept. */
static void take_event(struct look *look, const struct cuf_event *event)
{
	uint32_t number = hash_index_find(&look->last_at, event->addr);
	struct step *allocation = number ? &look->steps[number - 1] : NULL;
	struct step step;

	if (event->op == CUF_OP_CAPTURE)
		see_capture(look, event);
	if (event->op == CUF_OP_ROLE && allocation) {
		allocation->role = 0;
		if (event->extra < CUF_ROLE_MAX)
			allocation->role = (uint8_t)event->extra;
	}
	if (!step_of(look, event, &step))
		return;
	if (step.sort == STEP_FREE && allocation)
		allocation->lives = false;
	if (look->count == STEPS_MAX)
		return;
	xalloc_grow(&look->steps, look->count, &look->room, sizeof *look->steps);
	look->steps[look->count++] = step;
	if (step.sort == STEP_ALLOC)
		*hash_index_place(&look->last_at, event->addr) = (uint32_t)look->count;
}

static void take_framework(struct framework_load *load, const struct cuf_event *event)
{
	int64_t bytes = signed_up_to(event->bytes, (int64_t)LEVEL_MAX);

	if (event->kind != CUF_KIND_FRAMEWORK ||
	    (event->op != CUF_OP_ALLOC && event->op != CUF_OP_FREE))
		return;
	if (event->op == CUF_OP_ALLOC) {
		load->level += bytes;
	} else {
		load->level -= bytes;
		load->freed += bytes;
	}
	if (load->level < 0)
		load->level = 0;
	load->level = least_of(load->level, (int64_t)LEVEL_MAX * 2);
	load->freed = least_of(load->freed, (int64_t)LEVEL_MAX * 2);
	if (!load->seq && load->freed > load->level / 20) {
		load->seq = event->seq;
		load->then = load->level;
	} else if (load->seq && load->level < load->least) {
		load->least = load->level;
	}
}

static bool phases_take_row(void *state, const struct sweep_row *row)
{
	struct look *look = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];

		if (row->is_framework[i]) {
			take_framework(&look->framework, event);
			continue;
		}
		look->ended |= event->op == CUF_OP_EXIT;
		if (!look->ended)
			take_event(look, event);
	}
	return true;
}

struct look *look_begin(const struct events *events, const char *const *hook_names,
			size_t hook_name_count, struct sweep_consumer *consumer)
{
	struct look *look = xalloc_zeroed(1, sizeof *look);

	look->events = events;
	look->hook_names = hook_names;
	look->hook_name_count = hook_name_count;
	look->framework.least = INT64_MAX;
	hash_index_init(&look->last_at, 0);
	*consumer = (struct sweep_consumer){ phases_take_row, look };
	return look;
}

/*
 * ---- the phases of the start-up ----
 *
 * Each search has thresholds that a small program does not reach. It then has no phases, which is
 * better than wrong ones.
 */

/* Adds a phase from one step to another. why: one clause, shown as its evidence. */
static void claim(struct look *look, const char *name, enum fact_basis basis,
		  const struct step *first, const struct step *last, const char *why)
{
	if (look->found_count < INFERRED_MAX)
		look->found[look->found_count++] =
			(struct inferred){ name,	  why,	      basis,	first->time_ns,
					   last->time_ns, first->seq, last->seq };
}

/* As a seq; CUF_UNKNOWN: no framework, 0: unknown. */
static uint64_t framework_load_end(const struct framework_load *load)
{
	if (!load->level && !load->freed)
		return CUF_UNKNOWN;
	if (load->least == INT64_MAX || load->then / 8 * 10 < load->least)
		return 0;
	return load->seq;
}

/* Where the first steps end that only allocate. A hundredth that is freed is scaffolding. */
static size_t load_end(const struct look *look)
{
	uint64_t until = framework_load_end(&look->framework);
	uint64_t bytes = 0, freed = 0;
	size_t last = 0;
	for (size_t i = 0; i < look->count; i++) {
		const struct step *step = &look->steps[i];
		if (step->sort == STEP_FAILED || step->sort == STEP_CAPTURE || step->seq > until)
			break;
		if (step->sort == STEP_FREE && (freed += step->bytes) > bytes / 100)
			break;
		if (step->sort != STEP_ALLOC)
			continue;
		bytes += step->bytes;
		last = i + 1;
	}
	return last;
}

/* At least RUN_COUNT allocations of one size in a row, all kept, and no other such row of that
 * size: rows that repeat are layers. Returns its first step; count: none. */
static size_t find_run(const struct look *look, size_t *end)
{
	size_t best = look->count, best_count = 0, runs_of_best = 0;
	for (size_t i = 0; i < look->count;) {
		size_t n = i, count = 0;
		const struct step *step = &look->steps[i];
		for (; n < look->count &&
		       (look->steps[n].sort == STEP_ASKED ||
			(look->steps[n].sort == STEP_ALLOC && look->steps[n].bytes == step->bytes &&
			 look->steps[n].device == step->device && look->steps[n].lives));
		     n++)
			count += look->steps[n].sort == STEP_ALLOC;
		/* a second row of the size of the best one makes that ambiguous */
		if (step->sort == STEP_ALLOC && step->bytes >= KV_BYTES && count >= RUN_COUNT) {
			if (best < look->count && look->steps[best].bytes == step->bytes)
				runs_of_best++;
			else if (count > best_count) {
				best = i;
				best_count = count;
				runs_of_best = 1;
				*end = n;
			}
		}
		i = most_of(n, i + 1);
	}
	if (runs_of_best != 1)
		return look->count;
	return best;
}

/* The first and the last block with this label. */
static bool find_role(const struct look *look, unsigned role, size_t *first, size_t *last)
{
	size_t count = 0;
	for (size_t i = 0; i < look->count; i++)
		if (look->steps[i].role == role) {
			if (!count++)
				*first = i;
			*last = i;
		}
	return count > 0;
}

/* From `at` on: allocations, then a row of frees of at least half of their bytes, then a query of
 * free memory; no failure. Returns the last free; count: none. */
static size_t find_profile(const struct look *look, size_t at)
{
	uint64_t taken = 0, freed = 0;
	size_t allocs = 0, frees = 0;
	for (size_t i = at; i < look->count; i++) {
		const struct step *step = &look->steps[i];
		if (step->sort == STEP_FAILED || step->sort == STEP_CAPTURE)
			break;
		if (step->sort == STEP_ALLOC && frees)
			break;
		if (step->sort == STEP_ALLOC) {
			taken += step->bytes;
			allocs++;
		} else if (step->sort == STEP_FREE) {
			freed += step->bytes;
			frees++;
		} else if (frees >= BURST_COUNT) { /* the query of free memory */
			const struct step *last = &look->steps[i - 1],
					  *first = &look->steps[i - frees];
			if (allocs >= BURST_COUNT && freed >= taken / 2 && freed >= LOAD_BYTES &&
			    last->time_ns - first->time_ns <= BURST_NS &&
			    step->time_ns - last->time_ns <= BURST_NS)
				return i - 1;
			break;
		}
	}
	return look->count;
}

static bool take_serving(void *state, const struct sweep_row *row)
{
	struct serving *serving = state;
	int64_t delta;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];

		if (event->op == CUF_OP_EXIT)
			return false;
		/* the start-up changes the level, but its rises are no requests */
		if (!work_follow(&serving->work, event, &delta) || event->seq <= serving->after_seq)
			continue;
		cycles_feed(serving->cycles, delta, event->seq, event->time_ns);
		serving->allocs += delta > 0;
		serving->frees += delta < 0;
		serving->least = least_of(serving->work.level, serving->least);
		serving->most = most_of(serving->work.level, serving->most);
		serving->end_ns = event->time_ns;
		serving->end_seq = event->seq;
	}
	return true;
}

/* False: memory that mostly comes and goes, or mostly grows, is not serving. */
static bool finish_serving(struct serving *serving)
{
	const struct cycle_mark *marks;
	size_t count;

	serving->count = cycles_finish(serving->cycles, &marks, &count);
	if (!serving->count || serving->least < serving->most / 4 ||
	    serving->allocs > serving->frees + serving->frees / 4 + 1 ||
	    serving->frees > serving->allocs + serving->allocs / 4 + 1)
		return false;
	serving->begin_ns = marks[0].time_ns;
	serving->begin_seq = most_of(marks[0].position, serving->after_seq + 1);
	return true;
}

static int by_inferred_begin(const void *a, const void *b)
{
	const struct inferred *left = a, *right = b;
	return compare_numbers(left->begin_seq, right->begin_seq);
}

/* Where the kept allocations before `end` end: what comes after them may be the burst of a
 * profile. */
static size_t kept_end(const struct look *look, size_t end)
{
	while (end && !(look->steps[end - 1].sort == STEP_ALLOC && look->steps[end - 1].lives))
		end--;
	return end;
}

/* Loading is the steps before `end`, if they are enough and at most a twentieth was freed. */
static void claim_load(struct look *look, size_t end)
{
	uint64_t bytes = 0, kept = 0;
	size_t count = 0;
	for (size_t i = 0; i < end; i++) {
		if (look->steps[i].sort != STEP_ALLOC)
			continue;
		count++;
		bytes += look->steps[i].bytes;
		if (look->steps[i].lives)
			kept += look->steps[i].bytes;
	}
	if (count >= LOAD_COUNT && bytes >= LOAD_BYTES && kept >= bytes - bytes / 20)
		claim(look, "load", BASIS_INFERRED, &look->steps[0], &look->steps[end - 1],
		      arena_format(look->arena,
				   "the first %zu allocations, %s, none of them freed",
				   count, units_bytes(bytes).s));
}

/*
 * The start-up, from the driver's steps: load, then a profile run, then the KV cache. The KV cache
 * is searched first, because loading ends before it. The allocations of a profile look like the
 * end of loading, so the profile is searched again from the last kept block.
 */
static void infer_start(struct look *look)
{
	size_t end = load_end(look), run_end = 0, run, profile, first = 0, last = 0;
	if (find_role(look, CUF_ROLE_KV, &first, &last)) {
		run = first;
		claim(look, "kv-init", BASIS_INFERRED, &look->steps[first], &look->steps[last],
		      "its blocks were labelled KV when they were allocated");
	} else if ((run = find_run(look, &run_end)) && run < look->count) {
		size_t blocks = run_end - run;
		if (run_end < look->count && look->steps[run_end].sort == STEP_FAILED &&
		    look->steps[run_end].bytes == look->steps[run].bytes)
			run_end++; /* it ended at the failure of the next block */
		claim(look, "kv-init", BASIS_INFERRED, &look->steps[run], &look->steps[run_end - 1],
		      arena_format(look->arena, "%zu blocks of %s in a row, none of them freed",
				   blocks, units_bytes(look->steps[run].bytes).s));
	}
	end = least_of(run, end);
	profile = find_profile(look, end);
	if (profile == look->count) {
		end = kept_end(look, end);
		profile = find_profile(look, end);
	}
	if (profile < look->count)
		claim(look, "profile", BASIS_INFERRED, &look->steps[end], &look->steps[profile],
		      "a burst of allocations, freed in one row, then a query of free memory; "
		      "no failure before it");
	claim_load(look, end);
}

/* The end of the start-up, as a seq; 0: nothing was inferred. */
static uint64_t last_end(const struct look *look)
{
	uint64_t seq = 0;
	for (size_t i = 0; i < look->found_count; i++)
		seq = most_of(look->found[i].end_seq, seq);
	return seq;
}

/* Repeating work after the start-up. Its first part is warm-up if the framework still grew. */
static void infer_serving(struct look *look)
{
	struct serving *serving = &look->serving;
	uint64_t start_end = serving->after_seq, last_grown = 0;
	struct step from, to;
	if (!finish_serving(serving))
		return;
	/* a framework keeps what it got, so the driver's last allocation ends its warm-up */
	for (size_t i = 0; i < look->count; i++)
		if (look->steps[i].sort == STEP_ALLOC && look->steps[i].seq > start_end)
			last_grown = i;
	if (start_end && last_grown && look->events->framework && look->events->framework->count &&
	    look->steps[last_grown].seq > serving->begin_seq &&
	    look->steps[last_grown].time_ns - serving->begin_ns <
		    (serving->end_ns - serving->begin_ns) / 2) {
		from = (struct step){ .seq = serving->begin_seq, .time_ns = serving->begin_ns };
		claim(look, "warm-up", BASIS_INFERRED, &from, &look->steps[last_grown],
		      "the framework requested memory from the driver, for the last time");
		serving->begin_seq = look->steps[last_grown].seq + 1;
		serving->begin_ns = look->steps[last_grown].time_ns;
	}
	from = (struct step){ .seq = serving->begin_seq, .time_ns = serving->begin_ns };
	to = (struct step){ .seq = serving->end_seq, .time_ns = serving->end_ns };
	claim(look, "serving", BASIS_INFERRED, &from, &to,
	      arena_format(look->arena,
			   "%" PRIu64
			   " rises and falls over what stays live, as many frees as allocations",
			   serving->count));
}

void look_start(struct look *look, const struct work_base *base, struct arena *arena,
		struct sweep_consumer *consumer)
{
	struct inferred *found = look->found;

	look->arena = arena;
	/* without the first events the start-up cannot be recognised */
	if (!look->events->complete_since && look->count)
		infer_start(look);
	for (size_t i = 0; i < look->capture_count && !look->captures_many &&
			   look->found_count < INFERRED_MAX - 2;
	     i++) {
		found[look->found_count] = look->captures[i];
		found[look->found_count].name = "graph capture";
		found[look->found_count].basis = BASIS_OBSERVED;
		found[look->found_count].why = "a stream was captured";
		if (look->capture_calls != 1)
			found[look->found_count].why =
				arena_format(arena, "streams were captured %" PRIu64 " times",
					     look->capture_calls);
		look->found_count++;
	}
	look->serving = (struct serving){ .cycles = cycles_new(),
					  .after_seq = last_end(look),
					  .least = INT64_MAX };
	work_begin(&look->serving.work, base);
	*consumer = (struct sweep_consumer){ take_serving, &look->serving };
}

size_t look_end(struct look *look, struct inferred found[INFERRED_MAX])
{
	size_t count;

	infer_serving(look);
	count = look->found_count;
	/* nothing followed: every program begins with allocations */
	if (count == 1 && !strcmp(look->found[0].name, "load"))
		count = 0;
	if (count)
		qsort(look->found, count, sizeof *found, by_inferred_begin);
	memcpy(found, look->found, count * sizeof *found);
	work_end(&look->serving.work);
	cycles_free(look->serving.cycles);
	hash_index_fini(&look->last_at);
	free(look->steps);
	free(look);
	return count;
}
