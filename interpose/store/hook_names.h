/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of interposed functions by id, from the hook table. Contract: any thread; names are
 * constant texts.
 */
#pragma once

/* "unknown" for an id without a row. */
const char *cuf_hook_name(unsigned id);

/*
 * Writes all names into META, once a recording. A reader needs them for ids that are newer than
 * itself.
 */
void cuf_hook_names_write(void);
