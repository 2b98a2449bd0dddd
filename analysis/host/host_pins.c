/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of addresses, swept in order. A window that is less than half full and holds small blocks is held open by them;
 * its free bytes are shared out by the number of blocks.
 */
#include "analysis/host/host_pins.h"

#include <stdlib.h>
#include "analysis/recording/events.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/sites.h"
#include "analysis/base/xalloc.h"

enum { PAGE = 4096, SMALL_BYTES = 32768, BLOCKS_MAX = 4 << 20, SAMPLES_IN_WINDOW = 8 };

struct block { uint64_t addr, word1, mean_bytes; };

struct sweep {
	const struct block *blocks; size_t count;
	uint64_t window_bytes;
	struct sites sites;
	double open_bytes;        /* of all windows together */
};

static bool next_block(const struct reader *r, const struct host_means *means, uint64_t *at, struct block *out)
{
	uint64_t count = reader_count(r, CUF_SEC_HOST_LEDGER);
	while (*at < count) {
		struct cuf_host_block b = *(const struct cuf_host_block *)reader_at(r, CUF_SEC_HOST_LEDGER, (*at)++);
		*out = (struct block){ cuf_host_addr(b.word0), b.word1, host_means_at(means, (uint32_t)(b.word0 & 0x7ffff)) };
		if (out->addr && b.word0 != CUF_KEY_BUSY)
			return true;
	}
	reader_drop(r, CUF_SEC_HOST_LEDGER);
	return false;
}

static uint64_t mix(uint64_t n) { return (n ^ n >> 29) * 0x9E3779B97F4A7C15ull >> 20; }

/* All blocks of every skip-th window, so that a huge ledger needs no huge memory. */
static struct block *collect(const struct reader *r, const struct host_means *means, uint64_t window_bytes, size_t *count)
{
	uint64_t at = 0, all = 0, skip;
	struct block b, *blocks = NULL;
	size_t room = 0;
	while (next_block(r, means, &at, &b))
		all++;
	skip = all / BLOCKS_MAX + 1;
	*count = 0;
	for (at = 0; next_block(r, means, &at, &b);) {
		if (cuf_address_is_map(b.addr, cuf_host_bytes(b.word1)) || (skip > 1 && mix(b.addr / window_bytes) % skip))
			continue;
		xalloc_grow(&blocks, *count, &room, sizeof *blocks);
		blocks[(*count)++] = b;
	}
	return blocks;
}

static int by_addr(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Bytes of the block within [start, end), for as many as it stands for. */
static double weight_in(const struct block *b, uint64_t start, uint64_t end)
{
	uint64_t bytes = cuf_host_bytes(b->word1), from = b->addr > start ? b->addr : start, to = b->addr + bytes < end ? b->addr + bytes : end;
	return to > from ? (double)(to - from) / host_weight_chance(bytes, b->mean_bytes) : 0;
}

/* Blocks first .. past - 1 begin in this window; the one before first may reach into it. */
static void judge_window(struct sweep *s, size_t first, size_t past)
{
	uint64_t start = s->blocks[first].addr / s->window_bytes * s->window_bytes, end = start + s->window_bytes;
	double live = first ? weight_in(&s->blocks[first - 1], start, end) : 0, number = 0, open;
	for (size_t i = first; i < past; i++) {
		uint64_t bytes = cuf_host_bytes(s->blocks[i].word1);
		live += weight_in(&s->blocks[i], start, end);
		number += bytes < SMALL_BYTES ? 1 / host_weight_chance(bytes, s->blocks[i].mean_bytes) : 0;
	}
	open = (double)s->window_bytes - live;
	if (number <= 0 || open < (double)s->window_bytes / 2)
		return;
	s->open_bytes += open;
	for (size_t i = first; i < past; i++) {
		uint64_t bytes = cuf_host_bytes(s->blocks[i].word1);
		double chance = host_weight_chance(bytes, s->blocks[i].mean_bytes);
		struct site *site;
		if (bytes >= SMALL_BYTES)
			continue;
		site = sites_get(&s->sites, CUF_KIND_HOST, CUF_DEVICE_NONE, cuf_host_stack(s->blocks[i].word1));
		site->live_bytes += host_weight_bytes(bytes, s->blocks[i].mean_bytes);
		site->live_count += (uint64_t)(1 / chance + 0.5);
		site->live_variance += open * (1 / chance) / number; /* here: its share of the open bytes */
	}
}

static void sweep_all(struct sweep *s)
{
	for (size_t first = 0, past; first < s->count; first = past) {
		uint64_t window = s->blocks[first].addr / s->window_bytes;
		for (past = first + 1; past < s->count && s->blocks[past].addr / s->window_bytes == window;)
			past++;
		judge_window(s, first, past);
	}
}

static int by_open_bytes(const void *a, const void *b)
{
	const struct host_pin *x = a, *y = b;
	return x->open_bytes != y->open_bytes ? (x->open_bytes > y->open_bytes ? -1 : 1) : x->stack < y->stack ? -1 : x->stack > y->stack;
}

size_t host_pins_find(const struct reader *reader, const struct host_means *means, uint64_t fragmented_bytes, size_t most, struct host_pin **pins)
{
	uint64_t mean_bytes = host_means_most(means);
	struct sweep s = { .window_bytes = PAGE };
	struct block *blocks;
	size_t count;
	while (mean_bytes && s.window_bytes < SAMPLES_IN_WINDOW * mean_bytes && s.window_bytes < 1ull << 40)
		s.window_bytes *= 2;
	s.blocks = blocks = collect(reader, means, s.window_bytes, &s.count);
	if (s.count)
		qsort(blocks, s.count, sizeof *blocks, by_addr);
	sites_init(&s.sites);
	sweep_all(&s);
	*pins = xalloc_zeroed(s.sites.count, sizeof **pins);
	for (size_t i = 0; i < s.sites.count; i++) {
		const struct site *site = &s.sites.items[i];
		double share = s.open_bytes > 0 ? site->live_variance / s.open_bytes : 0;
		(*pins)[i] = (struct host_pin){ site->stack, (uint64_t)((double)fragmented_bytes * share), site->live_bytes, site->live_count };
	}
	count = s.sites.count;
	if (count)
		qsort(*pins, count, sizeof **pins, by_open_bytes);
	sites_fini(&s.sites);
	free(blocks);
	return count < most ? count : most;
}

void host_maps_each(const struct reader *reader, uint64_t time_ns, void (*see)(void *context, const struct host_map *map, int sign), void *context)
{
	static const struct host_means of_no_matter; /* maps are not sampled */
	struct host_stream *stream;
	struct host_event e;
	struct block b;
	uint64_t at = 0;
	while (next_block(reader, &of_no_matter, &at, &b)) {
		uint64_t bytes = cuf_host_bytes(b.word1);
		if (cuf_address_is_map(b.addr, bytes))
			see(context, &(struct host_map){ cuf_host_stack(b.word1), bytes, cuf_address_is_file_map(b.addr, bytes) }, 1);
	}
	if (time_ns == CUF_UNKNOWN)
		return;
	stream = host_stream_new(reader);
	while (host_stream_next(stream, &e)) {
		int sign = host_event_sign(e.op);
		if (e.time_ns > time_ns && sign && cuf_address_is_map(e.addr, e.bytes))
			see(context, &(struct host_map){ e.stack, e.bytes, cuf_address_is_file_map(e.addr, e.bytes) }, -sign);
	}
	host_stream_free(stream);
}
