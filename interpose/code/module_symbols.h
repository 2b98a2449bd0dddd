/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dynamic symbol table of a loaded object, for a search by address. Another thread may close
 * the object meanwhile: its memory is unmapped, and something else may come in its place.
 *
 * Contract: everything is copied by the kernel, piece by piece (platform/guarded_copy.h), so
 * nothing faults. What was read is worth something only if the object is the same afterwards,
 * which is the caller's check. No lock, no allocation; errno untouched. The pieces are the
 * caller's: too large for a stack.
 */
#pragma once

#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* Room for what is being read. */
struct cuf_symbol_pieces {
	ElfW(Sym) symbols[2048];
	uint32_t words[8192];
	ElfW(Dyn) dynamic[64];
};

/* names: address of the string table, in the object. */
typedef void cuf_symbol_visitor(const ElfW(Sym) *symbol, uintptr_t names, void *context);

/*
 * Visits the table's entries in order, at most `most` of them, and returns how many. bias and
 * dynamic as in struct link_map.
 */
uint64_t cuf_module_symbols(struct cuf_symbol_pieces *pieces, uintptr_t bias, uintptr_t dynamic,
			    uint64_t most, cuf_symbol_visitor *visit, void *context);

/* Of its names, all together: tells a large table from a small one. 0: it has none. */
uint64_t cuf_module_name_bytes(struct cuf_symbol_pieces *pieces, uintptr_t bias,
			       uintptr_t dynamic);
