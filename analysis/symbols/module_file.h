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
#ifndef MODULE_FILE_H
#define MODULE_FILE_H

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

#endif
