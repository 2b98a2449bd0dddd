/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the table of families. */
#include "interpose/hooks/malloc/allocator_family.h"

/* An object belongs to the first family whose probe it exports under one of the prefixes. */
static const struct cuf_allocator_family families[] = {
	{ "jemalloc", "mallctl", { "", "je_", "_rjem_", "je_arrow_", "jemalloc_" }, false,
	  cuf_stats_jemalloc, cuf_version_jemalloc },
	{ "tcmalloc", "MallocExtension_GetNumericProperty", { "" }, false, cuf_stats_tcmalloc,
	  NULL },
	{ "tcmalloc", "MallocExtension_Internal_GetNumericProperty", { "" }, false,
	  cuf_stats_tcmalloc, NULL },
	{ "tcmalloc", "tc_malloc", { "" }, true, NULL, NULL },
	{ "mimalloc", "mi_version", { "" }, true, cuf_stats_mimalloc, cuf_version_mimalloc },
	{ "glibc", "malloc_info", { "" }, true, cuf_stats_glibc, cuf_version_glibc },
};
enum {
	FAMILIES = sizeof families / sizeof *families,
	FAMILIES_BUT_GLIBC = FAMILIES - 1, /* glibc is in every process */
	PREFIXES = sizeof families->prefixes / sizeof *families->prefixes,
};

const struct cuf_allocator_family *cuf_allocator_family(struct cuf_allocator *allocator,
							bool but_glibc)
{
	unsigned count = but_glibc ? FAMILIES_BUT_GLIBC : FAMILIES;
	for (unsigned f = 0; f < count; f++)
		for (unsigned p = 0; p < PREFIXES && families[f].prefixes[p]; p++) {
			allocator->prefix = families[f].prefixes[p];
			if (cuf_allocator_function(allocator, families[f].probe))
				return &families[f];
		}
	allocator->prefix = "";
	return NULL;
}

void cuf_allocator_add(struct cuf_text *text, const struct cuf_allocator_family *family,
		       const struct cuf_allocator *allocator, const char *role,
		       const char *object, bool has_figures)
{
	CUF_TEXT(version, 64);
	cuf_stats_add_word(text, "name", family ? family->name : "unknown");
	if (family && family->version)
		family->version(allocator, &version);
	if (version.used)
		cuf_stats_add_word(text, "version", version.at);
	cuf_stats_add_word(text, "role", role);
	cuf_stats_add_word(text, "object", object && *object ? object : "the program itself");
	if (*allocator->prefix)
		cuf_stats_add_word(text, "prefix", allocator->prefix);
	if (has_figures && family && family->stats)
		family->stats(allocator, text);
}
