/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables of the command as one JSON document, cuflight.help/1: commands with their options and
 * examples, and causes with their texts. scripts/gen-docs makes the man pages' OPTIONS, the bash
 * completion and README's tables from it. Contract: writes to out; keys are only added.
 */
#ifndef CMD_HELP_JSON_H
#define CMD_HELP_JSON_H

#include <stdio.h>
#include "analysis/cmd/cmd.h"

void help_json(FILE *out, const struct cmd *const *commands);

#endif
