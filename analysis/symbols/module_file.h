/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the file that a recorded module was loaded from and verifies it by its build-id.
 *
 * Contract: looks at the module's path (with a sysroot, under it only), then in the search
 * directories, then for the build-id under the debug directories, and then, if requested, at
 * debuginfod servers.
 * Opens regular files only and never blocks on one. The caller owns the result and ends it with
 * fini.
 */
#pragma once

#include "analysis/symbols/symbols.h"

struct module_file {
	int fd;                   /* -1: closed, or none found */
	enum symbols_state state;
	char *path;               /* of the file; NULL: none found */
	char *reason;             /* NULL when verified */
};

struct module_file module_file_find(const struct symbols_options *options, const char *path,
				    const uint8_t *build_id, size_t build_id_bytes);
/* Closes the descriptor; the path stays. */
void module_file_close(struct module_file *file);
/* The file has the right build-id but cannot be read. */
void module_file_damaged(struct module_file *file, const char *why);
void module_file_fini(struct module_file *file);

/*
 * Searches a module's constants for texts. They identify a library that was linked in with hidden
 * names and then stripped.
 *
 * Contract: reads the file piece by piece and maps nothing. A damaged file has none of the texts.
 * The descriptor is the caller's and its offset does not move. A text has 1 to 64 bytes.
 * Returns the index of the first text found in .rodata; count: none.
 */
size_t module_constants_find(int fd, const char *const *texts, size_t count);
