/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from 64-bit keys to numbers: the index of an array that the caller owns. Open
 * addressing, 16 bytes a slot, at most half full, no removal. Replay looks up a key for each of
 * millions of events, so a look-up is two multiplications and, nearly always, one cache line.
 *
 * Contract: any key is fine; a number is never 0, which marks an empty slot (store index + 1). The
 * caller owns the struct and ends it with fini. Heap memory; dies on exhaustion. One thread.
 *
 * replay/liveset.c has a table of its own: it stores whole blocks in the slots and removes them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hash_slot {
	uint64_t key;
	uint32_t number; /* 0: the slot is empty */
};

struct hash_index {
	struct hash_slot *slots;
	size_t room, count; /* room is a power of two */
	uint64_t secret;    /* of this process: hostile keys cannot be chosen to collide */
};

/* 8 bytes that are random for each process; never 0. */
uint64_t hash_secret(void);

void hash_index_init(struct hash_index *index, size_t expected);
void hash_index_fini(struct hash_index *index);

/* The slot that has the key, or the empty one where it belongs. */
static inline struct hash_slot *hash_index_slot(const struct hash_index *index, uint64_t key)
{
	size_t mask = index->room - 1;
	uint64_t hash = (key ^ index->secret) * 0x9E3779B97F4A7C15ull;
	size_t at = (size_t)((hash ^ hash >> 29) * (index->secret | 1) >> 24) & mask;

	while (index->slots[at].number && index->slots[at].key != key)
		at = (at + 1) & mask;
	return &index->slots[at];
}

/* The number of a key; 0: the key is not there. */
static inline uint32_t hash_index_find(const struct hash_index *index, uint64_t key)
{
	return hash_index_slot(index, key)->number;
}

/* A key for a text. Equal keys are equal texts: nobody can choose two that collide, because the
 * secret goes into every step. */
uint64_t hash_index_text(const struct hash_index *index, const char *text);

/* The place of a key's number. Where that is 0 the key is new, and the caller stores its number
 * before the next call. */
uint32_t *hash_index_place(struct hash_index *index, uint64_t key);
