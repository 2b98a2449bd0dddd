/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a tar that was compressed with zstd, from front to back: ustar, pax and GNU's long names.
 * A stream that does not begin as a tar is one entry without a name, TAR_RAW.
 *
 * Contract. The stream is hostile. tar_next skips what is left of the entry before; the name is
 * valid until the next call. tar_read fills all bytes unless the entry ends; -1: damaged.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The header of a file in a tar, as POSIX describes it (pax, "ustar Interchange Format"). */

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_BYTES = 155 + 1 + 100 + 1 };
enum { TAR_TYPE_FILE = '0', TAR_TYPE_PAX = 'x', TAR_TYPE_LONG_NAME = 'L' };

struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
	char prefix[155], unused[12];
};

bool tar_header_is_zero(const struct tar_header *header); /* it ends a tar */
bool tar_header_is_valid(const struct tar_header *header);
bool tar_header_is_file(const struct tar_header *header);
/* False: no number, or more than 63 bits. */
bool tar_header_bytes(const struct tar_header *header, uint64_t *bytes);
void tar_header_name(const struct tar_header *header, char name[TAR_NAME_BYTES]);

/* A file of nobody's from 1970 that only its owner reads. A name that is too long is cut, and a
 * size of 8 GiB or more is 0: both have a pax record then. */
void tar_header_fill(struct tar_header *header, char type, const char *name, uint64_t bytes);

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
