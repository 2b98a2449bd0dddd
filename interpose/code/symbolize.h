/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function names for frames, from the dynamic symbol tables that are mapped anyway. They are
 * written into META, so a report can name functions when the container's files are gone. With the
 * files the analysis finds more.
 *
 * Contract: cold (failures, dlclose and the end), bounded, no lock, no allocation.
 * One caller at a time; a request made meanwhile is dropped. Names are as in the symbol
 * table, not demangled. A name belongs to the module that META has at the address then.
 */
#pragma once

#include <stdint.h>

/* stacks: ids, 0 for none. */
void cuf_symbolize_stacks(const uint32_t *stacks, unsigned count);
/* Looks at so many symbols and frames at most, some 12 ns each. */
void cuf_symbolize_all_stacks(uint64_t most);

/*
 * Before dlclose: names the frames of all stacks that lie in this object, since its table of names
 * may be gone afterwards. handle: of dlopen; anything else is ignored. Objects that are closed
 * together with it are not named.
 */
void cuf_symbolize_before_close(void *handle);
