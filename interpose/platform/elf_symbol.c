/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of DT_GNU_HASH and DT_HASH. Both, because some distributions ship one alone. Only public ELF
 * structures are used: loaders hide symbols (GLIBC_PRIVATE went in 2.34), not the format.
 */
#include "interpose/platform/elf_symbol.h"

#include <string.h>
#include <sys/auxv.h>
#include "interpose/platform/laws.h"

#define VERSION_HIDDEN 0x8000

struct table {
	uintptr_t bias;
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash, *hash;
	const ElfW(Half) *versions;
};

static uintptr_t distance(uintptr_t a, uintptr_t b) { return a > b ? a - b : b - a; }

/*
 * glibc relocates these pointers in place, but not in the vdso, and not everywhere. Only one of the two readings lies near the
 * dynamic section. (Not the smaller one: the vdso of gVisor, of user-mode Linux and of kernels before 3.16 is linked at
 * the top of the address space, and its bias wraps around.)
 */
const void *cuf_elf_pointer(uintptr_t bias, const ElfW(Dyn) *dynamic, const ElfW(Dyn) *entry)
{
	uintptr_t as_is = entry->d_un.d_ptr, moved = bias + as_is, here = (uintptr_t)dynamic;
	return (const void *)(distance(as_is, here) < distance(moved, here) ? as_is : moved);
}

static bool table_read(uintptr_t bias, const ElfW(Dyn) *dynamic, struct table *table)
{
	*table = (struct table){ .bias = bias };
	for (const ElfW(Dyn) *d = dynamic; d && d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: table->symbols = cuf_elf_pointer(bias, dynamic, d); break;
		case DT_STRTAB: table->strings = cuf_elf_pointer(bias, dynamic, d); break;
		case DT_GNU_HASH: table->gnu_hash = cuf_elf_pointer(bias, dynamic, d); break;
		case DT_HASH: table->hash = cuf_elf_pointer(bias, dynamic, d); break;
		case DT_VERSYM: table->versions = cuf_elf_pointer(bias, dynamic, d); break;
		}
	}
	return table->symbols && table->strings;
}

/* 0: another symbol, 1: this name in an old version, 2: this name in its default version */
static int symbol_matches(const struct table *t, uint32_t index, const char *name)
{
	const ElfW(Sym) *s = &t->symbols[index];
	unsigned type = s->st_info & 15;
	if (s->st_shndx == SHN_UNDEF || type == STT_TLS || s->st_value == 0 || strcmp(t->strings + s->st_name, name) != 0)
		return 0;
	return t->versions && t->versions[index] & VERSION_HIDDEN ? 1 : 2;
}

static uint32_t gnu_hash_find(const struct table *t, const char *name)
{
	const uint32_t *head = t->gnu_hash;
	uint32_t buckets = head[0], first = head[1], bloom_words = head[2], shift = head[3], hash = 5381, old = 0;
	const ElfW(Addr) *bloom = (const ElfW(Addr) *)(head + 4);
	const uint32_t *bucket = (const uint32_t *)(bloom + bloom_words), *chain = bucket + buckets;
	const unsigned bits = 8 * sizeof *bloom;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	if (!buckets || !bloom_words)
		return 0;
	ElfW(Addr) word = bloom[hash / bits & (bloom_words - 1)];
	if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1))
		return 0;
	uint32_t i = bucket[hash % buckets];
	if (i < first)
		return 0;
	for (;; i++) {
		uint32_t entry = chain[i - first];
		int match = (entry ^ hash) >> 1 ? 0 : symbol_matches(t, i, name);
		if (match == 2)
			return i;
		if (match == 1)
			old = i;
		if (entry & 1)
			return old;
	}
}

static uint32_t sysv_hash_find(const struct table *t, const char *name)
{
	uint32_t buckets = t->hash[0], hash = 0, old = 0;
	const uint32_t *bucket = t->hash + 2, *chain = bucket + buckets;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		hash = (hash << 4) + *c;
		uint32_t high = hash & 0xf0000000u;
		hash = (hash ^ high >> 24) & ~high;
	}
	for (uint32_t i = buckets ? bucket[hash % buckets] : 0; i; i = chain[i]) {
		int match = symbol_matches(t, i, name);
		if (match == 2)
			return i;
		if (match == 1)
			old = i;
	}
	return old;
}

void *cuf_elf_symbol_bytes(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name, size_t *bytes)
{
	struct table t;
	uint32_t index;
	if (!table_read(bias, dynamic, &t))
		return NULL;
	index = t.gnu_hash ? gnu_hash_find(&t, name) : t.hash ? sysv_hash_find(&t, name) : 0;
	if (!index)
		return NULL;
	const ElfW(Sym) *s = &t.symbols[index];
	void *address = (void *)(bias + s->st_value);
	if ((s->st_info & 15) == STT_GNU_IFUNC) /* the symbol names a function that chooses the function */
		address = ((void *(*)(unsigned long))address)(getauxval(AT_HWCAP));
	*bytes = s->st_size;
	return address;
}

void *cuf_elf_symbol(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name)
{
	size_t bytes;
	return cuf_elf_symbol_bytes(bias, dynamic, name, &bytes);
}

const char *cuf_elf_soname(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	struct table t;
	if (!table_read(bias, dynamic, &t))
		return NULL;
	for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_SONAME)
			return t.strings + d->d_un.d_val;
	return NULL;
}

const char *cuf_elf_needed(uintptr_t bias, const ElfW(Dyn) *dynamic, unsigned index)
{
	struct table t;
	if (!table_read(bias, dynamic, &t))
		return NULL;
	for (const ElfW(Dyn) *d = dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && index-- == 0)
			return t.strings + d->d_un.d_val;
	return NULL;
}
