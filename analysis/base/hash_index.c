/* SPDX-License-Identifier: Apache-2.0 */
/* Growth of the table; look-ups are inline. */
#include "analysis/base/hash_index.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include "analysis/base/xalloc.h"

enum { ROOM_LEAST = 1024 };

uint64_t hash_secret(void)
{
	uint64_t secret; /* the kernel gives every process 16 random bytes */

	memcpy(&secret, (const void *)getauxval(AT_RANDOM), sizeof secret);
	return secret + !secret;
}

void hash_index_init(struct hash_index *index, size_t expected)
{
	*index = (struct hash_index){ .room = ROOM_LEAST, .secret = hash_secret() };
	while (index->room < 2 * expected)
		index->room *= 2;
	index->slots = xalloc_zeroed(index->room, sizeof *index->slots);
}

void hash_index_fini(struct hash_index *index)
{
	free(index->slots);
	*index = (struct hash_index){ 0 };
}

uint64_t hash_index_text(const struct hash_index *index, const char *text)
{
	uint64_t hash = index->secret;

	for (; *text; text++) {
		hash = (hash ^ (unsigned char)*text) * 0x9E3779B97F4A7C15ull;
		hash ^= hash >> 29 ^ index->secret << 7;
	}
	return hash;
}

static void double_room(struct hash_index *index)
{
	struct hash_index larger;

	hash_index_init(&larger, index->room);
	larger.count = index->count;
	for (size_t i = 0; i < index->room; i++)
		if (index->slots[i].number)
			*hash_index_slot(&larger, index->slots[i].key) = index->slots[i];
	free(index->slots);
	*index = larger;
}

uint32_t *hash_index_place(struct hash_index *index, uint64_t key)
{
	struct hash_slot *slot = hash_index_slot(index, key);

	if (slot->number)
		return &slot->number;
	if ((index->count + 1) * 2 > index->room) {
		double_room(index);
		slot = hash_index_slot(index, key);
	}
	index->count++;
	slot->key = key;
	return &slot->number;
}
