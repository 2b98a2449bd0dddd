/* SPDX-License-Identifier: Apache-2.0 */
/* Splits META CODE records into lines and sorts them by number. */
#include "analysis/recording/python_names.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "interpose/abi/format.h"

struct named_code { uint32_t code; struct python_name name; };

struct python_names {
	struct arena *arena;
	struct named_code *entries;
	size_t count, room;
};

/* Copies the line at *at and moves *at to the next one; "" past the end. */
static const char *next_line(struct arena *arena, const char **at)
{
	size_t bytes = strcspn(*at, "\n");
	const char *line = arena_text(arena, *at, bytes);
	*at += bytes + ((*at)[bytes] == '\n');
	return line;
}

static int by_code(const void *a, const void *b)
{
	const struct named_code *left = a, *right = b;
	return compare_numbers(left->code, right->code);
}

struct python_names *python_names_of(const struct fact_meta_text *texts, size_t count)
{
	struct python_names *names = xalloc_zeroed(1, sizeof *names);
	names->arena = arena_new();
	for (size_t i = 0; i < count; i++) {
		const struct fact_meta_text *text = &texts[i];
		const char *at = text->text;
		struct named_code *entry;
		if (text->type != CUF_META_CODE)
			continue;
		xalloc_grow(&names->entries, names->count, &names->room, sizeof *names->entries);
		entry = &names->entries[names->count++];
		entry->code = (uint32_t)text->number;
		entry->name.function = next_line(names->arena, &at);
		entry->name.file = next_line(names->arena, &at);
		entry->name.first_line = (unsigned)strtoul(next_line(names->arena, &at), NULL, 10);
	}
	if (names->count)
		qsort(names->entries, names->count, sizeof *names->entries, by_code);
	return names;
}

void python_names_free(struct python_names *names)
{
	if (!names)
		return;
	arena_free(names->arena);
	free(names->entries);
	free(names);
}

const struct python_name *python_names_find(const struct python_names *names, uint32_t code)
{
	const struct named_code key = { .code = code };
	const struct named_code *found = NULL;

	if (names->count)
		found = bsearch(&key, names->entries, names->count, sizeof key, by_code);
	if (!found)
		return NULL;
	return &found->name;
}

/* Paths of distributions and virtual environments; a frozen module has no path. */
bool python_file_is_library(const char *file)
{
	static const char *const parts[] = { "/site-packages/", "/dist-packages/", "/lib/python3",
					     "/lib64/python3", "/python3.zip/" };
	if (!strncmp(file, "<frozen ", 8))
		return true;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (strstr(file, parts[i]))
			return true;
	return false;
}
