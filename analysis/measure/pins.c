/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps windows of addresses in order. A window that is less than half full and has small blocks
 * is pinned by them; its free bytes are shared by number of blocks.
 */
#include "analysis/measure/pins.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/measure/host_ledger.h"
#include "analysis/recording/events.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/sites.h"
#include "analysis/base/xalloc.h"

enum {
	PAGE = 4096,
	SMALL_BYTES = 32768,  /* larger blocks fill pages of their own */
	BLOCKS_MAX = 4 << 20, /* about this many are kept for the sweep */
	SAMPLES_IN_WINDOW = 8 /* expected in a full window, so that one is not missed by chance */
};

/* A live block. word1: stack and size, as the ledger packs them. */
struct block {
	uint64_t addr, word1;
	uint64_t mean_bytes; /* of the sampler when it was recorded */
};

struct sweep {
	const struct reader *reader;
	const struct block *blocks;
	size_t count;
	uint64_t window_bytes;
	struct sites sites;
	double open_bytes;        /* of all windows together */
};

static bool next_block(const struct reader *reader, const struct host_means *means, uint64_t *at,
		       struct block *out)
{
	struct cuf_host_block entry;

	if (!host_ledger_next(reader, at, &entry))
		return false;
	*out = (struct block){ cuf_host_addr(entry.word0), entry.word1,
			       host_means_at(means, (uint32_t)(entry.word0 & 0x7ffff)) };
	return true;
}

/* Chooses windows independently of their addresses, which are often multiples of a power of two. */
static uint64_t mix(uint64_t n) { return (n ^ n >> 29) * 0x9E3779B97F4A7C15ull >> 20; }

/* The blocks of every skip-th window, so that a huge ledger needs no huge memory. */
static struct block *collect_blocks(const struct reader *reader, const struct host_means *means,
				    uint64_t window_bytes, size_t *count)
{
	uint64_t at = 0, all = 0, skip;
	struct block block, *blocks = NULL;
	size_t room = 0;
	while (next_block(reader, means, &at, &block))
		all++;
	skip = all / BLOCKS_MAX + 1;
	*count = 0;
	for (at = 0; next_block(reader, means, &at, &block);) {
		uint64_t bytes = cuf_host_bytes(block.word1);
		if (cuf_address_is_map(block.addr, bytes) ||
		    cuf_address_is_python(block.addr, bytes) ||
		    (skip > 1 && mix(block.addr / window_bytes) % skip))
			continue;
		xalloc_grow(&blocks, *count, &room, sizeof *blocks);
		blocks[(*count)++] = block;
	}
	return blocks;
}

static int by_addr(const void *a, const void *b)
{
	const struct block *left = a, *right = b;
	return compare_numbers(left->addr, right->addr);
}

/* The bytes of the block within [start, end), times what it stands for. */
static double weight_in(const struct block *block, uint64_t start, uint64_t end)
{
	uint64_t bytes = cuf_host_bytes(block->word1);
	uint64_t from = most_of(block->addr, start), to = least_of(block->addr + bytes, end);
	if (to <= from)
		return 0;
	return (double)(to - from) / host_weight_chance(bytes, block->mean_bytes);
}

/* Blocks first .. past - 1 begin in this window; the one before may reach into it. */
static void judge_window(struct sweep *sweep, size_t first, size_t past)
{
	uint64_t start = sweep->blocks[first].addr / sweep->window_bytes * sweep->window_bytes,
		 end = start + sweep->window_bytes;
	double live = 0, number = 0, open;
	if (first)
		live = weight_in(&sweep->blocks[first - 1], start, end);
	for (size_t i = first; i < past; i++) {
		uint64_t bytes = cuf_host_bytes(sweep->blocks[i].word1);
		live += weight_in(&sweep->blocks[i], start, end);
		if (bytes < SMALL_BYTES)
			number += 1 / host_weight_chance(bytes, sweep->blocks[i].mean_bytes);
	}
	/* windows without small blocks, or at least half full, are not fragmented */
	open = (double)sweep->window_bytes - live;
	if (number <= 0 || open < (double)sweep->window_bytes / 2)
		return;
	sweep->open_bytes += open;
	for (size_t i = first; i < past; i++) {
		uint64_t bytes = cuf_host_bytes(sweep->blocks[i].word1);
		double chance = host_weight_chance(bytes, sweep->blocks[i].mean_bytes);
		struct site *site;
		if (bytes >= SMALL_BYTES)
			continue;
		site = sites_get(
			&sweep->sites, CUF_KIND_HOST, CUF_DEVICE_NONE,
			reader_call_site(sweep->reader, cuf_host_stack(sweep->blocks[i].word1)));
		site->live_bytes += host_weight_bytes(bytes, sweep->blocks[i].mean_bytes);
		site->live_count += (uint64_t)(1 / chance + 0.5);
		/* here: its share of the free bytes */
		site->live_variance += open * (1 / chance) / number;
	}
}

