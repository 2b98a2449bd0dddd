/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording's name, made from CUFLIGHT_OUTPUT, and its creation. Contract: a new file or
 * none. Nothing is overwritten, no link is followed; the mode is that of the option; missing
 * directories are created. Raw system calls, no allocation.
 */
#pragma once

#include <stddef.h>
#include "interpose/platform/options.h"

/*
 * names: its n is not read. Returns a descriptor, or -errno. path becomes the last name that was
 * tried, "" when none could be made.
 */
int cuf_recording_file_create(const struct cuf_name_parts *names, char *path, unsigned path_bytes);

/* Writes that many zeros. Returns 0, or -errno. */
int cuf_recording_file_fill(int fd, size_t bytes);
