/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands and options as parts of documents. scripts/gen-docs puts them where they belong. cmd may be
 * NULL but in docs_mdoc. */
#ifndef CMD_DOCS_H
#define CMD_DOCS_H

#include <stdio.h>
#include "analysis/cmd/cmd.h"

void docs_mdoc(FILE *out, const struct cmd *cmd);     /* the list of options of one command */
void docs_bash(FILE *out, const struct cmd *cmd);     /* the whole completion; cmd is not looked at */
void docs_markdown(FILE *out, const struct cmd *cmd); /* table of commands; with cmd, of its options */

#endif
