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
#include "analysis/base/address_ranges.h"

struct symbol_table {
	struct address_ranges functions; /* value: address of the name */
};

void symbol_table_load(struct symbol_table *table, Dwfl_Module *module);
const char *symbol_table_find(const struct symbol_table *table, uint64_t elf_address);
void symbol_table_fini(struct symbol_table *table);
