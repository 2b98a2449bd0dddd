/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/what_if/host/settings.h"

#include <glob.h>
#include <string.h>
#include "analysis/base/key_values.h"

/* Allocators that a preload installs. */
static const struct library {
	const char *allocator;
	const char *files[4];   /* the first that is there is used */
} libraries[] = {
	{ "jemalloc", { "libjemalloc.so.2", NULL } },
	{ "mimalloc", { "libmimalloc.so.2", "libmimalloc.so.3", "libmimalloc.so.2.0", NULL } },
	{ "tcmalloc", { "libtcmalloc_minimal.so.4", "libtcmalloc.so.4", NULL } },
};

static const struct tried {
	const char *allocator;
	const char *words;
	bool is_extra;
} tried[] = {
	{ "glibc", "", false },
	{ "glibc", "MALLOC_ARENA_MAX=1", false },
	{ "glibc", "MALLOC_ARENA_MAX=2", false },
	{ "glibc", "MALLOC_TRIM_THRESHOLD_=131072", false },
	{ "glibc", "MALLOC_MMAP_THRESHOLD_=65536", false },
	{ "glibc", "MALLOC_MMAP_THRESHOLD_=131072", true },
	{ "glibc", "MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=65536", true },
	{ "jemalloc", "", false },
	{ "jemalloc", "MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0", true },
	{ "mimalloc", "", false },
	{ "tcmalloc", "", false },
};

/* glibc's settings, of which a recording's values are used. */
static const char *const glibc_numbers[] = {
	"MALLOC_ARENA_MAX", "MALLOC_ARENA_TEST", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_",
	"MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_",
};

static const char *find_library(const struct library *library, struct arena *arena)
{
	static const char *const folders[] = {
		"/usr/local/lib", "/usr/lib/*-linux-gnu*", "/usr/lib64", "/usr/lib",
	};
	for (size_t i = 0; library->files[i]; i++)
		for (size_t j = 0; j < sizeof folders / sizeof *folders; j++) {
			const char *pattern = arena_format(arena, "%s/%s", folders[j],
							   library->files[i]);
			const char *path = NULL;
			glob_t found;

			if (glob(pattern, 0, NULL, &found))
				continue;
			if (found.gl_pathc)
				path = arena_text(arena, found.gl_pathv[0],
						  strlen(found.gl_pathv[0]));
			globfree(&found);
			if (path)
				return path;
		}
	return NULL;
}

/* Words to the list; LD_PRELOAD is not among them. */
static void add_words(struct host_setting *setting, const char *words, struct arena *arena)
{
	size_t count = 0;

	while (setting->words[count])
		count++;
	while (*words && count < SETTING_WORDS_MAX - 1) {
		size_t bytes = strcspn(words, " ");

		if (bytes)
			setting->words[count++] = arena_text(arena, words, bytes);
		words += bytes + strspn(words + bytes, " ");
	}
}

/* False: the allocator is not installed here. */
static bool make_setting(const char *allocator, const char *words, struct arena *arena,
			 struct host_setting *out)
{
	const char *base;

	*out = (struct host_setting){ .allocator = allocator };
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		if (!strcmp(libraries[i].allocator, allocator))
			out->library = find_library(&libraries[i], arena);
	if (!out->library && strcmp(allocator, "glibc"))
		return false;
	add_words(out, words, arena);
	if (out->library) {
		base = strrchr(out->library, '/') + 1;
		words = arena_format(arena, "LD_PRELOAD=%s%s%s", base, *words ? " " : "", words);
	}
	out->typed = words;
	return true;
}

struct host_setting *host_settings(struct arena *arena, bool all, size_t *count)
{
	size_t most = sizeof tried / sizeof *tried;
	struct host_setting *settings = arena_zeroed(arena, most, sizeof *settings);

	*count = 0;
	for (size_t i = 0; i < most; i++)
		if ((all || !tried[i].is_extra) &&
		    make_setting(tried[i].allocator, tried[i].words, arena, &settings[*count]))
			settings[(*count)++].is_extra = tried[i].is_extra;
	return settings;
}

/* NAME=NUMBER of glibc's names. */
static bool is_glibc_number(const char *word)
{
	for (size_t i = 0; i < sizeof glibc_numbers / sizeof *glibc_numbers; i++) {
		size_t bytes = strlen(glibc_numbers[i]);

		if (strncmp(word, glibc_numbers[i], bytes) || word[bytes] != '=')
			continue;
		word += bytes + 1;
		return *word && strlen(word) < 20 && strspn(word, "0123456789") == strlen(word);
	}
	return false;
}

static const char *recorded_allocator(const struct meta *meta)
{
	for (size_t i = 0; i < meta->text_count; i++) {
		const char *text = meta->texts[i].text;

		if (meta->texts[i].type != CUF_META_ALLOCATOR || key_is(text, "role", "private"))
			continue;
		if (key_is(text, "name", "glibc"))
			return "glibc";
		for (size_t j = 0; j < sizeof libraries / sizeof *libraries; j++)
			if (key_is(text, "name", libraries[j].allocator))
				return libraries[j].allocator;
	}
	return NULL;
}

bool host_setting_recorded(const struct meta *meta, struct arena *arena, struct host_setting *out,
			   const char **why)
{
	const char *allocator = recorded_allocator(meta), *words = "";

	if (!allocator) {
		*why = "the recording does not name its allocator";
		return false;
	}
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_ENV && is_glibc_number(meta->texts[i].text))
			words = arena_format(arena, "%s%s%s", words, *words ? " " : "",
					     meta->texts[i].text);
	if (!make_setting(allocator, words, arena, out)) {
		*why = arena_format(arena, "%s, which the program had, is not installed here",
				    allocator);
		return false;
	}
	return true;
}

/* Whose settings these are: the library's in front of libc. */
static const char *allocator_of(const char *library)
{
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		if (strstr(library, libraries[i].allocator))
			return libraries[i].allocator;
	return "other";
}

static bool is_allocators_variable(const char *word)
{
	static const char *const prefixes[] = { "MALLOC_", "GLIBC_TUNABLES=", "MIMALLOC_",
						"TCMALLOC_", "_RJEM_MALLOC_CONF=" };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(word, prefixes[i], strlen(prefixes[i])))
			return strchr(word, '=') != NULL;
	return false;
}

static const char *path_of_library(const char *name, struct arena *arena)
{
	struct library typed = { NULL, { name, NULL } };

	return strchr(name, '/') ? name : find_library(&typed, arena);
}

bool host_setting_parse(const char *typed, struct arena *arena, struct host_setting *out,
			const char **why)
{
	static const char preload[] = "LD_PRELOAD=";

	*out = (struct host_setting){ .typed = typed, .allocator = "glibc" };
	add_words(out, typed, arena);
	for (size_t i = 0, kept = 0; out->words[i]; i++) {
		const char *word = out->words[i];

		out->words[i] = NULL;
		if (!strncmp(word, preload, strlen(preload))) {
			word += strlen(preload);
			out->library = path_of_library(word, arena);
			out->allocator = allocator_of(word);
			if (!out->library) {
				*why = arena_format(arena, "there is no library %s here", word);
				return false;
			}
		} else if (is_allocators_variable(word)) {
			out->words[kept++] = word;
		} else {
			*why = arena_format(arena, "'%s' is no setting of an allocator", word);
			return false;
		}
	}
	return out->words[0] || out->library;
}
