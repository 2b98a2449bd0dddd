/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer over packs: the stream of zstd, the tar in it, and the recordings and names in that. An
 * input is a tar, which is compressed here, or bytes that begin as zstd does. Any of them gives an
 * error or a pack whose parts can be read.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>
#include "analysis/recording/pack.h"
#include "analysis/recording/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

static void put(int fd, const void *data, size_t bytes)
{
	if (write(fd, data, bytes) != (ssize_t)bytes)
		abort();
}

/* As a frame of its own. */
static void put_frame(int fd, const uint8_t *data, size_t bytes)
{
	size_t room = ZSTD_compressBound(bytes), made;
	void *frame = malloc(room);

	if (!frame)
		abort();
	made = ZSTD_compress(frame, room, data, bytes, 1);
	if (ZSTD_isError(made))
		abort();
	put(fd, frame, made);
	free(frame);
}

static void put_input(int fd, const uint8_t *data, size_t bytes)
{
	static const uint8_t magic[] = { 0x28, 0xb5, 0x2f, 0xfd };
	size_t half = bytes / 2;

	if (bytes >= sizeof magic && !memcmp(data, magic, sizeof magic)) {
		put(fd, data, bytes);
		return;
	}
	put_frame(fd, data, half); /* frames may follow one another */
	put_frame(fd, data + half, bytes - half);
}

static void read_parts(struct pack *pack)
{
	size_t count = pack_count(pack);

	if (count > 4096 || strlen(pack_names(pack)) > 256u << 20)
		abort(); /* what pack.c promises */
	for (size_t i = 0; i < count; i++) {
		struct reader_error error = { 0 };
		struct reader *reader = NULL;
		int code = pack_recording(pack, i, &reader, &error);

		if (code > 0 || (code == 0) != (reader != NULL) || (code && error.code != code))
			abort();
		if (reader)
			reader_close(reader);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct reader_error error = { 0 };
	struct pack *pack = NULL;
	char path[32];
	int fd = memfd_create("pack", MFD_CLOEXEC), code;

	if (fd < 0)
		abort();
	setenv("TMPDIR", "/dev/shm", 1);
	put_input(fd, data, bytes);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	code = pack_open(path, &pack, &error);
	if (code > 0 || (code == 0) != (pack != NULL) || (code && error.code != code))
		abort();
	if (pack)
		read_parts(pack);
	pack_close(pack);
	close(fd);
	return 0;
}

/* A wrong sum ends an archive, and chance finds no right one. */
static void mend_sums(uint8_t *data, size_t bytes)
{
	for (size_t at = 0; at + TAR_BLOCK_BYTES <= bytes; at += TAR_BLOCK_BYTES) {
		struct tar_header *header = (struct tar_header *)(data + at);
		unsigned sum = 0;
		char text[8];

		if (memcmp(header->magic, "ustar", 5) != 0)
			continue;
		memset(header->checksum, ' ', sizeof header->checksum);
		for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
			sum += data[at + i];
		snprintf(text, sizeof text, "%06o", sum);
		memcpy(header->checksum, text, 7);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed)
{
	size_t made = LLVMFuzzerMutate(data, bytes, most);

	if (seed % 16)
		mend_sums(data, made);
	return made;
}
