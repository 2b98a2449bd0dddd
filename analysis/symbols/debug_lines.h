/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines and inlined functions of one module, from its DWARF: in the file, in a separate
 * debug file, or split into .dwo files.
 *
 * Contract: open once, from a libdwfl module that is reported at address 0 and outlives the lines.
 * A look-up returns the chain of functions at an address, innermost first. Unknown parts are NULL
 * or 0; strings belong to the libdwfl module. The functions of a unit are indexed at the first
 * look-up in it. Damaged DWARF costs names and lines only.
 */
#pragma once

#include <elfutils/libdwfl.h>
#include "analysis/symbols/symbol_table.h"

#define DEBUG_CHAIN_MAX 64

struct debug_unit;

struct debug_lines {
	Dwarf_Addr bias;              /* elf_address - bias = address in the DWARF */
	struct debug_unit *units;
	size_t unit_count, unit_capacity;
	struct address_ranges ranges; /* value: index into units */
};

struct debug_frame {
	const char *linkage_name; /* mangled; NULL unknown */
	const char *name;         /* as in the source, without its scope; NULL unknown */
	const char *file;
	unsigned line;
};

void debug_lines_open(struct debug_lines *lines, Dwfl_Module *module);
/* Fills up to DEBUG_CHAIN_MAX frames and returns their number; 0: the address is unknown. All
 * frames but the last were inlined. */
size_t debug_lines_find(struct debug_lines *lines, uint64_t elf_address,
			struct debug_frame chain[DEBUG_CHAIN_MAX]);
void debug_lines_fini(struct debug_lines *lines);

/*
 * Where libdw looks for separate debug files (debug_paths.c). It opens what it finds there, and
 * waits without limit at a FIFO. A file names its debug files itself, so this looks first. Pure,
 * except for stat. False: one of the places has something that is no regular file. A place that is
 * empty is fine.
 *
 * The places of a .gnu_debuglink. link NULL: the name that is tried without one. debug_path is as
 * Dwfl_Callbacks.debuginfo_path. */
bool debug_link_is_safe(const char *file, const char *link, const char *debug_path);
/* The places of the split unit that this skeleton unit names; true if it names none. */
bool debug_split_is_safe(Dwarf_Die *unit, const char *file);
