/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the file that a module of a recording was loaded from, and proves it by its build-id.
 *
 * Contract: module_file_find looks at the module's own path (under the sysroot), then in the search directories, then for
 * the build-id under the debug directories, then, where asked to, at debuginfod servers. It opens regular files alone, and
 * never blocks on one. The caller owns what it gets, and ends it with fini.
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
void module_file_close(struct module_file *file);                    /* the descriptor alone; path stays */
void module_file_damaged(struct module_file *file, const char *why); /* has the right build-id, and cannot be read */
void module_file_fini(struct module_file *file);

#endif
