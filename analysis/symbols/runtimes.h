/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes with a heap of their own that a collector cleans: one table. It has the modules and
 * functions by which a runtime is recognised, which of its functions map the heap, and how the
 * heap's limit is set. Advice is in explain/causes_fix.c. Python is not here: its objects are
 * recorded.
 *
 * Contract: constant data and pure look-ups. Functions are demangled; paths are those of modules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a function anywhere on a stack shows of what the memory is for. */
struct runtime_part {
	const char *function; /* a part of its name */
	const char *owner;
	bool is_heap;         /* the collected heap, not other memory */
};

struct runtime {
	const char *name;         /* "Node.js" */
	const char *heap;         /* "V8 heap" */
	const char *itself;       /* what else it allocates: "Node.js itself" */
	const char *modules[12];  /* file names of its code, up to a version or suffix */
	const char *functions[4]; /* how its functions begin, where it is linked into a program */
	const char *maps[4];      /* parts of names of its functions that map; none: not known */
	struct runtime_part parts[16]; /* of several along a stack the first row counts */
	struct {
		const char *option; /* on the command line, or an environment variable */
		uint64_t unit;      /* of a number without one */
	} limits[4];
};

const struct runtime *runtime_of_module(const char *path);
const struct runtime *runtime_named(const char *name); /* NULL: not in the table */

/* Whose memory a stack allocates, from its frames, the innermost first. A frame without a module is
 * code that a runtime compiled, and is left out. */
struct runtime_look {
	const struct runtime *runtime;
	const struct runtime_part *part;
	bool is_named; /* a function of the runtime is known */
	bool is_map;   /* one that maps */
	bool is_own;   /* the program's own code took part: no frame behind it counts */
};

/* function, module: NULL where unknown. is_library: code that allocates for its callers. */
void runtime_look_at(struct runtime_look *look, const char *function, const char *module,
		     bool is_library);
/* NULL: the program's own. Own code that calls a runtime is who allocates, except from its heap. */
const char *runtime_owner(const struct runtime_look *look, bool *is_heap);

/* The limit that a command line or "NAME=value" sets; 0: none. */
uint64_t runtime_limit(const struct runtime *runtime, const char *text);
