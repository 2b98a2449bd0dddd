/* SPDX-License-Identifier: Apache-2.0 */
/* The places are those of dwfl_standard_find_debuginfo and of libdw's search for split units. */
#include "analysis/symbols/debug_lines.h"

#include <dwarf.h>
#include <libiberty/libiberty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The three parts are joined with slashes; an empty directory is none. */
static bool is_regular_or_missing(const char *root, const char *directory, const char *name)
{
	char *path = concat(root, *root && *directory != '/' ? "/" : "", directory,
			    *root || *directory ? "/" : "", name, NULL);
	struct stat status;
	bool safe = stat(path, &status) != 0 || S_ISREG(status.st_mode);

	free(path);
	return safe;
}

static char *directory_of(const char *file)
{
	size_t bytes = (size_t)(lbasename(file) - file);

	while (bytes > 1 && file[bytes - 1] == '/')
		bytes--;
	return xmemdup(file, bytes, bytes + 1);
}

/* Below a debug directory the whole directory of the file is tried, then without its first parts.
 */
static bool is_safe_below(const char *root, const char *directory, const char *name)
{
	bool safe = is_regular_or_missing(root, "", name);

	for (; safe && directory && *directory; directory = strchr(directory + 1, '/'))
		safe = is_regular_or_missing(root, directory, name);
	return safe;
}

/* An entry of the path: the directory of the file, one below it, or a debug directory. */
static bool is_safe_in(const char *entry, const char *directory, const char *name)
{
	if (*entry == '/')
		return is_safe_below(entry, directory, name);
	return is_regular_or_missing(directory, entry, name);
}

bool debug_link_is_safe(const char *file, const char *link, const char *debug_path)
{
	char *entries = xstrdup(debug_path), *rest = entries, *entry, *directory, *name;
	bool safe = true;

	if (!file) {
		free(entries);
		return true;
	}
	name = link ? xstrdup(link) : concat(lbasename(file), ".debug", NULL);
	directory = directory_of(file);
	if (*name == '/')
		safe = is_regular_or_missing("", "", name);
	while (safe && (entry = strsep(&rest, ":")))
		safe = is_safe_in(entry, directory, name);
	free(directory);
	free(name);
	free(entries);
	return safe;
}

static const char *text_of(Dwarf_Die *unit, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr(unit, name, &attribute));
}

/* Next to the file, and in the directory of the compilation. */
bool debug_split_is_safe(Dwarf_Die *unit, const char *file)
{
	const char *name = text_of(unit, DW_AT_dwo_name), *compiled_in;
	char *directory;
	bool safe;

	if (!name)
		name = text_of(unit, DW_AT_GNU_dwo_name);
	if (!name)
		return true;
	if (*name == '/')
		return is_regular_or_missing("", "", name);
	compiled_in = text_of(unit, DW_AT_comp_dir);
	directory = directory_of(file ? file : "");
	safe = is_regular_or_missing(directory, "", name) &&
	       (!compiled_in || (is_regular_or_missing(compiled_in, "", name) &&
				 is_regular_or_missing(directory, compiled_in, name)));
	free(directory);
	return safe;
}
