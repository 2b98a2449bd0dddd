/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>
#include "analysis/base/regular_file.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/tar.h"

/*
 * What a pack may unpack to. Rings repeat themselves, so 1,000 times its size is possible; only
 * pages that are not zeros count there. All bytes count in the total, which bounds the time.
 */
#define TOTAL_BYTES_MAX (64ull << 30)
#define WRITTEN_BYTES_LEAST (64ull << 20)
#define WRITTEN_RATIO_MAX 1000ull
#define NAMES_BYTES_MAX (256u << 20)
enum { RECORDINGS_MAX = 4096, PAGE_BYTES = 4096, CHUNK_BYTES = 1 << 20, PATH_BYTES = 4096 };

struct entry { char *path; struct file_part part; };

struct pack {
	int fd; /* the unnamed file */
	struct entry *entries;
	size_t count, room;
	char *names;
};

/* While it is unpacked. */
struct unpacking {
	struct pack *pack;
	const char *path;
	struct tar_reader *tar;
	uint64_t total, written, written_max; /* bytes */
	uint64_t end; /* of the unnamed file */
	uint8_t chunk[CHUNK_BYTES];
};

bool pack_is(const char *path)
{
	static const uint8_t magic[4] = { 0x28, 0xb5, 0x2f, 0xfd }; /* of a frame of zstd */
	uint8_t found[sizeof magic];
	int fd = regular_file_open(path, 0, NULL);
	bool is = fd >= 0 && read(fd, found, sizeof found) == sizeof found &&
		  !memcmp(found, magic, sizeof magic);

	if (fd >= 0)
		close(fd);
	return is;
}

static int unnamed_file(void)
{
	const char *directory = getenv("TMPDIR");
	char name[PATH_BYTES];
	int fd;

	if (!directory || !*directory)
		directory = "/tmp";
	fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	/* this file system has no files without a name */
	if (snprintf(name, sizeof name, "%s/cuflight.XXXXXX", directory) >= (int)sizeof name)
		return -1;
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

/* ---- entries ---- */

static bool is_zero(const uint8_t *data, size_t bytes)
{
	return !*data && !memcmp(data, data + 1, bytes - 1);
}

/* Pages of zeros stay holes. */
static int write_chunk(struct unpacking *unpacking, size_t bytes, uint64_t offset)
{
	for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
		size_t page = bytes - at < PAGE_BYTES ? bytes - at : PAGE_BYTES;

		if (is_zero(unpacking->chunk + at, page))
			continue;
		unpacking->written += page;
		if (unpacking->written > unpacking->written_max)
			return READER_E_PACK_LIMIT;
		if (pwrite(unpacking->pack->fd, unpacking->chunk + at, page,
			   (off_t)(offset + at)) != (ssize_t)page)
			return READER_E_UNPACK;
	}
	return 0;
}

/* A whole chunk, unless the entry ends; negative: the archive is damaged. */
static ssize_t read_chunk(struct unpacking *unpacking)
{
	ssize_t got = tar_read(unpacking->tar, unpacking->chunk, CHUNK_BYTES);

	if (got > 0)
		unpacking->total += (uint64_t)got;
	return got;
}

