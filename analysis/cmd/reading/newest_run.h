/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The newest run in the directory of CUFLIGHT_OUTPUT, or in the current one, for commands whose
 * operand may be left out. A directory without other recordings is read as a whole.
 *
 * Contract: path gets the file or the directory, and a line on stderr names it. Returns 0; -1 after
 * an error on stderr.
 */
#pragma once

#include <stddef.h>

int newest_run(char *path, size_t bytes);
