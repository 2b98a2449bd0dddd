/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table names dlsym and cuGetProcAddress, whose bodies look up in it. This is the one circle of
 * files that scripts/lint-arrows allows.
 */
#include "interpose/hooks/door/rows.h"

/* in the order of cuf_rows */
static void *const hooks[] = {
#define HOOK(id, lib, ret, name, params, args, role) (void *)cuf_hook_##name,
#include "interpose/abi/hooks.def"
};

void *cuf_row_hook(const struct cuf_row *row) { return hooks[row - cuf_rows]; }

void *cuf_driver_hook_of(const void *export)
{
	for (unsigned i = 0; export && i < cuf_row_count; i++)
		if (cuf_real_driver_export(&cuf_rows[i]) == export)
			return hooks[i];
	return NULL;
}
