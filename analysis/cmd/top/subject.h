/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cuflight top` is asked to show: a directory, one recording, or the recording of a process.
 *
 * Contract: both functions return 0, or -1 after a message. subject_find writes the path to open;
 * without an operand it is the directory of CUFLIGHT_OUTPUT, else the current one. subject_check
 * refuses a file that shows nothing and never will.
 */
#ifndef CMD_TOP_SUBJECT_H
#define CMD_TOP_SUBJECT_H

#include <limits.h>
#include "analysis/watch/watch.h"

int subject_find(const char *operand, char path[PATH_MAX]);
int subject_check(const struct watch *watch, const char *path);

#endif
