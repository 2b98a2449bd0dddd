/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the functions of a stack are for, by their names: Python's own, those that the recording
 * noted, and those of the program's files where facts_options.symbols can read them. Contract: bits
 * of enum name_hint, of the innermost function that has any; HINT_CAPTURE and HINT_READS count
 * wherever they stand. 0 for a stack that is not known.
 */
#pragma once

#include "analysis/facts/passes/passes.h"

unsigned stack_hints(const struct facts *facts, uint32_t process, uint32_t stack);
/*
 * What `what` tells of the native function at an address: of the name that the recorder noted, else
 * of those in the program's files. symbols NULL: none are read.
 */
unsigned native_names_tell(struct symbols *symbols, const struct fact_process *process,
			   uint64_t addr, uint64_t time_ns, unsigned (*what)(const char *function));
/* Stacks of one caller are one site: those of a framework's allocator differ in its own inner
 * frames, by whether it reports a block, a failure, or asks the driver. Keys of their own then;
 * else the stack's id. 0 stays 0. Remembered in `sites`. */
struct stack_sites {
	uint32_t *keys;
	size_t count;
};
uint32_t stack_site(const struct facts *facts, uint32_t process, uint32_t stack,
		    struct stack_sites *sites);
void stack_sites_fini(struct stack_sites *sites);
/* Does the call come straight from a framework's allocator, through at most the CUDA runtime? */
bool stack_is_framework_call(const struct facts *facts, uint32_t process, uint32_t stack);