/* path: what messages and the report call it. */
static int unpack_recording(struct unpacking *unpacking, const char *path)
{
	struct pack *pack = unpacking->pack;
	uint64_t offset = unpacking->end, bytes = 0;
	ssize_t got;
	int code = 0;

	while (!code && (got = read_chunk(unpacking)) != 0) {
		if (got < 0)
			return READER_E_PACK;
		if (unpacking->total > TOTAL_BYTES_MAX)
			return READER_E_PACK_LIMIT;
		code = write_chunk(unpacking, (size_t)got, offset + bytes);
		bytes += (uint64_t)got;
	}
	unpacking->end += (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	if (!code && ftruncate(pack->fd, (off_t)unpacking->end))
		code = READER_E_UNPACK;
	if (code)
		return code;
	xalloc_grow(&pack->entries, pack->count, &pack->room, sizeof *pack->entries);
	pack->entries[pack->count++] =
		(struct entry){ xalloc_string(path), { pack->fd, offset, bytes } };
	return 0;
}

static int unpack_named(struct unpacking *unpacking, const char *name)
{
	char path[PATH_BYTES];

	if (!*name || strchr(name, '/') || unpacking->pack->count == RECORDINGS_MAX)
		return READER_E_PACK;
	snprintf(path, sizeof path, "%s/%s%s", unpacking->path, PACK_RECORDINGS, name);
	return unpack_recording(unpacking, path);
}

/* A recording that somebody compressed with zstd. Anything else that is no tar is damaged. */
static int unpack_compressed(struct unpacking *unpacking)
{
	const struct pack *pack = unpacking->pack;
	int code = unpack_recording(unpacking, unpacking->path);
	char magic[sizeof CUF_MAGIC - 1];

	if (code)
		return code;
	if (pread(pack->fd, magic, sizeof magic, 0) != sizeof magic ||
	    memcmp(magic, CUF_MAGIC, sizeof magic) != 0)
		return READER_E_PACK;
	return 0;
}

static int unpack_names(struct unpacking *unpacking)
{
	struct pack *pack = unpacking->pack;
	size_t used = 0;
	ssize_t got;

	while ((got = read_chunk(unpacking)) != 0) {
		if (got < 0)
			return READER_E_PACK;
		if (used + (size_t)got > NAMES_BYTES_MAX)
			return READER_E_PACK_LIMIT;
		pack->names = xalloc_resize(pack->names, used + (size_t)got + 1, 1);
		memcpy(pack->names + used, unpacking->chunk, (size_t)got);
		used += (size_t)got;
		pack->names[used] = 0;
	}
	return 0;
}

static int unpack_entry(struct unpacking *unpacking, enum tar_kind kind,
			const struct tar_entry *entry)
{
	const char *name = entry->name;

	if (kind == TAR_RAW)
		return unpack_compressed(unpacking);
	if (kind == TAR_FILE && !strncmp(name, PACK_RECORDINGS, strlen(PACK_RECORDINGS)))
		return unpack_named(unpacking, name + strlen(PACK_RECORDINGS));
	if (kind == TAR_FILE && !strcmp(name, PACK_NAMES) && !*unpacking->pack->names)
		return unpack_names(unpacking);
	unpacking->total += entry->bytes; /* it takes time to skip it */
	return unpacking->total > TOTAL_BYTES_MAX ? READER_E_PACK_LIMIT : 0;
}

static int unpack_all(struct unpacking *unpacking)
{
	struct tar_entry entry;
	enum tar_kind kind;
	int code = 0;

	while (!code && (kind = tar_next(unpacking->tar, &entry)) != TAR_END) {
		if (kind == TAR_DAMAGED)
			return READER_E_PACK;
		unpacking->total += PAGE_BYTES;
		if ((kind != TAR_RAW && entry.bytes > TOTAL_BYTES_MAX) ||
		    unpacking->total > TOTAL_BYTES_MAX)
			return READER_E_PACK_LIMIT;
		code = unpack_entry(unpacking, kind, &entry);
	}
	return code;
}

/* ---- the pack ---- */

static int fail_pack(struct pack *pack, const char *path, int code, struct reader_error *error)
{
	int system = code == READER_E_UNPACK || code == READER_E_OPEN ? errno : 0;

	pack_close(pack);
	if (!error)
		return code;
	*error = (struct reader_error){ .code = code, .system = system };
	snprintf(error->path, sizeof error->path, "%s", path);
	if (code == READER_E_UNPACK)
		snprintf(error->path, sizeof error->path, "%s",
			 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return code;
}

static int unpack(struct pack *pack, const char *path, int fd)
{
	struct unpacking *unpacking = xalloc_zeroed(1, sizeof *unpacking);
	struct stat st = { .st_size = 0 };
	int code;

	fstat(fd, &st);
	unpacking->pack = pack;
	unpacking->path = path;
	unpacking->written_max = WRITTEN_BYTES_LEAST + WRITTEN_RATIO_MAX * (uint64_t)st.st_size;
	unpacking->tar = tar_reader_begin(fd);
	code = unpack_all(unpacking);
	tar_reader_end(unpacking->tar);
	free(unpacking);
	return code;
}

int pack_open(const char *path, struct pack **out, struct reader_error *error)
{
	struct pack *pack = xalloc_zeroed(1, sizeof *pack);
	int fd, code;

	*out = NULL;
	pack->names = xalloc_string("");
	pack->fd = unnamed_file();
	if (pack->fd < 0)
		return fail_pack(pack, path, READER_E_UNPACK, error);
	fd = regular_file_open(path, 0, NULL);
	if (fd < 0)
		return fail_pack(pack, path, READER_E_OPEN, error);
	code = unpack(pack, path, fd);
	close(fd);
	if (code)
		return fail_pack(pack, path, code, error);
	*out = pack;
	return 0;
}

void pack_close(struct pack *pack)
{
	if (!pack)
		return;
	for (size_t i = 0; i < pack->count; i++)
		free(pack->entries[i].path);
	free(pack->entries);
	free(pack->names);
	if (pack->fd >= 0)
		close(pack->fd);
	free(pack);
}

size_t pack_count(const struct pack *pack) { return pack->count; }

int pack_recording(const struct pack *pack, size_t i, struct reader **out,
		   struct reader_error *error)
{
	return reader_open_part(&pack->entries[i].part, pack->entries[i].path, out, error);
}

char *pack_names(struct pack *pack) { return pack->names; }

/* ---- writing ---- */

enum { WRITTEN_BYTES = 1 << 17 };

struct pack_writer {
	FILE *out;
	ZSTD_CCtx *zstd;
	const char *why; /* NULL: no failure */
	uint8_t chunk[WRITTEN_BYTES];
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
