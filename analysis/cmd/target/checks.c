/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tables of checks_command.c, checks_place.c and checks_machine.c. */
#include "analysis/cmd/target/checks.h"

#include <string.h>

/* Gathers what several checks need. Errors are kept in the context: the check that each belongs to
 * reports it. */
void checks_prepare(struct check_context *context, const char *library, const char *output,
		    uint64_t recording_bytes, const char *command)
{
	memset(context, 0, sizeof *context);
	context->library_found = library_find(&context->library, library) == 0;
	destination_set(&context->destination, output);
	context->recording_bytes = recording_bytes;
	context->command = command;
	if (command)
		target_inspect(&context->target, command);
}

/* One result for each check, in the order of the table. A check that does not apply still has a
 * result, so the lines of two runs can be compared. */
static size_t run_table(const struct check_context *context, const struct check *checks,
			struct check_result *results)
{
	size_t count = 0;

	for (; checks[count].name; count++) {
		memset(&results[count], 0, sizeof results[count]);
		results[count].name = checks[count].name;
		checks[count].look(context, &results[count]);
	}
	return count;
}

/* The command comes first: its problems are the most likely ones. results has space for
 * CHECKS_MAX. */
size_t checks_run(const struct check_context *context, bool command_only,
		  struct check_result *results)
{
	size_t count = 0;

	if (context->command)
		count = run_table(context, checks_of_command, results);
	if (command_only)
		return count;
	count += run_table(context, checks_of_place, results + count);
	return count + run_table(context, checks_of_machine, results + count);
}
