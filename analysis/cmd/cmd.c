/* SPDX-License-Identifier: Apache-2.0 */
/* Searches a table of commands. */
#include "analysis/cmd/cmd.h"

#include <assert.h>
#include <string.h>
#include "analysis/cmd/cli/suggest.h"

enum { COMMANDS_MAX = 32 };

/* Names are compared in full. An abbreviation would become ambiguous with the next command. */
const struct cmd *cmd_find(const struct cmd *const *commands, const char *name)
{
	for (; *commands; commands++)
		if (!strcmp((*commands)->name, name))
			return *commands;
	return NULL;
}

/* The command that the user probably meant, for an error message. */
const char *cmd_nearest(const struct cmd *const *commands, const char *typed)
{
	const char *names[COMMANDS_MAX];
	size_t count = 0;

	for (; commands[count]; count++) {
		assert(count < COMMANDS_MAX);
		names[count] = commands[count]->name;
	}
	return suggest_nearest(typed, names, count);
}
