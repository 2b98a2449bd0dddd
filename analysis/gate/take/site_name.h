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
#ifndef ANALYSIS_GATE_SITE_NAME_H
#define ANALYSIS_GATE_SITE_NAME_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct frame;

const char *site_name(const struct frame *frames, size_t count, struct arena *arena);
bool site_name_is_like(const char *name, const char *other);

/* One native function without what a rebuild changes. */
void site_function(const char *function, char *out, size_t bytes);

#endif
