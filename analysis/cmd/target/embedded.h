/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files inside the command: programs that need the loader of the system, which a static command
 * does not have, and the recorder.
 *
 * Contract: a descriptor of a file without a name, closed on exec, that has the bytes; -1: there is
 * no memory for it.
 */
#pragma once

#include <stdbool.h>

int embedded_file(const char *name, const char *begin, const char *end);

bool embedded_is_empty(const char *begin, const char *end);

/* 0, or -1 with errno. */
int embedded_write(int fd, const char *begin, const char *end);
