/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The help texts of commands, made from their tables. Contract: writes to out, at most 80 columns;
 * write errors stay in the stream.
 */
#ifndef CMD_HELP_H
#define CMD_HELP_H

#include <stdio.h>
#include "analysis/cmd/cmd.h"

/* What `cuflight` prints without arguments. */
void help_overview(FILE *out, const struct cmd *const *commands);

/* What `cuflight COMMAND --help` prints. */
void help_command(FILE *out, const struct cmd *cmd);

#endif
