/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads DT_SYMTAB from beginning to end. Its length is nowhere: DT_HASH states it, and with
 * DT_GNU_HASH the table ends with the longest chain.
 */
#include "interpose/code/module_symbols.h"

#include <stdbool.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/laws.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A dynamic section is a few dozen entries. */
enum { DYNAMIC_PIECES_MAX = 16 };

/* Addresses in the object; 0: not present. */
struct table {
	uintptr_t symbols, names, hash, gnu_hash;
	uint64_t name_bytes;
};

static void take_entry(struct table *table, uintptr_t bias, uintptr_t dynamic,
		       const ElfW(Dyn) *entry)
{
	uintptr_t at = (uintptr_t)cuf_elf_pointer(bias, (const ElfW(Dyn) *)dynamic, entry);

	switch (entry->d_tag) {
	case DT_SYMTAB: table->symbols = at; break;
	case DT_STRTAB: table->names = at; break;
	case DT_STRSZ: table->name_bytes = entry->d_un.d_val; break;
	case DT_HASH: table->hash = at; break;
	case DT_GNU_HASH: table->gnu_hash = at; break;
	}
}

/* The section may end anywhere in the last piece, and the object right behind it. */
static bool read_table(struct cuf_symbol_pieces *pieces, uintptr_t bias, uintptr_t dynamic,
		       struct table *table)
{
	uintptr_t at = dynamic;

	*table = (struct table){ 0 };
	for (unsigned piece = 0; piece < DYNAMIC_PIECES_MAX; piece++) {
		size_t count = cuf_guarded_copy_part(pieces->dynamic, at, sizeof pieces->dynamic) /
			       sizeof *pieces->dynamic;

		for (size_t i = 0; i < count; i++) {
			if (pieces->dynamic[i].d_tag == DT_NULL)
				return table->symbols && table->names;
			take_entry(table, bias, dynamic, &pieces->dynamic[i]);
		}
		if (count < COUNT(pieces->dynamic))
			return false;
		at += sizeof pieces->dynamic;
	}
	return false;
}

/* Copies words [from, from + *count) of an array, as many as fit. false: unreadable. */
static bool read_words(struct cuf_symbol_pieces *pieces, uintptr_t array, uint64_t from,
		       uint64_t *count)
{
	if (*count > COUNT(pieces->words))
		*count = COUNT(pieces->words);
	*count = cuf_guarded_copy_part(pieces->words, array + from * sizeof *pieces->words,
				       *count * sizeof *pieces->words) /
		 sizeof *pieces->words;
	return *count > 0;
}

/* The largest symbol that a bucket begins with. */
static bool read_last_bucket(struct cuf_symbol_pieces *pieces, uintptr_t buckets, uint64_t count,
			     uint32_t *last)
{
	*last = 0;
	for (uint64_t from = 0, part; from < count; from += part) {
		part = count - from;
		if (!read_words(pieces, buckets, from, &part))
			return false;
		for (uint64_t i = 0; i < part; i++)
			if (pieces->words[i] > *last)
				*last = pieces->words[i];
	}
	return true;
}

/* Counts up to `most`. 0: unreadable. */
static uint64_t count_by_gnu_hash(struct cuf_symbol_pieces *pieces, uintptr_t hash, uint64_t most)
{
	struct {
		uint32_t buckets, first, bloom_words, shift;
	} head;
	uintptr_t buckets, chains;
	uint32_t last;

	if (!cuf_guarded_copy(&head, hash, sizeof head))
		return 0;
	buckets = hash + sizeof head + head.bloom_words * sizeof(ElfW(Addr));
	chains = buckets + head.buckets * sizeof(uint32_t);
	if (!read_last_bucket(pieces, buckets, head.buckets, &last))
		return 0;
	if (last < head.first)
		return head.first;
	/* bit 0 ends a chain */
	for (uint64_t from = last, part; from < most; from += part) {
		part = COUNT(pieces->words);
		if (!read_words(pieces, chains, from - head.first, &part))
			return 0;
		for (uint64_t i = 0; i < part; i++)
			if (pieces->words[i] & 1)
				return from + i + 1;
	}
	return most;
}

static uint64_t count_symbols(struct cuf_symbol_pieces *pieces, const struct table *table,
			      uint64_t most)
{
	uint32_t head[2];

	if (table->hash)
		return cuf_guarded_copy(head, table->hash, sizeof head) ? head[1] : 0;
	return table->gnu_hash ? count_by_gnu_hash(pieces, table->gnu_hash, most) : 0;
}

uint64_t cuf_module_symbols(struct cuf_symbol_pieces *pieces, uintptr_t bias, uintptr_t dynamic,
			    uint64_t most, cuf_symbol_visitor *visit, void *context)
{
	struct table table;
	uint64_t count, done = 0;

	if (!read_table(pieces, bias, dynamic, &table))
		return 0;
	count = count_symbols(pieces, &table, most);
	if (count > most)
		count = most;
	while (done < count) {
		size_t part = COUNT(pieces->symbols);

		if (part > count - done)
			part = count - done;
		part = cuf_guarded_copy_part(pieces->symbols,
					     table.symbols + done * sizeof *pieces->symbols,
					     part * sizeof *pieces->symbols) /
		       sizeof *pieces->symbols;
		if (!part)
			break;
		for (size_t i = 0; i < part; i++)
			visit(&pieces->symbols[i], table.names, context);
		done += part;
	}
	return done;
}

uint64_t cuf_module_name_bytes(struct cuf_symbol_pieces *pieces, uintptr_t bias, uintptr_t dynamic)
{
	struct table table;

	return read_table(pieces, bias, dynamic, &table) ? table.name_bytes : 0;
}
