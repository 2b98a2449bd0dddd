/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/pack_writer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "analysis/base/xalloc.h"
#include "analysis/recording/tar.h"

enum { CHUNK_BYTES = 1 << 17 };

struct pack_writer {
	FILE *out;
	ZSTD_CCtx *zstd;
	const char *why; /* NULL: no failure */
	uint8_t chunk[CHUNK_BYTES];
};

struct pack_writer *pack_writer_begin(FILE *out)
{
	struct pack_writer *writer = xalloc_zeroed(1, sizeof *writer);

	writer->out = out;
	writer->zstd = ZSTD_createCCtx();
	if (!writer->zstd)
		writer->why = strerror(ENOMEM);
	return writer;
}

static void compress(struct pack_writer *writer, const void *data, size_t bytes,
		     ZSTD_EndDirective end)
{
	ZSTD_inBuffer in = { .src = data, .size = bytes };
	size_t left = 1;

	while (!writer->why && (in.pos < bytes || (end == ZSTD_e_end && left))) {
		ZSTD_outBuffer to = { .dst = writer->chunk, .size = sizeof writer->chunk };

		left = ZSTD_compressStream2(writer->zstd, &to, &in, end);
		if (ZSTD_isError(left))
			writer->why = ZSTD_getErrorName(left);
		else if (fwrite(writer->chunk, 1, to.pos, writer->out) != to.pos)
			writer->why = strerror(errno);
	}
}

static void add_data(struct pack_writer *writer, const void *data, size_t bytes)
{
	static const uint8_t zeros[TAR_BLOCK_BYTES];

	compress(writer, data, bytes, ZSTD_e_continue);
	compress(writer, zeros, -bytes % TAR_BLOCK_BYTES, ZSTD_e_continue);
}

static void add_header(struct pack_writer *writer, char type, const char *name, size_t bytes)
{
	struct tar_header header;

	tar_header_fill(&header, type, name, bytes);
	compress(writer, &header, sizeof header, ZSTD_e_continue);
}

/* A record of pax: its length counts its own digits. */
static size_t print_record(char *out, size_t room, const char *key, const char *value)
{
	size_t length = strlen(key) + strlen(value) + 3, digits = 1, power = 10;

	while (length + digits >= power) {
		digits++;
		power *= 10;
	}
	return (size_t)snprintf(out, room, "%zu %s=%s\n", length + digits, key, value);
}

/* What the header has no room for. */
static void add_extension(struct pack_writer *writer, const char *name, size_t bytes)
{
	size_t room = strlen(name) + 128, used = 0;
	char *text, number[24];

	if (strlen(name) <= sizeof((struct tar_header *)0)->name && !((uint64_t)bytes >> 33))
		return;
	text = xalloc_zeroed(room, 1);
	used = print_record(text, room, "path", name);
	snprintf(number, sizeof number, "%zu", bytes);
	used += print_record(text + used, room - used, "size", number);
	add_header(writer, TAR_TYPE_PAX, "PaxHeader", used);
	add_data(writer, text, used);
	free(text);
}

void pack_writer_add(struct pack_writer *writer, const char *name, const void *data, size_t bytes)
{
	add_extension(writer, name, bytes);
	add_header(writer, TAR_TYPE_FILE, name, bytes);
	add_data(writer, data, bytes);
}

int pack_writer_end(struct pack_writer *writer, char *error, size_t error_bytes)
{
	static const uint8_t end[2 * TAR_BLOCK_BYTES];
	int failed;

	compress(writer, end, sizeof end, ZSTD_e_end);
	failed = writer->why ? -1 : 0;
	snprintf(error, error_bytes, "%s", writer->why ? writer->why : "");
	ZSTD_freeCCtx(writer->zstd);
	free(writer);
	return failed;
}
