/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lines of a statistics text, and the look-up of an allocator's functions. */
#include "interpose/hooks/malloc/allocator_stats.h"

#include "interpose/objects/elf_symbol.h"

enum { CLASS_LINE_BYTES = 80 }; /* at most, of one class */

/* The symbol table of that object is searched, so a function of the same name elsewhere is never
 * found. */
void *cuf_allocator_function(const struct cuf_allocator *allocator, const char *name)
{
	CUF_TEXT(full, 96);
	cuf_text_add(&full, allocator->prefix);
	cuf_text_add(&full, name);
	return cuf_elf_symbol(allocator->bias, allocator->dynamic, full.at);
}

/* No escaping: words are names, versions and paths, and a reader splits at the first '='. */
void cuf_stats_add_word(struct cuf_text *text, const char *key, const char *word)
{
	cuf_text_add(text, key);
	cuf_text_add(text, "=");
	cuf_text_add(text, word);
	cuf_text_add(text, "\n");
}

/* Decimal, without separators or units: the key ends in the unit. */
void cuf_stats_add(struct cuf_text *text, const char *key, uint64_t value)
{
	cuf_text_add(text, key);
	cuf_text_add(text, "=");
	cuf_text_number(text, value);
	cuf_text_add(text, "\n");
}

/* Dropped as a whole where the text has no room: a truncated number would be another number. */
void cuf_stats_add_class(struct cuf_text *text, const char *key, uint64_t class, uint64_t count,
			 uint64_t bytes)
{
	if (text->room - text->used < CLASS_LINE_BYTES)
		return;
	cuf_text_add(text, key);
	cuf_text_add(text, ".");
	cuf_text_number(text, class);
	cuf_text_add(text, "=");
	cuf_text_number(text, count);
	cuf_text_add(text, ",");
	cuf_text_number(text, bytes);
	cuf_text_add(text, "\n");
}
