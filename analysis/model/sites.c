/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing over indices: one look-up an event, millions of events. */
#include "analysis/model/sites.h"

#include <stdbool.h>
#include <stdlib.h>
#include "analysis/model/xalloc.h"
#include "interpose/abi/format.h"

static size_t home_of(const struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	uint64_t h = ((uint64_t)device << 40 | (uint64_t)kind << 32 | stack) * 0x9E3779B97F4A7C15ull;
	return (size_t)(h >> 24) & (sites->index_room - 1);
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
	free(sites->index);
	sites->index_room *= 2;
	sites->index = xalloc_zeroed(sites->index_room, sizeof *sites->index);
	for (size_t i = 0; i < sites->count; i++) {
		size_t at = home_of(sites, sites->items[i].kind, sites->items[i].device, sites->items[i].stack);
		while (sites->index[at])
			at = (at + 1) & (sites->index_room - 1);
		sites->index[at] = (uint32_t)i + 1;
	}
}

static bool is_site(const struct site *s, unsigned kind, unsigned device, uint32_t stack)
{
	return s->stack == stack && s->kind == kind && s->device == device;
}

struct site *sites_get(struct sites *sites, unsigned kind, unsigned device, uint32_t stack)
{
	size_t at;
	if (sites->last < sites->count && is_site(&sites->items[sites->last], kind, device, stack))
		return &sites->items[sites->last];
	at = home_of(sites, kind, device, stack);
	for (uint32_t i; (i = sites->index[at]); at = (at + 1) & (sites->index_room - 1)) {
		sites->last = i - 1;
		if (is_site(&sites->items[i - 1], kind, device, stack))
			return &sites->items[i - 1];
	}
	if ((sites->count + 1) * 2 > sites->index_room) {
		grow(sites);
		return sites_get(sites, kind, device, stack);
	}
	xalloc_grow(&sites->items, sites->count, &sites->room, sizeof *sites->items);
	sites->items[sites->count] = (struct site){ .stack = stack, .kind = (uint8_t)kind, .device = (uint8_t)device,
		.first_ns = CUF_UNKNOWN, .last_ns = CUF_UNKNOWN, .last_cycle = SITE_NONE, .floor = SITE_NONE };
	sites->index[at] = (uint32_t)++sites->count;
	return &sites->items[sites->count - 1];
}
