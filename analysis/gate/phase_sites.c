/* SPDX-License-Identifier: Apache-2.0 */
/* One phase: its changes are followed twice, for where each peak was and for who caused it. */
#include "analysis/gate/phase_sites.h"

#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/changes.h"

/* Bytes of one call site and group; moment 0: at the peak, 1: at the end. */
struct held {
	uint32_t stack;
	enum gate_group group;
	int64_t bytes[2], blocks[2];
};

struct walk {
	const struct run_process *process;
	enum changes_of of;
	uint64_t begin, end;          /* changes after begin, up to end */
	uint64_t peak_at[GROUP_MAX];  /* number of the change that made the peak; 0: the begin */
	struct hash_index index;
	struct held *items;
	size_t count, room;
};

static bool next_in_phase(const struct walk *walk, struct changes *changes, struct change *change)
{
	while (changes_next(changes, change))
		if (change->at > walk->begin && change->at <= walk->end)
			return true;
	return false;
}

static void find_peaks(struct walk *walk)
{
	int64_t level[GROUP_MAX] = { 0 }, highest[GROUP_MAX] = { 0 };
	struct changes changes;
	struct change change;

	changes_begin(&changes, walk->process, walk->of);
	for (uint64_t number = 1; next_in_phase(walk, &changes, &change); number++)
		for (int group = 0; group < GROUP_MAX; group++) {
			if (!(change.groups >> group & 1))
				continue;
			level[group] += change.bytes;
			if (level[group] > highest[group]) {
				highest[group] = level[group];
				walk->peak_at[group] = number;
			}
		}
	changes_end(&changes);
}

static struct held *held_of(struct walk *walk, enum gate_group group, uint32_t stack)
{
	uint32_t site = reader_call_site(walk->process->reader, stack);
	uint32_t *place = hash_index_place(&walk->index, (uint64_t)group << 32 | site);

	if (!*place) {
		xalloc_grow(&walk->items, walk->count, &walk->room, sizeof *walk->items);
		walk->items[walk->count] = (struct held){ .stack = site, .group = group };
		*place = (uint32_t)++walk->count;
	}
	return &walk->items[*place - 1];
}

static void add_up(struct walk *walk)
{
	struct changes changes;
	struct change change;

	changes_begin(&changes, walk->process, walk->of);
	for (uint64_t number = 1; next_in_phase(walk, &changes, &change); number++)
		for (int group = 0; group < GROUP_MAX; group++) {
			struct held *held;
			if (!(change.groups >> group & 1))
				continue;
			held = held_of(walk, group, change.stack);
			for (int moment = number > walk->peak_at[group]; moment < 2; moment++) {
				held->bytes[moment] += change.bytes;
				held->blocks[moment] += change.blocks;
			}
		}
	changes_end(&changes);
}

static int by_size(const void *a, const void *b)
{
	const struct phase_site *left = a, *right = b;

	if (left->at_end != right->at_end)
		return left->at_end - right->at_end;
	if (left->group != right->group)
		return left->group < right->group ? -1 : 1;
	if (left->bytes != right->bytes)
		return left->bytes > right->bytes ? -1 : 1;
	return compare_numbers(left->stack.id, right->stack.id);
}

static struct fact_stack stack_of(const struct phase_use *use, const struct run_process *process,
				  uint32_t id)
{
	struct fact_stack stack = { .process = use->process, .time_ns = CUF_UNKNOWN };

	stack.addrs = reader_stack(process->reader, id, &stack.depth, &stack.stop);
	if (stack.depth)
		stack.id = id;
	return stack;
}

/* Sites that freed more than they allocated are not to blame. */
static void collect(const struct walk *walk, const struct phase_use *use, struct phase_site **sites,
		    size_t *count, size_t *room)
{
	for (size_t i = 0; i < walk->count; i++)
		for (int moment = 0; moment < 2; moment++) {
			const struct held *held = &walk->items[i];
			if (held->bytes[moment] <= 0)
				continue;
			xalloc_grow(sites, *count, room, sizeof **sites);
			(*sites)[(*count)++] = (struct phase_site){
				held->group, moment, stack_of(use, walk->process, held->stack),
				held->bytes[moment], held->blocks[moment],
			};
		}
}

/* The largest of each group and moment. */
static size_t keep_largest(struct phase_site *sites, size_t count)
{
	size_t kept = 0, of_this = 0;

	qsort(sites, count, sizeof *sites, by_size);
	for (size_t i = 0; i < count; i++) {
		if (i && (sites[i].group != sites[i - 1].group ||
			  sites[i].at_end != sites[i - 1].at_end))
			of_this = 0;
		if (of_this++ < PHASE_SITES_MAX)
			sites[kept++] = sites[i];
	}
	return kept;
}

void phase_sites_read(struct phase_use *use, const struct run_process *process,
		      const struct phase_span *span, struct arena *arena)
{
	struct phase_site *sites = NULL;
	size_t count = 0, room = 0;

	for (enum changes_of of = CHANGES_DEVICE; of <= CHANGES_HOST; of++) {
		bool device = of == CHANGES_DEVICE;
		struct walk walk = { .process = process, .of = of,
				     .begin = device ? span->begin_seq : span->begin_ns,
				     .end = device ? span->end_seq : span->end_ns };
		hash_index_init(&walk.index, 64);
		find_peaks(&walk);
		add_up(&walk);
		collect(&walk, use, &sites, &count, &room);
		hash_index_fini(&walk.index);
		free(walk.items);
	}
	if (count)
		count = keep_largest(sites, count);
	use->sites = arena_copy(arena, sites, count, sizeof *sites);
	use->site_count = count;
	free(sites);
}
