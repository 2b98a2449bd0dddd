/* SPDX-License-Identifier: Apache-2.0 */
/* A stack of levels for each thread, and two hash tables for what has an id. */
#include "interpose/incident/open_phases.h"

#include <string.h>
#include <sys/mman.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sys.h"
#include "interpose/process/gate.h"
#include "interpose/platform/laws.h"

enum { DEPTH_MAX = 64, STACKS_MAX = 8192, OPEN_SLOTS = 1024, OPEN_WINDOW = 16, OPEN_BITS = 10 };

/* The levels of one thread, by its slot. The slot's next thread finds them empty. */
struct levels {
	uint32_t tid, generation;
	uint32_t depth;
	uint32_t beyond;    /* levels above those that are held */
	struct cuf_phase_level held[DEPTH_MAX];
};

/* An open range or request. Its place is within OPEN_WINDOW of the home of its key. */
struct open {
	uint64_t key;       /* 0: free */
	struct cuf_open_phase phase;
};

static struct levels *all_levels;   /* STACKS_MAX; untouched ones take no memory */
static struct open tables[CUF_OPEN_TABLES][OPEN_SLOTS];

static void forget_open(void)
{
	if (all_levels)
		cuf_sys_madvise(all_levels, STACKS_MAX * sizeof *all_levels, MADV_DONTNEED);
	memset(tables, 0, sizeof tables);
}
CUF_AT_FORK_CHILD(forget_open);

/* ---- levels of a thread ---- */

static void map_levels(void)
{
	struct levels *none = NULL;
	long at = cuf_sys_mmap(NULL, STACKS_MAX * sizeof *all_levels, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cuf_sys_failed(at))
		return;
	if (!__atomic_compare_exchange_n(&all_levels, &none, (struct levels *)at, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		cuf_sys_munmap((void *)at, STACKS_MAX * sizeof *all_levels);
}

/* NULL: no memory. */
static struct levels *levels_of(const struct cuf_thread_state *thread)
{
	uint32_t generation = thread->writer.slot->generation;
	struct levels *levels;
	if (__builtin_expect(!__atomic_load_n(&all_levels, __ATOMIC_ACQUIRE), 0))
		map_levels();
	if (!all_levels || thread->writer.slot_index >= STACKS_MAX)
		return NULL;
	levels = &all_levels[thread->writer.slot_index];
	if (levels->tid != thread->writer.tid || levels->generation != generation) {
		levels->tid = thread->writer.tid;
		levels->generation = generation;
		levels->depth = levels->beyond = 0;
	}
	return levels;
}

/* How many of the first `count` levels belong to this stack, less one. */
static int depth_in_stack(const struct levels *levels, uint32_t count, uint32_t stack)
{
	int depth = -1;
	for (uint32_t i = 0; i < count; i++)
		depth += levels->held[i].stack == stack;
	return depth;
}

bool cuf_phase_levels_are_full(const struct cuf_thread_state *thread)
{
	const struct levels *levels = levels_of(thread);
	return !levels || levels->depth == DEPTH_MAX;
}

int cuf_phase_levels_push(const struct cuf_thread_state *thread,
			  const struct cuf_phase_level *level)
{
	struct levels *levels = levels_of(thread);
	if (!levels)
		return -1;
	if (levels->depth == DEPTH_MAX) {
		levels->beyond++;
		return (int)(levels->depth + levels->beyond) - 1;
	}
	levels->held[levels->depth++] = *level;
	return depth_in_stack(levels, levels->depth, level->stack);
}

/*
 * A pop names its stack and not its level: with several domains the levels of one are mixed with
 * those of others, so the innermost level of that stack is removed from the middle.
 */
int cuf_phase_levels_pop(const struct cuf_thread_state *thread, uint32_t stack,
			 struct cuf_phase_level *level)
{
	struct levels *levels = levels_of(thread);
	uint32_t at;
	int depth;
	*level = (struct cuf_phase_level){ .is_written = false };
	if (!levels)
		return -1;
	if (levels->beyond)
		return (int)(levels->depth + --levels->beyond);
	for (at = levels->depth; at && levels->held[at - 1].stack != stack; at--)
		;
	if (!at)
		return -1;
	*level = levels->held[at - 1];
	depth = depth_in_stack(levels, at, stack);
	memmove(&levels->held[at - 1], &levels->held[at],
		(levels->depth - at) * sizeof *levels->held);
	levels->depth--;
	return depth;
}

/* ---- ranges and requests ---- */

/* Never equal for two sources: ids of tools count up from small numbers. */
static uint64_t key_of(enum cuf_phase_source source, uint64_t id) { return source ? ~id : id; }

/* The step-th place of a key. */
static struct open *place_of(enum cuf_open_table table, uint64_t key, unsigned step)
{
	uint64_t home = key * 0x9E3779B97F4A7C15ull >> (64 - OPEN_BITS);
	return &tables[table][(home + step) % OPEN_SLOTS];
}

/* A key is claimed first and stored again last, so that a reader never finds it half written. */
void cuf_open_add(enum cuf_open_table table, enum cuf_phase_source source,
		  const struct cuf_open_phase *phase)
{
	uint64_t key = key_of(source, phase->id);
	struct open *open = place_of(table, key, 0); /* replaced when no place is free */
	for (unsigned step = 0; step < OPEN_WINDOW; step++) {
		struct open *place = place_of(table, key, step);
		uint64_t none = 0;
		if (__atomic_compare_exchange_n(&place->key, &none, key, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			open = place;
			break;
		}
	}
	open->phase = *phase;
	__atomic_store_n(&open->key, key, __ATOMIC_RELEASE);
}

bool cuf_open_take(enum cuf_open_table table, enum cuf_phase_source source, uint64_t id,
		   uint32_t *name)
{
	uint64_t key = key_of(source, id);
	for (unsigned step = 0; step < OPEN_WINDOW; step++) {
		struct open *open = place_of(table, key, step);
		if (__atomic_load_n(&open->key, __ATOMIC_ACQUIRE) != key)
			continue;
		*name = open->phase.name;
		return __atomic_compare_exchange_n(&open->key, &key, 0, false,
						   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
	return false;
}

/* The last begun, of this thread or of any (0). */
static const struct cuf_open_phase *last_open(enum cuf_open_table table, uint32_t tid)
{
	const struct cuf_open_phase *last = NULL;
	for (unsigned i = 0; i < OPEN_SLOTS; i++) {
		const struct open *open = &tables[table][i];
		if (!open->key || (tid && open->phase.tid != tid))
			continue;
		if (!last || open->phase.seq > last->seq)
			last = &open->phase;
	}
	return last;
}

/* ---- at an incident ---- */

void cuf_phases_at_incident(struct cuf_incident *incident)
{
	const struct cuf_thread_state *thread = cuf_tls.thread;
	const struct levels *levels = thread && all_levels ? levels_of(thread) : NULL;
	const struct cuf_open_phase *request = last_open(CUF_OPEN_REQUESTS, incident->tid);
	const struct cuf_open_phase *range = last_open(CUF_OPEN_RANGES, 0);
	if (levels && levels->depth)
		incident->phase = levels->held[levels->depth - 1].name;
	else if (range)
		incident->phase = range->name;
	if (request) {
		incident->request_phase = request->name;
		incident->request_id = request->id;
	}
}
