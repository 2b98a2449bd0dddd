/* SPDX-License-Identifier: Apache-2.0 */
/* What --version prints. Contract: writes one line to out. */
#pragma once

#include <stdio.h>

void version_print(FILE *out);
