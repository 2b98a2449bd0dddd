/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over keys: a look-up an event, millions of events, and a miss of the cache only where the site itself is touched. */
#include "analysis/replay/sites.h"

#include <stdbool.h>
#include <stdlib.h>
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

#define KEY_USED ((uint64_t)1 << 48)

static uint64_t key_of(unsigned kind, unsigned device, uint32_t stack)
{
	return KEY_USED | (uint64_t)(device & 0xff) << 40 | (uint64_t)(kind & 0xff) << 32 | stack;
}

/* Where the key is, or would be. */
static struct site_index *place_of(const struct sites *sites, uint64_t key)
{
	size_t mask = sites->index_room - 1, at = (size_t)(key * 0x9E3779B97F4A7C15ull >> 24) & mask;
	while (sites->index[at].key && sites->index[at].key != key)
		at = (at + 1) & mask;
	return &sites->index[at];
}

void sites_init(struct sites *sites)
{
	*sites = (struct sites){ .index_room = 1024 };
	sites->index = xalloc_zeroed(sites->index_room, sizeof *sites->index);
}

void sites_fini(struct sites *sites)
{
	free(sites->items);
	free(sites->index);
}

static void grow(struct sites *sites)
{
	struct site_index *old = sites->index;
	size_t old_room = sites->index_room;
	sites->index_room *= 2;
	sites->index = xalloc_zeroed(sites->index_room, sizeof *sites->index);
	for (size_t i = 0; i < old_room; i++)
		if (old[i].key)
			*place_of(sites, old[i].key) = old[i];
	free(old);
}

static struct site *add(struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	uint64_t key = key_of(kind, device, stack);
	if ((sites->count + 1) * 2 > sites->index_room)
		grow(sites);
	xalloc_grow(&sites->items, sites->count, &sites->room, sizeof *sites->items);
	sites->items[sites->count] = (struct site){ .stack = stack, .kind = (uint8_t)kind, .device = (uint8_t)device,
		.first_ns = CUF_UNKNOWN, .last_ns = CUF_UNKNOWN, .last_cycle = SITE_NONE, .floor = SITE_NONE };
	*place_of(sites, key) = (struct site_index){ key, (uint32_t)sites->count };
	return &sites->items[sites->count++];
}

struct site *sites_get(struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	const struct site_index *found = place_of(sites, key_of(kind, device, stack));
	return found->key ? &sites->items[found->site] : add(sites, kind, device, stack);
}

void sites_get_row(struct sites *sites, const struct site_key *keys, size_t count, uint32_t *numbers)
{
	for (size_t i = 0; i < count; i++) {
		const struct site *site = sites_get(sites, keys[i].kind, keys[i].device, keys[i].stack);
		for (size_t at = 0; at < sizeof *site; at += 64)
			__builtin_prefetch((const char *)site + at);
		numbers[i] = (uint32_t)(site - sites->items);
	}
}
