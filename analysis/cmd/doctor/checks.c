/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tables of checks. What is looked at lies in checks_command.c, checks_place.c and checks_machine.c. */
#include "analysis/cmd/doctor/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void check_say(struct check_result *result, enum check_state state, const char *found, ...)
{
	va_list args;
	result->state = state;
	va_start(args, found);
	vsnprintf(result->found, sizeof result->found, found, args);
	va_end(args);
}

void check_todo(struct check_result *result, const char *todo, ...)
{
	va_list args;
	va_start(args, todo);
	vsnprintf(result->todo, sizeof result->todo, todo, args);
	va_end(args);
}

void checks_prepare(struct check_context *context, const char *library, const char *output, uint64_t recording_bytes, const char *command)
{
	memset(context, 0, sizeof *context);
	context->library_found = library_find(&context->library, library) == 0;
	destination_set(&context->destination, output);
	context->recording_bytes = recording_bytes;
	context->command = command;
	if (command)
		target_inspect(&context->target, command);
}

static size_t run_table(const struct check_context *context, const struct check *checks, struct check_result *results)
{
	size_t count = 0;
	for (; checks[count].name; count++) {
		memset(&results[count], 0, sizeof results[count]);
		results[count].name = checks[count].name;
		checks[count].look(context, &results[count]);
	}
	return count;
}

size_t checks_run(const struct check_context *context, bool command_alone, struct check_result *results)
{
	size_t count = context->command ? run_table(context, checks_of_command, results) : 0;
	if (command_alone)
		return count;
	count += run_table(context, checks_of_place, results + count);
	return count + run_table(context, checks_of_machine, results + count);
}
