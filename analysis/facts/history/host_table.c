/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing with linear probes; removal moves later blocks of the run back. */
#include "analysis/facts/history/rows_parts.h"

#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/xalloc.h"

enum { ROOM_FIRST = 1 << 12 };

void host_table_init(struct host_table *table)
{
	*table = (struct host_table){ .room = ROOM_FIRST, .secret = hash_secret() };
	table->slots = xalloc_zeroed(table->room, sizeof *table->slots);
}

void host_table_fini(struct host_table *table)
{
	free(table->slots);
	*table = (struct host_table){ 0 };
}

static size_t home_of(const struct host_table *table, uint64_t addr)
{
	uint64_t hash = (addr ^ table->secret) * 0x9E3779B97F4A7C15ull;

	return (size_t)((hash ^ hash >> 29) * (table->secret | 1) >> 24) & (table->room - 1);
}

/* The block at the address, or the empty slot where it belongs. */
static size_t place_of(const struct host_table *table, uint64_t addr)
{
	size_t at = home_of(table, addr);

	while (table->slots[at].addr && table->slots[at].addr != addr)
		at = (at + 1) & (table->room - 1);
	return at;
}

/* At most three quarters are full. */
static void grow(struct host_table *table)
{
	struct host_table larger = { .room = 2 * table->room, .secret = table->secret,
				     .count = table->count };

	larger.slots = xalloc_zeroed(larger.room, sizeof *larger.slots);
	for (size_t i = 0; i < table->room; i++)
		if (table->slots[i].addr)
			larger.slots[place_of(&larger, table->slots[i].addr)] = table->slots[i];
	free(table->slots);
	*table = larger;
}

bool host_table_put(struct host_table *table, const struct host_slot *slot, struct host_slot *was)
{
	size_t at;
	bool is_new;

	if (!slot->addr)
		return true;
	if (4 * (table->count + 1) > 3 * table->room)
		grow(table);
	at = place_of(table, slot->addr);
	is_new = !table->slots[at].addr;
	if (!is_new && was)
		*was = table->slots[at];
	table->slots[at] = *slot;
	table->count += is_new;
	return is_new;
}

struct host_slot *host_table_find(const struct host_table *table, uint64_t addr)
{
	struct host_slot *slot = &table->slots[place_of(table, addr)];

	return addr && slot->addr ? slot : NULL;
}

bool host_table_take(struct host_table *table, uint64_t addr, struct host_slot *slot)
{
	size_t mask = table->room - 1, hole = place_of(table, addr), at = hole;

	if (!addr || !table->slots[hole].addr)
		return false;
	*slot = table->slots[hole];
	table->count--;
	for (;;) {
		size_t home;

		at = (at + 1) & mask;
		if (!table->slots[at].addr)
			break;
		home = home_of(table, table->slots[at].addr);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue; /* its run begins after the hole */
		table->slots[hole] = table->slots[at];
		hole = at;
	}
	table->slots[hole].addr = 0;
	return true;
}
