/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of the host by address: 24 bytes a slot, since a recording in full mode has millions.
 * Contract: heap memory, freed by host_table_fini. Address 0 is not stored. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct host_slot {
	uint64_t addr;       /* 0: empty */
	uint64_t word1;      /* stack and bytes: cuf_host_word1 */
	uint32_t born_ms;    /* since the recorder's start; HOST_BORN_UNKNOWN */
	uint32_t tid;        /* of the allocation; 0 unknown */
};
#define HOST_BORN_UNKNOWN UINT32_MAX

struct host_table {
	struct host_slot *slots;
	size_t room, count;  /* room is a power of two */
	uint64_t secret;     /* hostile addresses cannot be chosen to collide */
};

void host_table_init(struct host_table *table);
void host_table_fini(struct host_table *table);
/* Adds a block or replaces the one at its address. False: there was one, which is in *was (may be
 * NULL). */
bool host_table_put(struct host_table *table, const struct host_slot *slot, struct host_slot *was);
bool host_table_take(struct host_table *table, uint64_t addr, struct host_slot *slot);
/* NULL: not there. Valid until the next put or take. */
struct host_slot *host_table_find(const struct host_table *table, uint64_t addr);
