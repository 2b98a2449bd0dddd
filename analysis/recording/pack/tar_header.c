/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/pack/tar_header.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK_BYTES, "a header is a block");

bool tar_header_is_zero(const struct tar_header *header)
{
	static const struct tar_header zero;

	return !memcmp(header, &zero, sizeof zero);
}

/* Octal digits, with blanks before and a blank or zero behind; GNU has large numbers in binary. */
static bool read_number(const char *field, size_t bytes, uint64_t *number)
{
	bool is_binary = (*field & 0x80) != 0;
	uint64_t sum = 0;
	size_t i = is_binary ? bytes - sizeof sum : 0;

	if (is_binary && (field[0] & 0x7f))
		return false;
	while (!is_binary && i < bytes && field[i] == ' ')
		i++;
	for (; i < bytes; i++) {
		if (!is_binary && (field[i] < '0' || field[i] > '7'))
			break;
		sum = is_binary ? sum << 8 | (uint8_t)field[i]
				: sum << 3 | (uint64_t)(field[i] - '0');
	}
	*number = sum;
	return sum <= INT64_MAX && (i == bytes || field[i] == ' ' || !field[i]);
}

static unsigned sum_of(const struct tar_header *header)
{
	const uint8_t *bytes = (const uint8_t *)header;
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof *header; i++) {
		size_t at = i - offsetof(struct tar_header, checksum);
		sum += at < sizeof header->checksum ? ' ' : bytes[i];
	}
	return sum;
}

bool tar_header_is_valid(const struct tar_header *header)
{
	uint64_t sum;

	return read_number(header->checksum, sizeof header->checksum, &sum) &&
	       sum == sum_of(header);
}

bool tar_header_is_file(const struct tar_header *header)
{
	return header->type == TAR_TYPE_FILE || !header->type || header->type == '7';
}

bool tar_header_bytes(const struct tar_header *header, uint64_t *bytes)
{
	return read_number(header->size, sizeof header->size, bytes);
}

void tar_header_name(const struct tar_header *header, char name[TAR_NAME_BYTES])
{
	bool is_split = !memcmp(header->magic, "ustar", 6) && *header->prefix;

	snprintf(name, TAR_NAME_BYTES, "%.155s%s%.100s", is_split ? header->prefix : "",
		 is_split ? "/" : "", header->name);
}

void tar_header_fill(struct tar_header *header, char type, const char *name, uint64_t bytes)
{
	char text[16];

	memset(header, 0, sizeof *header);
	memcpy(header->name, name, strnlen(name, sizeof header->name));
	memcpy(header->mode, "0000600", 8);
	memcpy(header->uid, "0000000", 8);
	memcpy(header->gid, "0000000", 8);
	memcpy(header->mtime, "00000000000", 12);
	snprintf(text, sizeof text, "%011llo", (unsigned long long)(bytes >> 33 ? 0 : bytes));
	memcpy(header->size, text, sizeof header->size);
	header->type = type;
	memcpy(header->magic, "ustar", 6);
	memcpy(header->version, "00", 2);
	snprintf(text, sizeof text, "%06o", sum_of(header));
	memcpy(header->checksum, text, 7);
	header->checksum[7] = ' ';
}
