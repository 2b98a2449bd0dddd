/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What live blocks are for: weights, KV cache, activations. A role was reported with the block, or
 * follows from the functions of its stack, or is likely because of the phase in which the block
 * was allocated. Names: symbols/role_names.c.
 *
 * Contract: each stack of a process is looked at once. Names are constants. Native names come from
 * the recording's notes and from the run's symbols, and of those only for the modules that the
 * table asks about: libtorch has half a million symbols.
 */
#pragma once

#include "analysis/measure/framework_map.h"
#include "analysis/measure/owners.h"

struct facts;
struct framework_marks;
struct roles;

/* What is remembered of the blocks of one process, from one look at them to the next. */
struct block_memory {
	struct roles *roles; /* of its stacks; NULL: nobody asked so far */
	struct framework_marks *marks; /* ranges that once held a framework's blocks; NULL: none */
};
struct block_memory *block_memory_new(size_t processes);
void block_memory_free(struct block_memory *by_process, size_t processes);
/* After the phases of the process are known. */
struct roles *roles_of(struct block_memory *by_process, const struct facts *facts,
		       uint32_t process);

struct role {
	const char *name;
	enum fact_basis basis;
}; /* NULL: not known */

/* Fills usage->roles: the live blocks of a device by row and role, those inside segments in place
 * of the segments. */
void roles_sum(struct roles *roles, unsigned device, const struct liveset *live,
	       const struct framework_map *map, struct usage *usage);

/* What the blocks of one call site are for: role is the one that the recorder noted of them, 0 when
 * there is none; first_ns is the birth of the oldest, CLOCK_MONOTONIC. */
struct role role_of_site(struct roles *roles, unsigned role, uint32_t stack, uint64_t first_ns);
