/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tar that was compressed with zstd, from front to back: ustar, pax and GNU's long names.
 * A stream that does not begin as a tar is one entry without a name, TAR_RAW.
 *
 * Contract. The stream is hostile. tar_next skips what is left of the entry before; the name is
 * valid until the next call. tar_read fills all bytes unless the entry ends; -1: damaged.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum tar_kind { TAR_DAMAGED = -1, TAR_END, TAR_FILE, TAR_OTHER, TAR_RAW };

struct tar_entry {
	const char *name;
	uint64_t bytes; /* of a TAR_RAW: unknown, UINT64_MAX */
};

struct tar_reader;
struct tar_reader *tar_reader_begin(int fd); /* which stays the caller's */
enum tar_kind tar_next(struct tar_reader *reader, struct tar_entry *entry);
ssize_t tar_read(struct tar_reader *reader, void *out, size_t bytes);
void tar_reader_end(struct tar_reader *reader);
