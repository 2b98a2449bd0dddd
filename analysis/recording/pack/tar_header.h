/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a file in a tar, as POSIX describes it (pax, "ustar Interchange Format"). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
