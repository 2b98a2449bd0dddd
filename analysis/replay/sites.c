/* SPDX-License-Identifier: Apache-2.0 */
/* One look-up per event, for millions of events. Only the row of the site itself should miss the
 * cache. */
#include "analysis/replay/sites.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

static uint64_t site_key_of(unsigned kind, unsigned device, uint32_t stack)
{
	return (uint64_t)(device & 0xff) << 40 | (uint64_t)(kind & 0xff) << 32 | stack;
}

/* Stacks of a table without hashing: a recorder numbers them from 1. */
enum { DIRECT_LEAST = 1 << 12, DIRECT_MAX = 1 << 20 };

void sites_init(struct sites *sites)
{
	*sites = (struct sites){ 0 };
	hash_index_init(&sites->index, 0);
}

void sites_fini(struct sites *sites)
{
	free(sites->items);
	free(sites->direct);
	hash_index_fini(&sites->index);
}

static struct site *add_site(struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	xalloc_grow(&sites->items, sites->count, &sites->room, sizeof *sites->items);
	sites->items[sites->count] = (struct site){
		.stack = stack,
		.kind = (uint8_t)kind,
		.device = (uint8_t)device,
		.first_ns = CUF_UNKNOWN,
		.last_ns = CUF_UNKNOWN,
		.last_cycle = SITE_NONE,
		.floor = SITE_NONE,
	};
	return &sites->items[sites->count++];
}

/* The place of a number without hashing; NULL: this stack has none. */
static uint32_t *make_direct(struct sites *sites, uint64_t key, uint32_t stack)
{
	size_t room = DIRECT_LEAST;
	uint32_t *direct;

	if (stack >= DIRECT_MAX || (sites->direct && key != sites->direct_key))
		return NULL;
	while (room <= stack)
		room *= 2;
	direct = xalloc_zeroed(room, sizeof *direct);
	if (sites->direct)
		memcpy(direct, sites->direct, sites->direct_room * sizeof *direct);
	free(sites->direct);
	sites->direct = direct;
	sites->direct_room = room;
	sites->direct_key = key;
	return &direct[stack];
}

static uint32_t *place_of(struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	uint64_t key = site_key_of(kind, device, 0);
	uint32_t *direct;

	if (stack < sites->direct_room && key == sites->direct_key)
		return &sites->direct[stack];
	direct = make_direct(sites, key, stack);
	if (direct)
		return direct;
	return hash_index_place(&sites->index, key | stack);
}

struct site *sites_get(struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	uint32_t *number = place_of(sites, kind, device, stack);

	if (!*number) {
		*number = (uint32_t)sites->count + 1;
		return add_site(sites, kind, device, stack);
	}
	return &sites->items[*number - 1];
}

/* Prefetches the rows, so that their cache misses overlap. */
void sites_get_row(struct sites *sites, const struct site_key *keys, size_t count,
		   uint32_t *numbers)
{
	for (size_t i = 0; i < count; i++) {
		const struct site *site =
			sites_get(sites, keys[i].kind, keys[i].device, keys[i].stack);
		for (size_t at = 0; at < sizeof *site; at += 64)
			__builtin_prefetch((const char *)site + at);
		numbers[i] = (uint32_t)(site - sites->items);
	}
}
