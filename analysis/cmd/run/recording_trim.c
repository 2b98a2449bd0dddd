/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the used part of each section to a new file and renames it. */
#include "analysis/cmd/run/recording_trim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/numbers.h"
#include "analysis/base/regular_file.h"
#include "analysis/replay/process_life.h"
#include "interpose/abi/format.h"

enum { PAGE = 4096, CHUNK_PAGES = 64, CHUNK = CHUNK_PAGES * PAGE };

struct copy {
	int from, to;             /* to: -1 while it is only measured */
	struct cuf_header header; /* of the new file */
	uint64_t end;             /* where its next section begins */
	uint64_t written, most;   /* bytes; with more than `most` it is not worth a copy */
	bool only_try;
	uint8_t chunk[CHUNK], packed[CHUNK];
};

static bool is_zero(const uint8_t *bytes, size_t count)
{
	return !count || (!bytes[0] && !memcmp(bytes, bytes + 1, count - 1));
}

static bool fail_damaged(void)
{
	errno = EINVAL;
	return false;
}

/* ---- reading ---- */

/* Only whole and plausible files: a cut or damaged one is evidence as it is. */
static bool read_header(int fd, const struct stat *file, struct cuf_header *header)
{
	uint64_t end = PAGE;

	if (pread(fd, header, sizeof *header, 0) != (ssize_t)sizeof *header ||
	    memcmp(header->magic, CUF_MAGIC, sizeof header->magic) ||
	    header->endian != CUF_ENDIAN || header->version != CUF_VERSION ||
	    header->header_bytes < CUF_HEADER_BYTES_FIRST || header->header_bytes > PAGE ||
	    header->file_bytes != (uint64_t)file->st_size ||
	    header->section_count > sizeof header->sections / sizeof *header->sections)
		return fail_damaged();
	for (uint32_t i = 0; i < header->section_count; i++) {
		const struct cuf_section *section = &header->sections[i];

		if (section->offset < end || section->offset % PAGE || section->bytes % PAGE ||
		    section->bytes > header->file_bytes ||
		    section->offset > header->file_bytes - section->bytes ||
		    !section->record_bytes || section->record_bytes > CHUNK)
			return fail_damaged();
		end = section->offset + section->bytes;
	}
	return true;
}

/* A hole, or reserved space that was never written, reads as zeros without being read. Moves *at to
 * the next byte that may not be zero. */
