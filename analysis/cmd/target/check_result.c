/* SPDX-License-Identifier: Apache-2.0 */
/* Fills results of checks. */
#include "analysis/cmd/target/check_result.h"

#include <stdarg.h>
#include <stdio.h>

/* A text that is too long is truncated. Both functions format like printf. */
void check_report(struct check_result *result, enum check_state state, const char *found, ...)
{
	va_list args;

	result->state = state;
	va_start(args, found);
	vsnprintf(result->found, sizeof result->found, found, args);
	va_end(args);
}

/* Only for a state that the user can change. The text starts with a verb. */
void check_advise(struct check_result *result, const char *todo, ...)
{
	va_list args;

	va_start(args, todo);
	vsnprintf(result->todo, sizeof result->todo, todo, args);
	va_end(args);
}
