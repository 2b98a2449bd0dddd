/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which recorded stacks print alike. The recorder interns stacks by return address, so one call
 * site can have many stack ids: a loop that the compiler unrolled, two calls in one line, a module
 * that was loaded twice. Reports show functions and lines, so everything that is summed or judged
 * by call site uses one id for all stacks whose frames are displayed alike.
 *
 * Two frames are alike when they have the same
 *   function, file and line   native code with line information, and Python
 *   module and function       native code without line information
 *   module and offset         native code without a name
 *   address                   code in no known module, without a name
 * Inlined functions are frames of their own.
 *
 * The place of a stack is what a person means by "where": its innermost line of the program's own
 * Python, else of a library's, else its innermost native frame that is not of the C++ library. A
 * container that grows has several call sites, and one place; so has what one line makes a
 * framework keep.
 *
 * A library that works in threads of its own has stacks without a line of the program. Such a stack
 * goes on with the one that created the thread, as if that had called it. What runs the thread (the
 * C library) is left out between them; of the creator only the lines of the program tell call sites
 * apart. Any other stack ends where its thread begins: a thread of a pool was created by an earlier
 * task than the one it works on.
 *
 * Contract: an address is named by the module that held it last (a stack has no time). symbols may
 * be NULL: then names are those of the recording. Damage costs merging, nothing else. Cost: one
 * look-up for each frame of each stack, and one symbol look-up for each distinct address.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "analysis/recording/meta.h"
#include "analysis/recording/reader.h"

struct symbols;

/*
 * For each stack id from 0 to count - 1: the lowest id that prints alike, the lowest id of the same
 * place, and the frames where they are not those recorded (struct reader). The caller frees all.
 */
struct stack_identities stack_identities(const struct reader *reader, const struct meta *meta,
					 struct symbols *symbols);
