/* SPDX-License-Identifier: Apache-2.0 */
/* The hook table as pairs of id and name. */
#include "interpose/store/hook_names.h"

#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/store/meta.h"

/* names only: this room sees none of the functions */
#define HOOK(id, lib, ret, name, params, args, role) { id, #name },
static const struct {
	unsigned id;
	const char *name;
} names[] = {
#include "interpose/abi/hooks.def"
};

/* after the table, whose names include the poisoned ones */
#include "interpose/platform/laws.h"

static uint32_t written;

const char *cuf_hook_name(unsigned id)
{
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].id == id)
			return names[i].name;
	return "unknown";
}

/* The child's recording gets the names again. */
static void forget_written(void) { written = 0; }
CUF_AT_FORK_CHILD(forget_written);

void cuf_hook_names_write(void)
{
	if (__atomic_exchange_n(&written, 1, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		cuf_meta_text(CUF_META_HOOK, names[i].id, names[i].name, strlen(names[i].name));
}
