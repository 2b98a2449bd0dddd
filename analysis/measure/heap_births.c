/* SPDX-License-Identifier: Apache-2.0 */
/* What was freed after the moment, then when it was allocated. */
#include "analysis/measure/heap_births.h"

#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/host_weight.h"

enum { GONE_MAX = 4 << 20 };

/* A block that was freed after the moment, or one allocated and freed after it. */
struct gone {
	uint64_t bytes, birth_ns; /* birth_ns CUF_UNKNOWN: not found */
	uint64_t mean_bytes;
	uint32_t stack;
	bool was_live; /* at the moment */
};

struct heap_births {
	const struct reader *reader;
	const struct host_means *means;
	struct sites sites; /* which heap_row looks up; not used here */
	struct hash_index index; /* address to a place in gone, plus one */
	struct gone *gone;
	size_t count, room, at;
	uint64_t until_ns; /* the moment; CUF_UNKNOWN: the end */
	uint64_t ledger_at;
	bool ledger_is_read, are_too_many;
};

/* The first event of an address after the moment shows whether a block was live there. */
void heap_births_later(struct heap_births *births, const struct host_event *event)
{
	int sign = host_event_sign(event->op);
	uint32_t *place;

	if (!sign || !event->bytes || births->are_too_many)
		return;
	place = hash_index_place(&births->index, event->addr);
	if (*place)
		return;
	if (births->count == GONE_MAX) {
		births->are_too_many = true;
		births->count = 0;
		return;
	}
	xalloc_grow(&births->gone, births->count, &births->room, sizeof *births->gone);
	births->gone[births->count] =
		(struct gone){ .bytes = event->bytes,
			       .birth_ns = CUF_UNKNOWN,
			       .mean_bytes = event->sample_mean_bytes,
			       .stack = reader_call_site(births->reader, event->stack),
			       .was_live = sign < 0 };
	*place = (uint32_t)++births->count;
}

/* The last allocation at an address before the moment is the block's birth. */
void heap_births_before(struct heap_births *births, const struct host_event *event)
{
	uint32_t found;

	if (!births->count || !event->bytes || host_event_sign(event->op) <= 0)
		return;
	found = hash_index_find(&births->index, event->addr);
	if (found)
		births->gone[found - 1].birth_ns = event->time_ns;
}

struct heap_births *heap_births_new(const struct reader *reader, const struct host_means *means,
				    uint64_t until_ns)
{
	struct heap_births *births = xalloc_zeroed(1, sizeof *births);
	births->reader = reader;
	births->means = means;
	births->until_ns = until_ns;
	sites_init(&births->sites);
	hash_index_init(&births->index, 1024);
	return births;
}

static struct heap_birth birth_of(uint32_t stack, uint64_t birth_ns, uint64_t bytes,
				  uint64_t mean_bytes)
{
	double chance = host_weight_chance(bytes, mean_bytes), weight = (double)bytes / chance;
	return (struct heap_birth){ stack, birth_ns, host_weight_bytes(bytes, mean_bytes),
				    (1 - chance) * weight * weight };
}

/* Blocks of the ledger that were born after the moment are left out. */
static size_t next_of_ledger(struct heap_births *births, struct heap_birth *out)
{
	struct heap_row row;
	size_t count = 0;
	while (!count && heap_row(births->reader, &births->ledger_at, &births->sites, &row))
		for (size_t i = 0; i < row.count; i++) {
			const struct heap_block *block = &row.blocks[i];
			if (block->birth_ns > births->until_ns)
				continue;
			out[count++] = birth_of(block->stack, block->birth_ns, block->bytes,
						host_means_at(births->means, block->birth));
		}
	return count;
}

size_t heap_births_next(struct heap_births *births, struct heap_birth *out)
{
	size_t count = 0;
	if (!births->ledger_is_read) {
		count = next_of_ledger(births, out);
		if (count)
			return count;
		births->ledger_is_read = true;
	}
	while (count < SITES_ROW && births->at < births->count) {
		const struct gone *gone = &births->gone[births->at++];
		if (gone->was_live && is_known(gone->birth_ns))
			out[count++] = birth_of(gone->stack, gone->birth_ns, gone->bytes,
						gone->mean_bytes);
	}
	return count;
}

void heap_births_free(struct heap_births *births)
{
	if (!births)
		return;
	sites_fini(&births->sites);
	hash_index_fini(&births->index);
	free(births->gone);
	free(births);
}