static void skip_hole(int fd, uint64_t *at, uint64_t end)
{
	off_t data = lseek(fd, (off_t)*at, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		*at = end;
	else if (data > 0 && (uint64_t)data > *at)
		*at = least_of(end, (uint64_t)data / PAGE * PAGE);
}

/* The next bytes of [*at, end) into copy->chunk; 0: none are left that may not be zero. */
static ssize_t read_chunk(struct copy *copy, uint64_t *at, uint64_t end)
{
	size_t wanted;

	skip_hole(copy->from, at, end);
	wanted = (size_t)least_of(end - *at, CHUNK);
	if (!wanted)
		return 0;
	return pread(copy->from, copy->chunk, wanted, (off_t)*at) == (ssize_t)wanted
		       ? (ssize_t)wanted
		       : -1;
}

/* ---- copying ---- */

static bool put_at(struct copy *copy, const void *bytes, size_t count, uint64_t at)
{
	copy->written += count;
	if (copy->written > copy->most) {
		errno = EFBIG;
		return false;
	}
	return copy->to < 0 || pwrite(copy->to, bytes, count, (off_t)at) == (ssize_t)count;
}

/* Pages of zeros become holes of the new file. */
static bool write_pages(struct copy *copy, const uint8_t *bytes, size_t count, uint64_t at)
{
	for (size_t page = 0; page < count; page += PAGE) {
		size_t part = least_of(count - page, PAGE);

		if (!is_zero(bytes + page, part) && !put_at(copy, bytes + page, part, at + page))
			return false;
	}
	return true;
}

/* Keeps every record at its index. *used is the offset behind the last page with content. */
static bool copy_in_place(struct copy *copy, const struct cuf_section *section, uint64_t *used)
{
	uint64_t at = section->offset, end = at + section->bytes;
	ssize_t count;

	*used = 0;
	while ((count = read_chunk(copy, &at, end)) > 0) {
		uint64_t from_start = at - section->offset;
		size_t content = (size_t)count;

		while (content && is_zero(copy->chunk + content - PAGE, PAGE))
			content -= PAGE;
		if (content)
			*used = from_start + content;
		if (!write_pages(copy, copy->chunk, content, copy->end + from_start))
			return false;
		at += (uint64_t)count;
	}
	return !count;
}

/* Records on their way to the new file: packed bytes of them, behind *used that are written. */
static bool flush_packed(struct copy *copy, size_t *packed, uint64_t *used)
{
	if (!put_at(copy, copy->packed, *packed, copy->end + *used))
		return false;
	*used += *packed;
	*packed = 0;
	return true;
}

/* The records of copy->chunk that are in use. */
static bool pack_chunk(struct copy *copy, size_t count, uint32_t record, size_t *packed,
		       uint64_t *used)
{
	for (size_t i = 0; i < count; i += record) {
		if (is_zero(copy->chunk + i, record))
			continue;
		if (*packed + record > CHUNK && !flush_packed(copy, packed, used))
			return false;
		memcpy(copy->packed + *packed, copy->chunk + i, record);
		*packed += record;
	}
	return true;
}

/* A table whose records are found by their content, not by their index: only those in use. */
static bool copy_packed(struct copy *copy, const struct cuf_section *section, uint64_t *used)
{
	uint32_t record = section->record_bytes;
	uint64_t at = section->offset, end = at + section->bytes / record * record;
	size_t packed = 0, count;

	*used = 0;
	for (; at < end; at += count) {
		skip_hole(copy->from, &at, end);
		/* data begins at a page, which may be inside a record */
		at = section->offset + (at - section->offset) / record * record;
		count = (size_t)least_of(end - at, CHUNK / record * record);
		if (pread(copy->from, copy->chunk, count, (off_t)at) != (ssize_t)count ||
		    !pack_chunk(copy, count, record, &packed, used))
			return false;
	}
	return flush_packed(copy, &packed, used);
}

static uint64_t unit_of(const struct cuf_header *header, uint32_t section)
{
	uint64_t unit = PAGE;

	if (section == CUF_SEC_RING)
		unit = header->device_segment_bytes;
	else if (section == CUF_SEC_HOST_RING)
		unit = header->host_segment_bytes;
	else if (section == CUF_SEC_FRAMEWORK_RING)
		unit = header->framework_segment_bytes;
	return unit ? unit : PAGE;
}

/*
 * How long the section has to be. The reader knows from the length of INCIDENTS and DEVICES how
 * they are used. META keeps a page: `cuflight run` may append.
 */
static uint64_t new_length(const struct copy *copy, const struct cuf_section *section,
			   uint64_t used)
{
	uint64_t bytes = used;

	if (section->id == CUF_SEC_INCIDENTS || section->id == CUF_SEC_DEVICES)
		return section->bytes;
	if (section->id == CUF_SEC_META)
		bytes = most_of(used, copy->header.meta_used) + PAGE;
	bytes = round_up_to(most_of(bytes, 1), unit_of(&copy->header, section->id));
	return least_of(round_up_to(bytes, PAGE), section->bytes);
}

static bool copy_section(struct copy *copy, struct cuf_section *section)
{
	bool is_table = section->id == CUF_SEC_LEDGER || section->id == CUF_SEC_HOST_LEDGER ||
			section->id == CUF_SEC_RECENT;
	uint64_t used;

	if (is_table ? !copy_packed(copy, section, &used) : !copy_in_place(copy, section, &used))
		return false;
	section->bytes = new_length(copy, section, used);
	section->offset = copy->end;
	copy->end += section->bytes;
	return true;
}

/* The header is written last: before that the new file is no recording. */
static bool copy_recording(struct copy *copy)
{
	struct cuf_header *header = &copy->header;
	uint32_t had = header->header_bytes;

	if (had < sizeof *header)
		memset((char *)header + had, 0, sizeof *header - had);
	header->header_bytes = (uint32_t)most_of(had, sizeof *header);
	copy->end = PAGE;
	for (uint32_t i = 0; i < header->section_count; i++)
		if (!copy_section(copy, &header->sections[i]))
			return false;
	if (!header->reserved_bytes)
		header->reserved_bytes = header->file_bytes;
	header->file_bytes = copy->end;
	return (copy->to < 0 || !ftruncate(copy->to, (off_t)copy->end)) &&
	       put_at(copy, header, sizeof *header, 0);
}

/* Whether a copy would be small enough, without writing one: each report of a directory asks. */
static bool is_worth_it(struct copy *copy)
{
	const struct cuf_header header = copy->header;
	bool is_small;

	copy->to = -1;
	is_small = copy_recording(copy);
	copy->header = header;
	copy->written = 0;
	return is_small;
}

/* ---- the file ---- */

/* What the counters say is in use, without reading it. */
static uint64_t least_used(const struct cuf_header *header)
{
	const uint64_t tickets[CUF_SEC_MAX] = {
		[CUF_SEC_RING] = header->next_ticket,
		[CUF_SEC_HOST_RING] = header->next_host_ticket,
		[CUF_SEC_FRAMEWORK_RING] = header->next_framework_ticket,
	};
	uint64_t used = 0;

	for (uint32_t i = 0; i < header->section_count; i++) {
		const struct cuf_section *section = &header->sections[i];
		uint64_t unit = unit_of(header, section->id), segments = section->bytes / unit;

		if (section->id < CUF_SEC_MAX)
			used += least_of(tickets[section->id], segments) * unit;
	}
	return used;
}

/* Only what is smaller by half is worth a copy. */
static bool replace(const struct copy *copy, const char *path, const char *fresh,
		    const struct stat *before, int *result, uint64_t *saved)
{
	const struct timespec times[2] = { before->st_atim, before->st_mtim };
	struct stat now;

	if (fstat(copy->to, &now))
		return false;
	if (now.st_blocks > before->st_blocks / 2) {
		*result = RECORDING_KEPT;
		return true;
	}
	*saved = (uint64_t)(before->st_blocks - now.st_blocks) * 512;
	*result = RECORDING_TRIMMED;
	if (copy->only_try)
		return true;
	if (fchmod(copy->to, before->st_mode & 07777) ||
	    (fchown(copy->to, before->st_uid, before->st_gid) && errno != EPERM) ||
	    futimens(copy->to, times) || fsync(copy->to) ||
	    file_writers(copy->from) != FILE_HAS_NO_WRITER || rename(fresh, path))
		return false;
	return true;
}

/* Nobody writes to a copy, which shows nothing of its process. */
static bool is_over(const struct copy *copy)
{
	const struct reader reader = { .header = copy->header, .data = (const void *)&copy->header,
				       .writers = FILE_HAS_NO_WRITER,
				       .birth_ns = file_birth_ns(copy->from) };

	return copy->header.end_kind || process_life(&reader) == LIFE_GONE;
}

static int trim_copy(struct copy *copy, const char *path, uint64_t *saved)
{
	char fresh[PATH_MAX];
	struct stat before;
	int result = -1, error;

	if (fstat(copy->from, &before) || !read_header(copy->from, &before, &copy->header))
		return -1;
	if (file_writers(copy->from) != FILE_HAS_NO_WRITER || !is_over(copy))
		return RECORDING_IN_USE;
	/* one that was trimmed has no more to give */
	copy->most = (uint64_t)before.st_blocks * 512 / 2;
	if (copy->header.reserved_bytes || least_used(&copy->header) > copy->most)
		return RECORDING_KEPT;
	if (!is_worth_it(copy))
		return errno == EFBIG ? RECORDING_KEPT : -1;
	if (snprintf(fresh, sizeof fresh, "%s.trim-XXXXXX", path) >= (int)sizeof fresh) {
		errno = ENAMETOOLONG;
		return -1;
	}
	copy->to = mkostemp(fresh, O_CLOEXEC);
	if (copy->to < 0)
		return -1;
	if (!copy_recording(copy) || !replace(copy, path, fresh, &before, &result, saved))
		result = -1;
	error = errno;
	if (result != RECORDING_TRIMMED || copy->only_try)
		unlink(fresh);
	close(copy->to);
	errno = error;
	return result;
}

int recording_trim(const char *path, bool only_try, uint64_t *bytes)
{
	struct copy *copy = calloc(1, sizeof *copy);
	uint64_t saved = 0;
	int result = -1, error;

	if (!copy)
		return -1;
	copy->only_try = only_try;
	copy->from = regular_file_open(path, O_NOFOLLOW, NULL);
	if (copy->from >= 0) {
		result = trim_copy(copy, path, &saved);
		error = errno;
		close(copy->from);
		errno = error;
	}
	free(copy);
	if (bytes)
		*bytes = saved;
	return result;
}
