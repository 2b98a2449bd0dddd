/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of one loaded object, read from its dynamic section. dlsym would do the same, but dlsym
 * is one of the functions to find. It also takes the loader's lock, allocates, and changes
 * dlerror().
 *
 * Contract: no lock, no allocation, no system call, errno untouched. The object must stay mapped
 * during the call. bias and dynamic are those of struct link_map (l_addr, l_ld) or of
 * dl_phdr_info. Texts are borrowed from the object. Any thread.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The dynamic section, as far as symbols go, in run-time addresses. NULL: not present. */
struct cuf_elf_table {
	uintptr_t bias;
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	const ElfW(Half) *versions;
};

/* Reads the dynamic section, for many look-ups in one object. false: it has no symbols. */
bool cuf_elf_open(uintptr_t bias, const ElfW(Dyn) *dynamic, struct cuf_elf_table *table);

/*
 * The address of a definition in this object, in its default version. NULL: none. Dependencies
 * are not searched.
 */
void *cuf_elf_find(const struct cuf_elf_table *table, const char *name);

/* The same, for one look-up. */
void *cuf_elf_symbol(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name);

/* The same. *bytes is the symbol's size (st_size). */
void *cuf_elf_symbol_bytes(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name,
			   size_t *bytes);

/* Whether what cuf_elf_symbol finds is a variable, not a function. */
bool cuf_elf_is_variable(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name);

/* The run-time address that an entry of the dynamic section refers to. */
const void *cuf_elf_pointer(uintptr_t bias, const ElfW(Dyn) *dynamic, const ElfW(Dyn) *entry);

/* DT_SONAME, or NULL. */
const char *cuf_elf_soname(uintptr_t bias, const ElfW(Dyn) *dynamic);

/* The index-th DT_NEEDED, or NULL past the last. */
const char *cuf_elf_needed(uintptr_t bias, const ElfW(Dyn) *dynamic, unsigned index);

/*
 * The loader's list as it was at the first of these calls, which is the order of search. These
 * objects stay. Objects that are opened later come after them in the list, and another thread may
 * close them at any moment: so whoever walks the list and reads objects stops here. NULL: there is
 * none, or no next one.
 */
const struct link_map *cuf_elf_first_at_start(void);
const struct link_map *cuf_elf_next_at_start(const struct link_map *map);

/* false: a thread is adding objects to the list, or removing some. */
bool cuf_elf_list_is_complete(void);
