/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, in the order of the help. */
#include "analysis/cmd/cmd.h"

#include <string.h>
#include "analysis/cmd/cli/suggest.h"

const struct cmd *const cmd_table[] = { &cmd_run, &cmd_report, &cmd_doctor, &cmd_env, &cmd_help, NULL };

const struct cmd *cmd_find(const char *name)
{
	for (size_t i = 0; cmd_table[i]; i++)
		if (!strcmp(cmd_table[i]->name, name))
			return cmd_table[i];
	return NULL;
}

const char *cmd_nearest(const char *typed)
{
	const char *names[sizeof cmd_table / sizeof *cmd_table];
	size_t count = 0;
	for (; cmd_table[count]; count++)
		names[count] = cmd_table[count]->name;
	return suggest_nearest(typed, names, count);
}
