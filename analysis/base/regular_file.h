/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files whose names come from somebody else: from a recording, or from a directory of them.
 *
 * Contract. What is not a regular file is never opened, since opening a FIFO, a terminal or a
 * watchdog has effects. Returns a descriptor for reading, which the caller closes, or -1 with errno
 * set and *why pointing to a reason; why may be NULL. The reason is a constant or strerror's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum file_writers { FILE_HAS_NO_WRITER, FILE_HAS_WRITER, FILE_WRITERS_UNKNOWN };

/* extra_flags: 0, or O_NOFOLLOW to reject symbolic links. EINVAL: not a regular file. */
int regular_file_open(const char *path, int extra_flags, const char **why);

/* A whole file of less than bytes_max, which the caller frees; NULL: *why, as above. */
char *regular_file_read(const char *path, size_t bytes_max, size_t *bytes, const char **why);

/* Whether anybody on this machine has the file open or mapped for writing, in any pid namespace; fd
 * is for reading. Only its owner and root may ask, and only of a local file system. */
enum file_writers file_writers(int fd);

/* When the file was made, by CLOCK_REALTIME; 0: its file system does not keep that. */
uint64_t file_birth_ns(int fd);
