/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The help texts of commands, made from their tables. Contract: writes to out, at most 80 columns;
 * write errors stay in the stream.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "analysis/cmd/cmd.h"
#include "analysis/explain/causes.h"

/* What `cuflight` prints without arguments. */
void help_overview(FILE *out, const struct cmd *const *commands);

/* What `cuflight COMMAND --help` prints. */
void help_command(FILE *out, const struct cmd *cmd);

/*
 * All tables of the command as one JSON document, cuflight.help/1: commands with their options and
 * examples, and causes with their texts. scripts/gen-docs makes the man pages' OPTIONS, the bash
 * completion and README's tables from it. Contract: writes to out; keys are only added.
 */
void help_json(FILE *out, const struct cmd *const *commands);

/*
 * Help on the causes that reports name, from the tables of explain/. A cause is named by its
 * name_id (gpu-leak), by its id (S8), by the beginning of either, or by the beginning of a word of
 * its name_id (leak). Contract: writes to out, at most 80 columns. False: no cause has that name,
 * and nothing was written.
 */
/* Prose about one cause; a list if the name fits several, or is "causes". */
bool help_causes(FILE *out, const char *name);

/* The rules of all causes that the name fits, with weights and thresholds. */
bool help_cause_rules(FILE *out, const char *name);

/* What may have been meant; NULL: nothing is near. Static storage. */
const char *help_causes_nearest(const char *typed);
/* The names of the causes whose texts mention a word, with commas. False: none. */
bool help_causes_mentioning(const char *word, char *out, size_t bytes);

/* ---- what the documents need ---- */

/* How confidence is computed, in sentences; NULL at the end. */
extern const char *const help_confidence[];

/* The first rule of each cause, in the order of the table; NULL at the end. */
const struct cause_rule *help_cause_at(size_t index);

/* What the cause is; "" when the table has no text. */
const char *help_cause_about(const char *id);

/*
 * The advice on a cause, one row for each kind, with the figures of an example. False at the
 * end.
 */
struct help_advice {
	const char *framework; /* "": any program */
	char words[600];
};
bool help_cause_advice(const char *id, size_t index, struct help_advice *out);
