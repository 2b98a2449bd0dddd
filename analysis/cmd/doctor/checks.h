/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Will recording work, here, for this command, and if not why: a table of checks, each of which looks at one thing and
 * says what it found and what to do. doctor shows all; run asks those about the command when no recording appeared.
 *
 * Contract. A check executes nothing of the user's and changes nothing that outlives it (the trial records this
 * executable into a directory of its own and removes it). Texts are cut to fit.
 */
#ifndef CMD_CHECKS_H
#define CMD_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/cmd/target/destination.h"
#include "analysis/cmd/target/library.h"
#include "analysis/cmd/target/target.h"

enum check_state { CHECK_FINE, CHECK_INFO, CHECK_PROBLEM };

struct check_result {
	const char *name;
	enum check_state state;
	char found[640];
	char todo[320];           /* "" when there is nothing to do */
};

struct check_context {
	struct library library;
	bool library_found;
	struct destination destination;
	uint64_t recording_bytes; /* size of one */
	const char *command;      /* NULL: checks about a command are left out */
	struct target target;
};

enum { CHECKS_MAX = 32 };

void checks_prepare(struct check_context *context, const char *library, const char *output, uint64_t recording_bytes, const char *command);
/* Results of all checks, or of those about the command alone; returns their count, at most CHECKS_MAX. */
size_t checks_run(const struct check_context *context, bool command_alone, struct check_result *results);

/* A result of one look; returned so that a look can end with it. */
void check_say(struct check_result *result, enum check_state state, const char *found, ...) __attribute__((format(printf, 3, 4)));
void check_todo(struct check_result *result, const char *todo, ...) __attribute__((format(printf, 2, 3)));

struct check {
	const char *name;
	void (*look)(const struct check_context *context, struct check_result *result);
};
/* By subject, each ended by a row without name: checks_command.c, checks_place.c, checks_machine.c. */
extern const struct check checks_of_command[], checks_of_place[], checks_of_machine[];

#endif
