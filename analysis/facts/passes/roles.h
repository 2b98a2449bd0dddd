/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What live blocks are for: weights, KV cache, activations. A role was reported with the block, or
 * follows from the functions of its stack, or is likely because of the phase in which the block
 * was allocated. Names: symbols/role_names.c.
 *
 * Contract: a struct roles remembers the stacks of one process; NULL from roles_free is fine. Names
 * are constants. Native names come from the recording's notes and from the symbols of
 * facts_options, and of those only for the modules that the table asks about: libtorch has
 * half a million symbols.
 */
#pragma once

#include "analysis/measure/framework_map.h"
#include "analysis/measure/owners.h"

struct build;
struct role {
	const char *name;
	enum fact_basis basis;
}; /* NULL: not known */

struct roles;
void roles_free(struct roles *roles);

/* Fills usage->roles: the live blocks of a device by row and role, those inside segments in place
 * of the segments. */
void roles_sum(struct build *build, uint32_t process, unsigned device, const struct liveset *live,
	       const struct framework_map *map, struct usage *usage);

/* What the blocks of one call site are for: role is the one that the recorder noted of them, 0 when
 * there is none; first_ns is the birth of the oldest, CLOCK_MONOTONIC. */
struct role role_of_site(struct build *build, uint32_t process, unsigned role, uint32_t stack,
			 uint64_t first_ns);
