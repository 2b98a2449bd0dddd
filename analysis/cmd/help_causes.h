/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of the causes, out of their table: for the terminal (cuflight help S6) and for cuflight-causes(7). Contract: writes to
 * out; false when no cause has that id, or begins with it, and nothing was written. */
#ifndef CMD_HELP_CAUSES_H
#define CMD_HELP_CAUSES_H

#include <stdbool.h>
#include <stdio.h>

bool help_causes(FILE *out, const char *id); /* "S6", "S6.F1"; "causes": the list of all */
void help_causes_mdoc(FILE *out);            /* all rules, as the sections of a man page */

#endif
