/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of blocks. */
#include "analysis/view/export/site_sums.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"

/* Two combinations of one key would be added up, so every part has its own bits or is hashed with
 * the secret; a chain of places resolves what still collides. */
static uint64_t sum_key_of(const struct site_sum *sum, uint64_t probe)
{
	uint64_t key = (uint64_t)sum->site << 32 | (uint64_t)sum->kind << 24 |
		       (sum->device & 0xff) << 16 | (sum->process & 0xffff);

	key = key * 0x9E3779B97F4A7C15ull ^ (uint64_t)(uintptr_t)sum->phase;
	key = key * 0x9E3779B97F4A7C15ull ^ ((uint64_t)sum->tid << 32 | probe);
	return key;
}

static bool is_same(const struct site_sum *a, const struct site_sum *b)
{
	return a->site == b->site && a->kind == b->kind && a->device == b->device &&
	       a->process == b->process && a->tid == b->tid && a->phase == b->phase;
}

static struct site_sum *sum_of(struct site_sums *sums, const struct site_sum *wanted)
{
	for (uint64_t probe = 0;; probe++) {
		uint32_t *place = hash_index_place(&sums->index, sum_key_of(wanted, probe));

		if (*place && is_same(&sums->items[*place - 1], wanted))
			return &sums->items[*place - 1];
		if (*place)
			continue;
		xalloc_grow(&sums->items, sums->count, &sums->room, sizeof *sums->items);
		sums->items[sums->count++] = *wanted;
		*place = (uint32_t)sums->count;
		return &sums->items[sums->count - 1];
	}
}

static void add_block(void *context, const struct block_row *block)
{
	struct site_sums *sums = context;
	struct site_sum wanted = { .process = block->process, .device = block->device,
				   .kind = block->kind, .site = block->site }, *sum;

	if (sums->by_thread_and_phase) {
		/* the ledger of the host has no threads */
		wanted.tid = block->kind == CUF_KIND_HOST ? 0 : block->tid;
		wanted.phase = block->phase;
	}
	sum = sum_of(sums, &wanted);
	if (sums->history) {
		sum->alloc_bytes += block->weight_bytes;
		sum->alloc_count += block->weight_count;
	} else {
		sum->live_bytes += block->weight_bytes;
		sum->live_count += block->weight_count;
	}
}

void site_sums_read(struct site_sums *sums, struct rows *rows, bool by_thread_and_phase,
		    bool with_history)
{
	*sums = (struct site_sums){ .by_thread_and_phase = by_thread_and_phase };
	hash_index_init(&sums->index, 1024);
	rows_live(rows, add_block, sums);
	sums->history = true;
	if (with_history)
		rows_blocks(rows, add_block, sums);
}

void site_sums_fini(struct site_sums *sums)
{
	hash_index_fini(&sums->index);
	free(sums->items);
}
