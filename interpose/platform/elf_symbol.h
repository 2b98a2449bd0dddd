/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of one loaded object, read from its own dynamic section. dlsym would do the same, but dlsym is one of the
 * functions to be found, takes the loader's lock, allocates, and changes dlerror().
 *
 * Contract: no lock, no allocation, no system call, errno untouched. The object must stay mapped during the call.
 * bias and dynamic are those of struct link_map (l_addr, l_ld) or of dl_phdr_info. Any thread.
 */
#ifndef CUF_ELF_SYMBOL_H
#define CUF_ELF_SYMBOL_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Address of what this object (none of its dependencies) defines under this name, in its default version; NULL: nothing. */
void *cuf_elf_symbol(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name);

/* The same, and how long it is (st_size). */
void *cuf_elf_symbol_bytes(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name, size_t *bytes);

/* What an entry of the dynamic section points to. */
const void *cuf_elf_pointer(uintptr_t bias, const ElfW(Dyn) *dynamic, const ElfW(Dyn) *entry);

/* DT_SONAME, or NULL. Borrowed from the object. */
const char *cuf_elf_soname(uintptr_t bias, const ElfW(Dyn) *dynamic);

/* The index-th DT_NEEDED, or NULL past the last. */
const char *cuf_elf_needed(uintptr_t bias, const ElfW(Dyn) *dynamic, unsigned index);

#endif
