/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a call site that survives a rebuild: "server!append_kv < server!serve < server!main".
 * Each frame is a module and a function. There are no addresses, no lines, no directories, no
 * library versions, no template arguments, parameters, ABI tags or suffixes of cloned functions.
 * Frames of libraries and start-up code that reports do not show are left out. A Python frame is
 * the base name of its file and its qualified name.
 *
 * An optimizer may inline a function or turn a call at the end into a jump, so a frame can be
 * missing in one of two builds. site_name_is_like is true if two names are the same except for such
 * frames: both begin with the same function, and one is contained in the other, in order.
 *
 * Contract: pure; texts are foreign. Results are in the arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "analysis/gate/finding.h"

struct arena;
struct frame;

const char *site_name(const struct frame *frames, size_t count, struct arena *arena);
bool site_name_is_like(const char *name, const char *other);

/* One native function without what a rebuild changes. */
void site_function(const char *function, char *out, size_t bytes);

/*
 * Names of the call sites of one run: the identity that a baseline knows, and what a person reads.
 *
 * Contract: naming_open borrows everything; naming_close frees. Results are in the arena and stay.
 */
struct facts;
struct symbols;
struct frames;
struct places;

struct naming {
	struct arena *arena;
	struct frames *frames;
	struct places *places;
};

void naming_open(struct naming *naming, const struct facts *facts, struct symbols *symbols,
		 struct arena *arena);
void naming_close(struct naming *naming);

const char *naming_identity(struct naming *naming, const struct fact_stack *stack);
/* Fills identity, function, module, file, line and frames; the rest stays. */
void naming_fill(struct naming *naming, const struct fact_stack *stack, struct gate_site *out);
/* The same for a site that only a baseline has: from its identity. */
void naming_fill_gone(struct naming *naming, const char *identity, struct gate_site *out);
