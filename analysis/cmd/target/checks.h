/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of checks: will recording work here, and for this command? Each check looks at one thing
 * and reports what it found and what to do. `cuflight doctor` runs all of them. `cuflight run`
 * runs those about the command when no recording appeared.
 *
 * Contract: a check does not execute the user's command and leaves nothing behind. The trial
 * records this executable into a temporary directory and removes it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/cmd/target/check_result.h"
#include "analysis/cmd/target/destination.h"
#include "analysis/cmd/target/library.h"
#include "analysis/cmd/target/target.h"

struct check_context {
	struct library library;
	bool library_found;
	struct destination destination;
	uint64_t recording_bytes; /* size of one recording */
	const char *command;      /* NULL: the checks about a command are left out */
	struct target target;
};

struct check {
	const char *name;
	void (*look)(const struct check_context *context, struct check_result *result);
};

/* One table a file, each ended by a row without a name. */
extern const struct check checks_of_command[], checks_of_place[], checks_of_machine[];

enum { CHECKS_MAX = 32 };

/* library, output, command: the values of --library, -o and the command word; each may be NULL. */
void checks_prepare(struct check_context *context, const char *library, const char *output,
		    uint64_t recording_bytes, const char *command);

/* Runs all checks, or only those about the command. Returns their number, at most CHECKS_MAX. */
size_t checks_run(const struct check_context *context, bool command_only,
		  struct check_result *results);
