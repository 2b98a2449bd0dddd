/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the reading of DT_GNU_HASH and DT_HASH. Both are needed, because distributions differ in
 * which one they ship. Only public ELF structures are used: loaders hide symbols (GLIBC_PRIVATE
 * went in 2.34), not the format. Owns also which objects of the loader's list stay.
 */
#include "interpose/objects/elf_symbol.h"

#include <string.h>
#include <sys/auxv.h>
#include "interpose/platform/laws.h"

#define VERSION_HIDDEN 0x8000

/* DT_GNU_HASH: four words, a Bloom filter, then buckets and chains of symbol indices. */
struct gnu_hash {
	uint32_t buckets, first, bloom_words, shift;
	const ElfW(Addr) *bloom;
	const uint32_t *bucket, *chain;
};

static uintptr_t distance(uintptr_t a, uintptr_t b) { return a > b ? a - b : b - a; }

/*
 * glibc relocates these pointers in place, except in the vdso, and other loaders do not. Only one
 * of the two readings is near the dynamic section. The smaller one would be wrong: the vdso of
 * gVisor, of user-mode Linux and of kernels before 3.16 is linked at the top of the address
 * space, and its bias wraps around.
 */
const void *cuf_elf_pointer(uintptr_t bias, const ElfW(Dyn) *dynamic, const ElfW(Dyn) *entry)
{
	uintptr_t as_is = entry->d_un.d_ptr, moved = bias + as_is, here = (uintptr_t)dynamic;

	return (const void *)(distance(as_is, here) < distance(moved, here) ? as_is : moved);
}

bool cuf_elf_open(uintptr_t bias, const ElfW(Dyn) *dynamic, struct cuf_elf_table *table)
{
	*table = (struct cuf_elf_table){ .bias = bias };
	for (const ElfW(Dyn) *entry = dynamic; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			table->symbols = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_STRTAB:
			table->strings = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_GNU_HASH:
			table->gnu_hash = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_HASH:
			table->hash = cuf_elf_pointer(bias, dynamic, entry);
			break;
		case DT_VERSYM:
			table->versions = cuf_elf_pointer(bias, dynamic, entry);
			break;
		}
	}
	return table->symbols && table->strings;
}

/* ---- by name ---- */

enum match { MATCH_NONE, MATCH_OLD_VERSION, MATCH_DEFAULT_VERSION };

static enum match symbol_matches(const struct cuf_elf_table *table, uint32_t index,
				 const char *name)
{
	const ElfW(Sym) *symbol = &table->symbols[index];

	if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 15) == STT_TLS ||
	    symbol->st_value == 0 || strcmp(table->strings + symbol->st_name, name) != 0)
		return MATCH_NONE;
	if (table->versions && table->versions[index] & VERSION_HIDDEN)
		return MATCH_OLD_VERSION;
	return MATCH_DEFAULT_VERSION;
}

static struct gnu_hash gnu_hash_open(const uint32_t *head)
{
	struct gnu_hash hash = {
		.buckets = head[0],
		.first = head[1],
		.bloom_words = head[2],
		.shift = head[3],
		.bloom = (const ElfW(Addr) *)(head + 4),
	};

	hash.bucket = (const uint32_t *)(hash.bloom + hash.bloom_words);
	hash.chain = hash.bucket + hash.buckets;
	return hash;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	return hash;
}

/*
 * The symbol's index. An old version is returned only when no default version exists. 0: not
 * found.
 */
static uint32_t gnu_hash_find(const struct cuf_elf_table *table, const char *name)
{
	const struct gnu_hash gnu = gnu_hash_open(table->gnu_hash);
	const unsigned bits = 8 * sizeof *gnu.bloom;
	uint32_t hash = gnu_hash_of(name), old = 0, i;
	ElfW(Addr) word;

	if (!gnu.buckets || !gnu.bloom_words)
		return 0;
	word = gnu.bloom[hash / bits & (gnu.bloom_words - 1)];
	if (!(word >> hash % bits & word >> (hash >> gnu.shift) % bits & 1))
		return 0;
	i = gnu.bucket[hash % gnu.buckets];
	if (i < gnu.first)
		return 0;
	for (;; i++) {
		uint32_t entry = gnu.chain[i - gnu.first];
		enum match match = MATCH_NONE;

		if ((entry ^ hash) >> 1 == 0)
			match = symbol_matches(table, i, name);
		if (match == MATCH_DEFAULT_VERSION)
			return i;
		if (match == MATCH_OLD_VERSION)
			old = i;
		if (entry & 1)
			return old;
	}
}

