/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We export names that may exist nowhere else in the process. A program that asks by a weak
 * reference whether there is a cudaMalloc would find one. And a library that keeps the driver's
 * functions in variables of the same names (as cuew makes them) would store into our code.
 *
 * The loader has written these addresses before our constructor runs. So they are corrected in
 * place, to what it would have written without us. Objects opened later cannot be corrected: their
 * constructors run before dlopen returns.
 */
#include "interpose/hooks/door/startup_references.h"

#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/page.h"
#include "interpose/platform/sys.h"
#include "interpose/hooks/door/rows.h"
#include "interpose/hooks/loader/dso.h"

#if defined __x86_64__
enum { ADDRESS_IN_TABLE = R_X86_64_GLOB_DAT, ADDRESS_IN_DATA = R_X86_64_64 };
#elif defined __aarch64__
enum { ADDRESS_IN_TABLE = R_AARCH64_GLOB_DAT, ADDRESS_IN_DATA = R_AARCH64_ABS64 };
#endif

/* The references of one object, by its dynamic section. */
struct references {
	const ElfW(Rela) *at, *calls;
	size_t bytes, calls_bytes, relative_count; /* the first ones have no name */
	const ElfW(Sym) *symbols;
	const char *strings;
};

static struct references read_references(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	struct references all = { 0 };
	for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++)
		switch (entry->d_tag) {
		case DT_RELA:
			all.at = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_RELASZ:
			all.bytes = entry->d_un.d_val;
			break;
		case DT_RELACOUNT:
			all.relative_count = entry->d_un.d_val;
			break;
		case DT_JMPREL:
			all.calls = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_PLTRELSZ:
			all.calls_bytes = entry->d_un.d_val;
			break;
		case DT_SYMTAB:
			all.symbols = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_STRTAB:
			all.strings = cuf_elf_pointer(bias, dynamic, entry);
			break;
		}
	return all;
}

/* ---- what a name means without us ---- */

struct definition {
	void *address; /* NULL: none */
	bool is_variable;
};

static struct definition definition_but_ours(const struct link_map *self, const char *name)
{
	const struct link_map *map = self;
	struct definition found = { 0 };
	while (map->l_prev)
		map = map->l_prev;
	for (; map && !found.address; map = cuf_elf_next_at_start(map)) {
		if (map == self)
			continue;
		found.address = cuf_elf_symbol(map->l_addr, map->l_ld, name);
		found.is_variable = found.address &&
				    cuf_elf_is_variable(map->l_addr, map->l_ld, name);
	}
	return found;
}

/* ---- correcting ---- */

/* The loader makes these pages of an object read-only when it has written the addresses. */
static bool is_sealed(const struct dl_phdr_info *object, uintptr_t place)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t from = object->dlpi_addr + header->p_vaddr;
		if (header->p_type == PT_GNU_RELRO && place >= from &&
		    place < ((from + header->p_memsz) & -cuf_page_bytes()))
			return true;
	}
	return false;
}

static void write_address(const struct dl_phdr_info *object, void **place, void *address)
{
	const uintptr_t bytes = cuf_page_bytes(), page = (uintptr_t)place & -bytes;
	if (!is_sealed(object, (uintptr_t)place)) {
		*place = address;
		return;
	}
	if (cuf_sys(SYS_mprotect, (long)page, (long)bytes, PROT_READ | PROT_WRITE, 0, 0, 0))
		return;
	*place = address;
	cuf_sys(SYS_mprotect, (long)page, (long)bytes, PROT_READ, 0, 0, 0);
}

/* A function behind us or in front is no reason: then the reference means a function, and ours
 * stands for it. */
static void correct(const struct dl_phdr_info *object, const struct link_map *self,
		    const ElfW(Sym) *symbol, const char *name, void **place)
{
	const struct cuf_row *row = cuf_row_find(name);
	struct definition without_us;
	if (!row || row->library == CUF_LIBRARY_CUFLIGHT || *place != cuf_row_hook(row))
		return;
	without_us = definition_but_ours(self, name);
	if (without_us.is_variable)
		write_address(object, place, without_us.address);
	else if (!without_us.address && ELF64_ST_BIND(symbol->st_info) == STB_WEAK)
		write_address(object, place, NULL);
}

static int correct_object(struct dl_phdr_info *object, size_t bytes, void *context)
{
	const struct cuf_dso *self = context;
	const ElfW(Dyn) *dynamic = cuf_dso_dynamic(object);
	struct references all;
	if (!dynamic || dynamic == self->map->l_ld)
		return 0;
	all = read_references(object->dlpi_addr, dynamic);
	if (!all.at || !all.symbols || !all.strings)
		return 0;
	for (size_t i = all.relative_count; i < all.bytes / sizeof *all.at; i++) {
		const unsigned long type = ELF64_R_TYPE(all.at[i].r_info);
		const ElfW(Sym) *symbol = &all.symbols[ELF64_R_SYM(all.at[i].r_info)];
		void **place = (void **)(object->dlpi_addr + all.at[i].r_offset);
		if (type != ADDRESS_IN_TABLE && type != ADDRESS_IN_DATA)
			continue;
		if ((uintptr_t)*place - self->start < self->end - self->start)
			correct(object, self->map, symbol, all.strings + symbol->st_name, place);
	}
	return 0;
}

void cuf_startup_references_correct(void)
{
	struct cuf_dso self;
	if (cuf_dso_at((const void *)cuf_startup_references_correct, &self))
		dl_iterate_phdr(correct_object, &self);
}

/* ---- who was here first ---- */

bool cuf_startup_has_us(void)
{
	struct cuf_dso self;
	if (!cuf_dso_at((const void *)cuf_startup_has_us, &self))
		return true;
	for (const struct link_map *map = self.map->l_prev; map; map = map->l_prev)
		if (cuf_elf_symbol(map->l_addr, map->l_ld, "__libc_start_main"))
			return false;
	return true;
}

/* ---- looking for a name ---- */

struct search {
	const char *name;
	bool found;
};

static void search_in(struct search *search, const struct references *all, const ElfW(Rela) *at,
		      size_t first, size_t bytes)
{
	for (size_t i = first; at && i < bytes / sizeof *at && !search->found; i++) {
		const ElfW(Sym) *symbol = &all->symbols[ELF64_R_SYM(at[i].r_info)];
		search->found = symbol->st_shndx == SHN_UNDEF &&
				!strcmp(all->strings + symbol->st_name, search->name);
	}
}

static int search_object(struct dl_phdr_info *object, size_t bytes, void *context)
{
	const ElfW(Dyn) *dynamic = cuf_dso_dynamic(object);
	struct search *search = context;
	struct references all;
	if (!dynamic)
		return 0;
	all = read_references(object->dlpi_addr, dynamic);
	if (!all.symbols || !all.strings)
		return 0;
	search_in(search, &all, all.calls, 0, all.calls_bytes);
	search_in(search, &all, all.at, all.relative_count, all.bytes);
	return search->found;
}

bool cuf_startup_references_have(const char *name)
{
	struct search search = { name, false };
	dl_iterate_phdr(search_object, &search);
	return search.found;
}
