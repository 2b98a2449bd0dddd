/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one module by address, from its symbol tables: .symtab (of the file, of its
 * separate debug file, or of .gnu_debugdata), else .dynsym.
 *
 * Contract: load once, from a libdwfl module that is reported at address 0 and lives as long as
 * the table. A look-up returns the name as it is in the file, mangled and borrowed from the
 * libdwfl module; NULL where no function is known.
 */
#pragma once

#include <elfutils/libdwfl.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Address ranges that may nest, sorted once and searched by bisection.
 *
 * Contract: add in any order, sort once, then find. A range is [start, end); an empty one is
 * ignored. Where ranges nest or overlap, the one that starts last wins, and of two with the same
 * start the shorter one. value is the caller's. The caller owns the struct (zeroed at first) and
 * ends it with fini. Dies on exhaustion.
 */

struct address_range {
	uint64_t start, end;
	uint64_t value;
	/* index + 1 of the nearest earlier range that this one starts in; 0 none */
	uint32_t around;
};

struct address_ranges {
	struct address_range *list;
	size_t count, capacity;
};

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			uint64_t value);
void address_ranges_sort(struct address_ranges *ranges);
/* The innermost range that has the address; NULL: none. */
const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address);
void address_ranges_fini(struct address_ranges *ranges);

struct symbol_table {
	struct address_ranges functions; /* value: address of the name */
};

void symbol_table_load(struct symbol_table *table, Dwfl_Module *module);
const char *symbol_table_find(const struct symbol_table *table, uint64_t elf_address);
void symbol_table_fini(struct symbol_table *table);