/* The same by DT_HASH. */
static uint32_t sysv_hash_find(const struct cuf_elf_table *table, const char *name)
{
	uint32_t buckets = table->hash[0], hash = 0, old = 0;
	const uint32_t *bucket = table->hash + 2, *chain = bucket + buckets;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		hash = (hash << 4) + *c;
		uint32_t high = hash & 0xf0000000u;
		hash = (hash ^ high >> 24) & ~high;
	}
	for (uint32_t i = buckets ? bucket[hash % buckets] : 0; i; i = chain[i]) {
		enum match match = symbol_matches(table, i, name);

		if (match == MATCH_DEFAULT_VERSION)
			return i;
		if (match == MATCH_OLD_VERSION)
			old = i;
	}
	return old;
}

static uint32_t symbol_find(const struct cuf_elf_table *table, const char *name)
{
	if (table->gnu_hash)
		return gnu_hash_find(table, name);
	return table->hash ? sysv_hash_find(table, name) : 0;
}

/* NULL: there is none. */
static void *find(const struct cuf_elf_table *table, const char *name, size_t *bytes)
{
	const uint32_t index = symbol_find(table, name);
	const ElfW(Sym) *symbol = &table->symbols[index];
	void *address = (void *)(table->bias + symbol->st_value);

	if (!index)
		return NULL;
	/* the symbol names a resolver, which chooses the function for this processor */
	if ((symbol->st_info & 15) == STT_GNU_IFUNC)
		address = ((void *(*)(unsigned long))address)(getauxval(AT_HWCAP));
	*bytes = symbol->st_size;
	return address;
}

void *cuf_elf_find(const struct cuf_elf_table *table, const char *name)
{
	size_t bytes;

	return find(table, name, &bytes);
}

void *cuf_elf_symbol_bytes(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name,
			   size_t *bytes)
{
	struct cuf_elf_table table;

	return cuf_elf_open(bias, dynamic, &table) ? find(&table, name, bytes) : NULL;
}

void *cuf_elf_symbol(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name)
{
	size_t bytes;

	return cuf_elf_symbol_bytes(bias, dynamic, name, &bytes);
}

bool cuf_elf_is_variable(uintptr_t bias, const ElfW(Dyn) *dynamic, const char *name)
{
	struct cuf_elf_table table;
	uint32_t index;
	unsigned type;

	if (!cuf_elf_open(bias, dynamic, &table) || !(index = symbol_find(&table, name)))
		return false;
	type = table.symbols[index].st_info & 15;
	return type == STT_OBJECT || type == STT_COMMON;
}

/* ---- texts of the dynamic section ---- */

/* The text of the index-th entry with this tag. */
static const char *find_text(uintptr_t bias, const ElfW(Dyn) *dynamic, long tag, unsigned index)
{
	struct cuf_elf_table table;

	if (!cuf_elf_open(bias, dynamic, &table))
		return NULL;
	for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag && index-- == 0)
			return table.strings + entry->d_un.d_val;
	return NULL;
}

const char *cuf_elf_soname(uintptr_t bias, const ElfW(Dyn) *dynamic)
{
	return find_text(bias, dynamic, DT_SONAME, 0);
}

const char *cuf_elf_needed(uintptr_t bias, const ElfW(Dyn) *dynamic, unsigned index)
{
	return find_text(bias, dynamic, DT_NEEDED, index);
}

/* ---- the loader's list ---- */

/* glibc's, and musl's. */
extern struct r_debug _r_debug __attribute__((weak));
extern const struct r_debug *const _dl_debug_addr __attribute__((weak));

static const struct r_debug *loader_list(void)
{
	if (&_r_debug)
		return &_r_debug;
	return &_dl_debug_addr ? _dl_debug_addr : NULL;
}

const struct link_map *cuf_elf_first_at_start(void)
{
	const struct r_debug *list = loader_list();

	return list ? list->r_map : NULL;
}

bool cuf_elf_list_is_complete(void)
{
	const struct r_debug *list = loader_list();

	return list && list->r_state == RT_CONSISTENT;
}

/*
 * The first caller comes before any object is opened: dlopen is a hook, and so is the malloc of
 * whoever makes a thread. One that walks at the same time does not go past what that one found.
 */
static const struct link_map *last_at_start(void)
{
	static const struct link_map *known;
	const struct link_map *last = NULL, *map = cuf_elf_first_at_start();

	for (; map && !__atomic_load_n(&known, __ATOMIC_ACQUIRE); map = map->l_next)
		last = map;
	map = NULL;
	if (last && __atomic_compare_exchange_n(&known, &map, last, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
		return last;
	return __atomic_load_n(&known, __ATOMIC_ACQUIRE);
}

const struct link_map *cuf_elf_next_at_start(const struct link_map *map)
{
	return map == last_at_start() ? NULL : map->l_next;
}
