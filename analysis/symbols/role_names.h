/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What blocks are for, by the names of the functions that allocate them: "weights", "kv",
 * "activations", "output", "workspace", "library", "communication", "graph". Tables only.
 *
 * Contract: constant data and pure look-ups; NULL or 0 where a name is not known.
 */
#pragma once

#include <stddef.h>

/* Of enum cuf_role, as the recorder noted it. */
const char *role_of_enum(unsigned role);
/* Of blocks that were allocated in an inferred phase and stayed. */
const char *role_of_phase(const char *name);
/* Of a native function, demangled. */
const char *role_of_function(const char *name);
/* Of a Python function: its qualified name and its file. */
const char *role_of_code(const char *qualified_name, size_t name_bytes, const char *file,
			 size_t file_bytes);

/* What words in a function's name hint at: weaker than a role, since any program may use them.
 * Bits. */
enum name_hint {
	HINT_KV = 1,
	HINT_WEIGHTS = 2,
	HINT_ACTIVATIONS = 4,
	HINT_SLOTS = 8,
	HINT_CAPTURE = 16,
	HINT_READS = 32, /* reads or loads something, of whatever kind; by its name, not its file */
	HINT_TASK = 64 /* an event loop, which runs one of many tasks */
};
unsigned name_hints(const char *function);
