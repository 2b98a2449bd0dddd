/* SPDX-License-Identifier: Apache-2.0 */
/* What --version prints. Contract: writes one line to out. */
#ifndef CMD_CLI_VERSION_H
#define CMD_CLI_VERSION_H

#include <stdio.h>

void version_print(FILE *out);

#endif
