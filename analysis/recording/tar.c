/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/tar.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>
#include "analysis/base/xalloc.h"

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK_BYTES, "a header is a block");

bool tar_header_is_zero(const struct tar_header *header)
{
	static const struct tar_header zero;

	return !memcmp(header, &zero, sizeof zero);
}

/* Octal digits, with blanks before and a blank or zero behind; GNU has large numbers in binary. */
static bool read_octal(const char *field, size_t bytes, uint64_t *number)
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

	return read_octal(header->checksum, sizeof header->checksum, &sum) &&
	       sum == sum_of(header);
}

bool tar_header_is_file(const struct tar_header *header)
{
	return header->type == TAR_TYPE_FILE || !header->type || header->type == '7';
}

bool tar_header_bytes(const struct tar_header *header, uint64_t *bytes)
{
	return read_octal(header->size, sizeof header->size, bytes);
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

/* Extensions are headers of a header: many in a row are no archive of ours. */
enum { COMPRESSED_BYTES = 1 << 16, EXTENSION_BYTES_MAX = 1 << 16, EXTENSIONS_MAX = 16 };

struct tar_reader {
	int fd;
	ZSTD_DCtx *zstd;
	ZSTD_inBuffer in;
	size_t unfinished;   /* of the frame; 0: it is complete */
	bool begun, raw;
	struct tar_header first; /* of a raw stream, which has no header */
	size_t first_bytes, first_used;
	uint64_t left, padding; /* of the entry */
	char *name; /* of extensions, or a copy of the header's */
	uint64_t extended_bytes; /* UINT64_MAX: the header's */
	uint8_t compressed[COMPRESSED_BYTES];
};

struct tar_reader *tar_reader_begin(int fd)
{
	struct tar_reader *reader = xalloc_zeroed(1, sizeof *reader);

	reader->fd = fd;
	reader->in.src = reader->compressed;
	reader->zstd = ZSTD_createDCtx();
	if (!reader->zstd)
		abort();
	return reader;
}

void tar_reader_end(struct tar_reader *reader)
{
	ZSTD_freeDCtx(reader->zstd);
	free(reader->name);
	free(reader);
}

/* ---- what zstd gives ---- */

/* 1: there is more; 0: the file ends; -1: it cannot be read. */
static int refill(struct tar_reader *reader)
{
	ssize_t got = read(reader->fd, reader->compressed, sizeof reader->compressed);

	reader->in.pos = 0;
	reader->in.size = got > 0 ? (size_t)got : 0;
	if (got < 0)
		return -1;
	return got > 0;
}

/* Frames may follow one another. A file that ends inside of one is damaged. */
static ssize_t read_plain(struct tar_reader *reader, void *out, size_t bytes)
{
	ZSTD_outBuffer to = { .dst = out, .size = bytes };

	while (to.pos < bytes) {
		size_t before = to.pos + reader->in.pos;
		int more;

		if (reader->in.pos < reader->in.size || reader->unfinished) {
			reader->unfinished =
				ZSTD_decompressStream(reader->zstd, &to, &reader->in);
			if (ZSTD_isError(reader->unfinished))
				return -1;
		}
		if (to.pos + reader->in.pos != before)
			continue;
		more = refill(reader);
		if (more < 0 || (!more && reader->unfinished))
			return -1;
		if (!more)
			break;
	}
	return (ssize_t)to.pos;
}

static bool skip_rest(struct tar_reader *reader)
{
	uint64_t rest = reader->left + reader->padding;
	uint8_t skipped[4096];

	while (rest) {
		size_t part = rest < sizeof skipped ? (size_t)rest : sizeof skipped;

		if (read_plain(reader, skipped, part) != (ssize_t)part)
			return false;
		rest -= part;
	}
	reader->left = reader->padding = 0;
	return true;
}

/* ---- headers ---- */

static void note_name(struct tar_reader *reader, const char *name, size_t bytes)
{
	free(reader->name);
	reader->name = xalloc_zeroed(bytes + 1, 1);
	memcpy(reader->name, name, bytes);
}

/* "LENGTH KEY=VALUE\n", one after the other */
static bool read_records(struct tar_reader *reader, char *text, size_t bytes)
{
	while (bytes) {
		char *key, *end = text + bytes;
		unsigned long length = strtoul(text, &key, 10);

		if (*key != ' ' || length > bytes || key + 1 >= text + length ||
		    text[length - 1] != '\n')
			return false;
		end = text + length - 1;
		key++;
		if (!strncmp(key, "path=", 5))
			note_name(reader, key + 5, (size_t)(end - key) - 5);
		else if (!strncmp(key, "size=", 5))
			reader->extended_bytes = strtoull(key + 5, NULL, 10);
		else if (!strncmp(key, "GNU.sparse.", 11))
			return false; /* its holes are not in the data */
		bytes -= length;
		text += length;
	}
	return true;
}

static bool read_extension(struct tar_reader *reader, const struct tar_header *header)
{
	uint64_t bytes = reader->left;
	char *text;
	bool is_good;

	if (!bytes || bytes > EXTENSION_BYTES_MAX)
		return false;
	text = xalloc_zeroed(bytes + 1, 1);
	is_good = tar_read(reader, text, bytes) == (ssize_t)bytes && skip_rest(reader);
	if (is_good && header->type == TAR_TYPE_PAX)
		is_good = read_records(reader, text, bytes);
	else if (is_good)
		note_name(reader, text, strnlen(text, bytes));
	free(text);
	return is_good;
}

static void note_header(struct tar_reader *reader, const struct tar_header *header)
{
	char name[TAR_NAME_BYTES];

	if (!reader->name) {
		tar_header_name(header, name);
		note_name(reader, name, strlen(name));
	}
	if (reader->extended_bytes != UINT64_MAX)
		reader->left = reader->extended_bytes;
	reader->padding = -reader->left % TAR_BLOCK_BYTES;
}

/* The next header; its kind is TAR_FILE where it has one. */
static enum tar_kind read_header(struct tar_reader *reader, struct tar_header *header)
{
	ssize_t got = read_plain(reader, header, sizeof *header);
	bool first = !reader->begun;

	reader->begun = true;
	if (got < 0)
		return TAR_DAMAGED;
	if (got == sizeof *header && tar_header_is_zero(header))
		return TAR_END;
	if (got == sizeof *header && tar_header_is_valid(header))
		return tar_header_bytes(header, &reader->left) ? TAR_FILE : TAR_DAMAGED;
	if (!first)
		return got ? TAR_DAMAGED : TAR_END;
	reader->raw = true;
	reader->first = *header;
	reader->first_bytes = (size_t)got;
	return TAR_RAW;
}

enum tar_kind tar_next(struct tar_reader *reader, struct tar_entry *entry)
{
	struct tar_header header;

	if (reader->raw)
		return TAR_END;
	if (!skip_rest(reader))
		return TAR_DAMAGED;
	free(reader->name);
	reader->name = NULL;
	reader->extended_bytes = UINT64_MAX;
	for (int extensions = 0; extensions <= EXTENSIONS_MAX; extensions++) {
		enum tar_kind kind = read_header(reader, &header);

		*entry = (struct tar_entry){ "", UINT64_MAX };
		if (kind != TAR_FILE)
			return kind;
		if (header.type == TAR_TYPE_PAX || header.type == TAR_TYPE_LONG_NAME) {
			reader->padding = -reader->left % TAR_BLOCK_BYTES;
			if (!read_extension(reader, &header))
				return TAR_DAMAGED;
			continue;
		}
		note_header(reader, &header);
		*entry = (struct tar_entry){ reader->name, reader->left };
		return tar_header_is_file(&header) ? TAR_FILE : TAR_OTHER;
	}
	return TAR_DAMAGED;
}

static ssize_t read_raw(struct tar_reader *reader, uint8_t *out, size_t bytes)
{
	size_t kept = reader->first_bytes - reader->first_used;
	ssize_t got;

	if (kept > bytes)
		kept = bytes;
	memcpy(out, (const uint8_t *)&reader->first + reader->first_used, kept);
	reader->first_used += kept;
	got = read_plain(reader, out + kept, bytes - kept);
	return got < 0 ? got : (ssize_t)kept + got;
}

ssize_t tar_read(struct tar_reader *reader, void *out, size_t bytes)
{
	if (reader->raw)
		return read_raw(reader, out, bytes);
	if (bytes > reader->left)
		bytes = (size_t)reader->left;
	if (read_plain(reader, out, bytes) != (ssize_t)bytes)
		return -1;
	reader->left -= bytes;
	return (ssize_t)bytes;
}
