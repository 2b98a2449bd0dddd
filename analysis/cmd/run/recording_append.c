/* SPDX-License-Identifier: Apache-2.0 */
/* Walks META to its end, as a reader does, and writes there: first the record, then the used
 * length. */
#include "analysis/base/clock.h"
#include "analysis/cmd/run/recording_append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/numbers.h"
#include "interpose/abi/format.h"

enum { TEXT_MAX = 1024 };

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}
static bool write_at(int fd, const void *from, size_t bytes, uint64_t offset)
{
	return pwrite(fd, from, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool has_recording_header(const struct cuf_header *header)
{
	return !memcmp(header->magic, CUF_MAGIC, sizeof header->magic) &&
	       header->endian == CUF_ENDIAN && header->version == CUF_VERSION &&
	       header->header_bytes >= CUF_HEADER_BYTES_FIRST;
}

static const struct cuf_section *meta_section(const struct cuf_header *header)
{
	uint32_t most = sizeof header->sections / sizeof *header->sections,
		 count = least_of(header->section_count, most);
	for (uint32_t i = 0; i < count; i++)
		if (header->sections[i].id == CUF_SEC_META &&
		    header->sections[i].offset <= header->file_bytes &&
		    header->sections[i].bytes <= header->file_bytes - header->sections[i].offset)
			return &header->sections[i];
	return NULL;
}

/* The offset at which a reader stops: the end, or the first damaged record. */
static uint64_t end_of_meta(int fd, const struct cuf_section *section, uint64_t used)
{
	uint64_t at = 0, end = least_of(used, section->bytes);
	struct cuf_meta record;
	while (end - at >= sizeof record &&
	       read_at(fd, &record, sizeof record, section->offset + at) &&
	       record.bytes >= sizeof record && record.bytes % 8 == 0 && record.bytes <= end - at)
		at += record.bytes;
	return at;
}

static int append_record(int fd, const struct cuf_header *header, const struct cuf_meta *record)
{
	const struct cuf_section *section = meta_section(header);
	uint64_t at, used;
	errno = EINVAL;
	if (!section)
		return -1;
	at = end_of_meta(fd, section, header->meta_used);
	used = at + record->bytes;
	errno = ENOSPC;
	if (used > section->bytes || !write_at(fd, record, record->bytes, section->offset + at))
		return -1;
	return write_at(fd, &used, sizeof used, offsetof(struct cuf_header, meta_used)) ? 0 : -1;
}

/* ended_too: also append to a recording that has an end record. */
static int append_to(const char *path, const struct cuf_meta *record, bool ended_too)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), result = -1, saved;
	struct cuf_header header;
	if (fd < 0)
		return -1;
	errno = EINVAL;
	if (read_at(fd, &header, sizeof header, 0) && has_recording_header(&header))
		result = header.end_kind != CUF_END_NONE && !ended_too
				 ? 1
				 : append_record(fd, &header, record);
	saved = errno;
	close(fd);
	errno = saved;
	return result;
}

int recording_append_record(const char *path, const struct cuf_meta *record)
{
	return append_to(path, record, true);
}

int recording_append_wait(const char *path, const char *text)
{
	struct {
		struct cuf_meta meta;
		char text[TEXT_MAX];
	} record = { .meta = { .type = CUF_META_WAIT } };
	size_t length = least_of(strlen(text), TEXT_MAX);

	record.meta.time_ns = clock_ns(CLOCK_MONOTONIC);
	record.meta.text_bytes = (uint32_t)length;
	record.meta.bytes = (uint32_t)(sizeof record.meta + ((length + 7) & ~(size_t)7));
	memcpy(record.text, text, length);
	return append_to(path, &record.meta, false);
}