static void sweep_all(struct sweep *sweep)
{
	for (size_t first = 0, past; first < sweep->count; first = past) {
		uint64_t window = sweep->blocks[first].addr / sweep->window_bytes;
		for (past = first + 1; past < sweep->count &&
				       sweep->blocks[past].addr / sweep->window_bytes == window;)
			past++;
		judge_window(sweep, first, past);
	}
}

static int by_open_bytes(const void *a, const void *b)
{
	const struct host_pin *left = a, *right = b;
	if (left->open_bytes != right->open_bytes)
		return compare_numbers(right->open_bytes, left->open_bytes);
	return compare_numbers(left->stack, right->stack);
}

size_t host_pins_find(const struct reader *reader, const struct host_means *means,
		      uint64_t fragmented_bytes, size_t most, struct host_pin **pins)
{
	uint64_t mean_bytes = host_means_most(means);
	struct sweep sweep = { .reader = reader, .window_bytes = PAGE };
	struct block *blocks;
	size_t count;
	/* full mode has mean 0, and its window is a page */
	while (mean_bytes && sweep.window_bytes < SAMPLES_IN_WINDOW * mean_bytes &&
	       sweep.window_bytes < 1ull << 40)
		sweep.window_bytes *= 2;
	sweep.blocks = blocks = collect_blocks(reader, means, sweep.window_bytes, &sweep.count);
	if (sweep.count)
		qsort(blocks, sweep.count, sizeof *blocks, by_addr);
	sites_init(&sweep.sites);
	sweep_all(&sweep);
	*pins = xalloc_zeroed(sweep.sites.count, sizeof **pins);
	for (size_t i = 0; i < sweep.sites.count; i++) {
		const struct site *site = &sweep.sites.items[i];
		double share = ratio_or_zero(site->live_variance, sweep.open_bytes);
		(*pins)[i] = (struct host_pin){ site->stack,
						(uint64_t)((double)fragmented_bytes * share),
						site->live_bytes, site->live_count };
	}
	count = sweep.sites.count;
	if (count)
		qsort(*pins, count, sizeof **pins, by_open_bytes);
	sites_fini(&sweep.sites);
	free(blocks);
	return least_of(count, most);
}

bool host_map_of(const struct host_event *event, struct host_map *map)
{
	*map = (struct host_map){ event->stack, event->bytes,
				  cuf_address_is_file_map(event->addr, event->bytes),
				  cuf_address_is_shared_map(event->addr, event->bytes) };
	return host_event_sign(event->op) && cuf_address_is_map(event->addr, event->bytes);
}

void host_maps_end(const struct reader *reader,
		   void (*see)(void *context, const struct host_map *map, int sign), void *context)
{
	static const struct host_means of_no_matter; /* maps are not sampled */
	struct block block;
	uint64_t at = 0;

	while (next_block(reader, &of_no_matter, &at, &block)) {
		uint64_t bytes = cuf_host_bytes(block.word1);
		if (cuf_address_is_map(block.addr, bytes))
			see(context,
			    &(struct host_map){
				    reader_call_site(reader, cuf_host_stack(block.word1)), bytes,
				    cuf_address_is_file_map(block.addr, bytes),
				    cuf_address_is_shared_map(block.addr, bytes) },
			    1);
	}
}

void host_maps_each(const struct reader *reader, uint64_t time_ns,
		    void (*see)(void *context, const struct host_map *map, int sign), void *context)
{
	struct host_stream *stream;
	struct host_event event;
	struct host_map map;

	host_maps_end(reader, see, context);
	if (time_ns == CUF_UNKNOWN)
		return;
	stream = host_stream_after(reader, time_ns);
	while (host_stream_next(stream, &event))
		if (event.time_ns > time_ns && host_map_of(&event, &map))
			see(context, &map, -host_event_sign(event.op));
	host_stream_free(stream);
}
