/* SPDX-License-Identifier: Apache-2.0 */
/* The hook table once more, as id and name. */
#include "interpose/store/hook_names.h"

#include <string.h>
#include "interpose/store/meta.h"

/* names as text alone: core knows none of the functions */
#define HOOK(id, lib, ret, name, params, args, role) { id, #name },
static const struct { unsigned id; const char *name; } names[] = {
#include "interpose/abi/hooks.def"
};

#include "interpose/platform/laws.h" /* after the table, which must be able to name what is poisoned */

const char *cuf_hook_name(unsigned id)
{
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].id == id)
			return names[i].name;
	return "unknown";
}

static uint32_t written;

void cuf_hook_names_atfork_child(void) { written = 0; }

void cuf_hook_names_write(void)
{
	if (__atomic_exchange_n(&written, 1, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		cuf_meta_text(CUF_META_HOOK, names[i].id, names[i].name, strlen(names[i].name));
}
