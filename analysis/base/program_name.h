/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people call a program: of an interpreter the script, module or archive that it runs
 * (agent.py, -m pkg, app.jar), else the executable's base name. Contract: exe and cmdline as
 * recorded, words separated by blanks; neither may be NULL. "?" where both are empty. out is
 * always terminated.
 */
#ifndef ANALYSIS_BASE_PROGRAM_NAME_H
#define ANALYSIS_BASE_PROGRAM_NAME_H

#include <stddef.h>

void program_name(const char *exe, const char *cmdline, char *out, size_t bytes);

#endif
