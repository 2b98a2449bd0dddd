/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts, made of the tables. Contract: writes to out, returns nothing, judges nothing. */
#ifndef CMD_HELP_H
#define CMD_HELP_H

#include <stdio.h>
#include "analysis/cmd/cmd.h"

void help_overview(FILE *out);                     /* what `cuflight` alone prints */
void help_command(FILE *out, const struct cmd *cmd);
void help_version(FILE *out);

#endif
