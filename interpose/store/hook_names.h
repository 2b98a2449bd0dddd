/* SPDX-License-Identifier: Apache-2.0 */
/* Names of interposed functions by id, from the hook table. */
#ifndef CUF_HOOK_NAMES_H
#define CUF_HOOK_NAMES_H

const char *cuf_hook_name(unsigned id); /* "unknown" for an id without a row */
void cuf_hook_names_write(void);        /* all names into META, so that any reader can name them; once a recording */
void cuf_hook_names_atfork_child(void);

#endif
