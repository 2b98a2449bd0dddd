/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and checks a recording; see reader.h. Nothing here interprets events. */
#include "analysis/recording/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/numbers.h"
#include "analysis/base/regular_file.h"
#include "analysis/base/xalloc.h"
#include "analysis/recording/cut_guard.h"

static const struct { int code; const char *sentence; } sentences[] = {
#define READER_ERROR(name, code, sentence) { code, sentence },
	READER_ERRORS(READER_ERROR)
#undef READER_ERROR
};

const char *reader_error_sentence(int code)
{
	for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
		if (sentences[i].code == code)
			return sentences[i].sentence;
	if (!code)
		return "no error";
	return "unknown error";
}

/* The smallest record of each section that this reader can read. Later writers may append fields
 * but never remove any. */
static const uint32_t record_bytes_min[CUF_SEC_MAX] = {
	[CUF_SEC_META] = 1,
	[CUF_SEC_DEVICES] = sizeof(struct cuf_device),
	[CUF_SEC_THREADS] = sizeof(struct cuf_thread),
	[CUF_SEC_STACK_INDEX] = sizeof(struct cuf_stack),
	[CUF_SEC_STACK_FRAMES] = sizeof(uint64_t),
	[CUF_SEC_LEDGER] = sizeof(struct cuf_block),
	[CUF_SEC_HOST_LEDGER] = sizeof(struct cuf_host_block),
	[CUF_SEC_RING] = sizeof(struct cuf_event),
	[CUF_SEC_HOST_RING] = sizeof(struct cuf_host_event),
	[CUF_SEC_INCIDENTS] = CUF_INCIDENT_BYTES_FIRST,
	[CUF_SEC_TIMELINE] = CUF_SAMPLE_BYTES_FIRST,
	[CUF_SEC_FRAMEWORK_RING] = sizeof(struct cuf_event),
	[CUF_SEC_HOST_PEAK] = sizeof(struct cuf_host_peak),
	[CUF_SEC_RECENT] = sizeof(struct cuf_recent),
};

/* Fills *error, if the caller wants it, and returns the code. */
static int fail(struct reader_error *error, const char *path, int code, uint64_t offset, int system)
{
	if (!error)
		return code;
	*error = (struct reader_error){ .code = code, .system = system, .offset = offset };
	strncpy(error->path, path, sizeof error->path - 1);
	return code;
}

#define AT(field) offsetof(struct cuf_header, field)

/* The recorder stores the magic last. Before that the header is zeros, or is there without it. */
static bool is_unbegun(const struct reader *reader)
{
	static const char zeros[READER_HEADER_BYTES];
	struct cuf_header header;

	if (reader->bytes < READER_HEADER_BYTES)
		return false;
	memcpy(&header, reader->data, sizeof header);
	return !memcmp(header.magic, zeros, sizeof header.magic) &&
	       (header.endian == CUF_ENDIAN || !memcmp(reader->data, zeros, sizeof zeros));
}

static int check_header(struct reader *reader, struct reader_error *error)
{
	const struct cuf_header *header = &reader->header;
	if (!reader->bytes)
		return fail(error, reader->path, READER_E_EMPTY, 0, 0);
	if (is_unbegun(reader))
		return fail(error, reader->path, READER_E_UNBEGUN, 0, 0);
	if (reader->bytes < sizeof header->magic ||
	    memcmp(reader->data, CUF_MAGIC, sizeof header->magic))
		return fail(error, reader->path, READER_E_MAGIC, 0, 0);
	if (reader->bytes > READER_BYTES_MAX)
		return fail(error, reader->path, READER_E_LARGE, READER_BYTES_MAX, 0);
	if (reader->bytes < READER_HEADER_BYTES)
		return fail(error, reader->path, READER_E_SHORT, reader->bytes, 0);
	memcpy(&reader->header, reader->data, sizeof reader->header);
	if (header->endian == __builtin_bswap32(CUF_ENDIAN))
		return fail(error, reader->path, READER_E_ENDIAN, AT(endian), 0);
	if (header->endian != CUF_ENDIAN)
		return fail(error, reader->path, READER_E_HEADER, AT(endian), 0);
	if (header->version > CUF_VERSION)
		return fail(error, reader->path, READER_E_VERSION, AT(version), 0);
	if (!header->version)
		return fail(error, reader->path, READER_E_HEADER, AT(version), 0);
	if (header->header_bytes < CUF_HEADER_BYTES_FIRST ||
	    header->header_bytes > READER_HEADER_BYTES)
		return fail(error, reader->path, READER_E_HEADER, AT(header_bytes), 0);
	/* an older writer: fields that it did not have are 0 */
	if (header->header_bytes < sizeof *header)
		memset((char *)&reader->header + header->header_bytes, 0,
		       sizeof *header - header->header_bytes);
	if (header->file_bytes < READER_HEADER_BYTES)
		return fail(error, reader->path, READER_E_HEADER, AT(file_bytes), 0);
	if (!header->section_count ||
	    header->section_count > sizeof header->sections / sizeof *header->sections)
		return fail(error, reader->path, READER_E_SECTIONS, AT(section_count), 0);
	return 0;
}

/* Takes over one row of the section table. Rows with unknown ids are checked, too, since they
 * reveal a damaged table, and then ignored. */
static bool add_section(struct reader *reader, const struct cuf_section *section)
{
	struct reader_section *to;
	uint64_t end;
	if (section->offset < READER_HEADER_BYTES || section->offset % 64 || !section->bytes ||
	    !section->record_bytes ||
	    __builtin_add_overflow(section->offset, section->bytes, &end) ||
	    end > reader->header.file_bytes)
		return false;
	if (!section->id || section->id >= CUF_SEC_MAX)
		return section->id != 0;
	to = &reader->sections[section->id];
	if (to->stride || section->record_bytes < record_bytes_min[section->id] ||
	    (section->id != CUF_SEC_META && section->record_bytes % 8))
		return false;
	to->stride = section->record_bytes;
	to->offset = section->offset;
	to->planned = section->bytes / section->record_bytes;
	if (section->offset >= reader->bytes)
		return true;
	to->at = reader->data + section->offset;
	to->bytes = least_of(end, reader->bytes) - section->offset;
	to->count = section->id == CUF_SEC_META ? 0 : to->bytes / section->record_bytes;
	return true;
}

static bool is_segment_size(uint64_t bytes, uint32_t record_bytes)
{
	return bytes % 64 == 0 && bytes >= sizeof(struct cuf_segment) + record_bytes &&
	       bytes <= (uint64_t)1 << 30;
}

static int check_sections(struct reader *reader, struct reader_error *error)
{
	const struct cuf_header *header = &reader->header;
	for (uint32_t i = 0; i < header->section_count; i++)
		if (!add_section(reader, &header->sections[i]))
			return fail(error, reader->path, READER_E_SECTIONS,
				    AT(sections) + i * sizeof *header->sections, 0);
	if (reader->sections[CUF_SEC_RING].stride &&
	    !is_segment_size(header->device_segment_bytes,
				reader->sections[CUF_SEC_RING].stride))
		return fail(error, reader->path, READER_E_HEADER, AT(device_segment_bytes), 0);
	if (reader->sections[CUF_SEC_HOST_RING].stride &&
	    !is_segment_size(header->host_segment_bytes,
				reader->sections[CUF_SEC_HOST_RING].stride))
		return fail(error, reader->path, READER_E_HEADER, AT(host_segment_bytes), 0);
	if (reader->sections[CUF_SEC_FRAMEWORK_RING].stride &&
	    !is_segment_size(header->framework_segment_bytes,
				reader->sections[CUF_SEC_FRAMEWORK_RING].stride))
		return fail(error, reader->path, READER_E_HEADER, AT(framework_segment_bytes), 0);
	reader->missing_bytes = subtract_to_zero(header->file_bytes, reader->bytes);
	reader->complete = !reader->missing_bytes;
	return 0;
}

enum { LOOKS = 100, STILL_BYTES_MAX = 1 << 20 };

/* A recorder that writes counts an event in next_seq first. */
void reader_look_again(struct reader *reader)
{
	struct reader_section *devices = &reader->sections[CUF_SEC_DEVICES];
	const struct cuf_header *now = (const void *)reader->data;
	uint64_t before = 0, bytes = devices->count * devices->stride;

	if (reader->until_seq == CUF_UNKNOWN || bytes > STILL_BYTES_MAX)
		return;
	if (!reader->still)
		reader->still = xalloc_bytes(bytes + 1);
	reader->is_blurred = true;
	for (unsigned i = 0; i < LOOKS && reader->is_blurred; i++) {
		before = __atomic_load_n(&now->next_seq, __ATOMIC_ACQUIRE);
		memcpy(reader->still, reader->data + devices->offset, bytes);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		reader->is_blurred = __atomic_load_n(&now->next_seq, __ATOMIC_RELAXED) != before;
	}
	reader->until_seq = reader->header.next_seq = before;
	devices->at = reader->still;
}

static void look(struct reader *reader)
{
	if (!reader->mapping || reader->header.end_kind ||
	    reader->writers == FILE_HAS_NO_WRITER || !reader->sections[CUF_SEC_DEVICES].count)
		return;
	reader->until_seq = 0;
	reader_look_again(reader);
}

void reader_take_ledger(struct reader *reader, struct cuf_block *blocks, size_t count)
{
	struct reader_section *ledger = &reader->sections[CUF_SEC_LEDGER];

	free(reader->ledger);
	reader->ledger = blocks;
	ledger->at = (const uint8_t *)blocks;
	ledger->stride = sizeof *blocks;
	ledger->count = ledger->planned = count;
	ledger->bytes = count * sizeof *blocks;
}

static int check(struct reader *reader, struct reader **out, struct reader_error *error)
{
	int code = check_header(reader, error);
	if (!code)
		code = check_sections(reader, error);
	if (code) {
		reader_close(reader);
		return code;
	}
	look(reader);
	*out = reader;
	return 0;
}

static struct reader *new_reader(const char *path)
{
	struct reader *reader = xalloc_aligned_zeroed(_Alignof(struct reader), sizeof *reader);

	reader->path = xalloc_string(path);
	reader->until_seq = CUF_UNKNOWN;
	reader->sweeps = xalloc_zeroed(CUF_SEC_MAX, sizeof *reader->sweeps);
	return reader;
}

int reader_open_memory(const void *data, uint64_t bytes, struct reader **out,
		       struct reader_error *error)
{
	struct reader *reader = new_reader("");
	*out = NULL;
	reader->data = data;
	reader->bytes = bytes;
	if ((uintptr_t)data % 64 && bytes) {
		if (posix_memalign(&reader->copy, 64, bytes))
			reader->copy = NULL;
		if (!reader->copy) {
			reader_close(reader);
			return fail(error, "", READER_E_READ, 0, ENOMEM);
		}
		reader->data = memcpy(reader->copy, data, bytes);
	}
	return check(reader, out, error);
}

/* An empty part is not mapped. */
static int map_part(struct reader *reader, const struct file_part *part, struct reader_error *error)
{
	void *at;

	if (!part->bytes)
		return 0;
	if (part->bytes > READER_BYTES_MAX)
		return fail(error, reader->path, READER_E_LARGE, READER_BYTES_MAX, 0);
	at = mmap(NULL, part->bytes, PROT_READ, MAP_SHARED, part->fd, (off_t)part->offset);
	if (at == MAP_FAILED)
		return fail(error, reader->path, READER_E_READ, 0, errno);
	reader->bytes = part->bytes;
	reader->data = reader->mapping = at;
	cut_guard_begin(reader->data, reader->bytes);
	return 0;
}

/* Maps the whole file read-only; extra_flags are for open. */
static int map_file(struct reader *reader, int extra_flags, struct reader_error *error)
{
	struct stat st;
	int code = 0, fd = regular_file_open(reader->path, extra_flags, NULL);

	if (fd < 0 && errno == EINVAL)
		return fail(error, reader->path, READER_E_MAGIC, 0, 0);
	if (fd < 0)
		return fail(error, reader->path, READER_E_OPEN, 0, errno);
	if (fstat(fd, &st))
		code = fail(error, reader->path, READER_E_READ, 0, errno);
	else
		code = map_part(reader, &(struct file_part){ fd, 0, (uint64_t)st.st_size }, error);
	reader->writers = file_writers(fd);
	reader->birth_ns = file_birth_ns(fd);
	close(fd);
	return code;
}

/* Checks what was mapped, unless that failed already. */
static int check_mapped(struct reader *reader, int code, struct reader **out,
			struct reader_error *error)
{
	*out = NULL;
	if (code) {
		reader_close(reader);
		return code;
	}
	return check(reader, out, error);
}

static int open_path(const char *path, int extra_flags, struct reader **out,
		     struct reader_error *error)
{
	struct reader *reader = new_reader(path);

	return check_mapped(reader, map_file(reader, extra_flags, error), out, error);
}

int reader_open_part(const struct file_part *part, const char *path, struct reader **out,
		     struct reader_error *error)
{
	struct reader *reader = new_reader(path);

	return check_mapped(reader, map_part(reader, part, error), out, error);
}

int reader_open(const char *path, struct reader **out, struct reader_error *error)
{
	return open_path(path, 0, out, error);
}

int reader_open_entry(const char *path, struct reader **out, struct reader_error *error)
{
	return open_path(path, O_NOFOLLOW, out, error);
}

/* "device 2.00 framework 0.00 host 4.01 sweeps of PATH"; nothing for a recording whose events
 * nobody asked for. */
static void print_sweeps(const struct reader *reader)
{
	static const struct { enum cuf_section_id ring; const char *name; } rings[] = {
		{ CUF_SEC_RING, "device" },
		{ CUF_SEC_FRAMEWORK_RING, "framework" },
		{ CUF_SEC_HOST_RING, "host" },
	};
	double sweeps[CUF_SEC_MAX] = { 0 };
	bool any = false;

	for (size_t i = 0; i < 3; i++) {
		const struct reader_sweeps *ring = &reader->sweeps[rings[i].ring];

		if (ring->events)
			sweeps[i] = (double)ring->decoded / (double)ring->events;
		any |= ring->decoded != 0;
	}
	for (size_t i = 0; i < 3 && any; i++)
		fprintf(stderr, "%s %.2f ", rings[i].name, sweeps[i]);
	if (any)
		fprintf(stderr, "sweeps of %s\n", reader->path);
}

static void free_merged(struct reader *reader)
{
	for (size_t i = 0; reader->joined && i < reader->call_site_count; i++)
		free(reader->joined[i]);
	free(reader->joined);
	free(reader->call_sites);
	free(reader->places);
}

void reader_close(struct reader *reader)
{
	if (!reader)
		return;
	if (getenv("CUFLIGHT_SWEEPS"))
		print_sweeps(reader);
	if (reader->mapping) {
		cut_guard_end(reader->data);
		munmap(reader->mapping, reader->bytes);
	}
	free(reader->copy);
	free(reader->still);
	free(reader->ledger);
	free_merged(reader);
	free(reader->path);
	free(reader->sweeps);
	free(reader);
}

/* The recorder keeps at most 256 native frames and merges those of Python into them. A damaged
 * stack may claim 65,535. */
enum { STACK_DEPTH_MAX = 1024 };

/* The frames as recorded, with the one that names the creator. */
static const uint64_t *recorded_frames(const struct reader *reader, uint32_t id, uint32_t *depth,
				       uint8_t *stop)
{
	const struct reader_section *frames = &reader->sections[CUF_SEC_STACK_FRAMES];
	const struct cuf_stack *at = id ? reader_at(reader, CUF_SEC_STACK_INDEX, id - 1) : NULL;
	struct cuf_stack stack;
	*depth = 0;
	*stop = CUF_STOP_END;
	if (!at)
		return NULL;
	stack = *at;
	if (!stack.depth || !stack.hash || frames->stride != sizeof(uint64_t) ||
	    (uint64_t)stack.first + stack.depth > frames->count)
		return NULL;
	*depth = stack.depth < STACK_DEPTH_MAX ? stack.depth : STACK_DEPTH_MAX;
	*stop = stack.stop < CUF_STOP_MAX ? stack.stop : CUF_STOP_END;
	return (const uint64_t *)(const void *)frames->at + stack.first;
}

bool reader_stack_is_joined(const struct reader *reader, uint32_t id)
{
	return reader->joined && id < reader->call_site_count && reader->joined[id];
}

const uint64_t *reader_stack(const struct reader *reader, uint32_t id, uint32_t *depth,
			     uint8_t *stop)
{
	const uint64_t *frames = recorded_frames(reader, id, depth, stop);

	if (frames && reader_stack_is_joined(reader, id)) {
		*depth = (uint32_t)reader->joined[id][0];
		return reader->joined[id] + 1;
	}
	if (frames && cuf_frame_is_creator(frames[*depth - 1]) && !--*depth)
		return NULL;
	return frames;
}

uint32_t reader_stack_creator(const struct reader *reader, uint32_t id)
{
	uint32_t depth;
	uint8_t stop;
	const uint64_t *frames = recorded_frames(reader, id, &depth, &stop);

	return frames && cuf_frame_is_creator(frames[depth - 1]) ? (uint32_t)frames[depth - 1] : 0;
}

void reader_merge_stacks(struct reader *reader, const struct stack_identities *merged)
{
	free_merged(reader);
	reader->call_sites = merged->call_sites;
	reader->places = merged->places;
	reader->joined = merged->joined;
	reader->call_site_count = merged->count;
}

uint64_t reader_realtime(const struct reader *reader, uint64_t monotonic_ns)
{
	if (!monotonic_ns || monotonic_ns == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return monotonic_ns - reader->header.start_ns + reader->header.start_realtime_ns;
}

uint64_t reader_segment_bytes(const struct reader *reader, enum cuf_section_id ring)
{
	switch (ring) {
	case CUF_SEC_RING: return reader->header.device_segment_bytes;
	case CUF_SEC_FRAMEWORK_RING: return reader->header.framework_segment_bytes;
	default: return reader->header.host_segment_bytes;
	}
}

uint64_t reader_segment_count(const struct reader *reader, enum cuf_section_id ring)
{
	uint64_t bytes = reader_segment_bytes(reader, ring), found = reader->sections[ring].bytes;
	return found ? (found + bytes - 1) / bytes : 0;
}

/* Copies the header of the segment, then limits `used` to what the file has. */
enum { SEGMENTS_KEPT = 256 }; /* 16 MiB of a host ring */

bool reader_segment(const struct reader *reader, enum cuf_section_id ring, uint64_t index,
		    struct cuf_segment *segment, const uint8_t **records)
{
	const struct reader_section *section = &reader->sections[ring];
	uint64_t bytes = reader_segment_bytes(reader, ring), from = index * bytes, room;
	if (index >= reader_segment_count(reader, ring) || section->bytes - from < sizeof *segment)
		return false;
	/* the last segment may be cut */
	room = least_of(section->bytes - from, bytes);
	memcpy(segment, section->at + from, sizeof *segment);
	room = (room - sizeof *segment) / section->stride;
	if (segment->used > room)
		segment->used = (uint32_t)room;
	*records = section->at + from + sizeof *segment;
	/* Whoever reads only the headers maps the pages around each. */
	if (index % SEGMENTS_KEPT == SEGMENTS_KEPT - 1)
		reader_drop_range(reader, section->at + from - (SEGMENTS_KEPT - 1) * bytes,
				  (SEGMENTS_KEPT - 1) * bytes);
	return segment->ticket != 0 && segment->used != 0;
}

static int by_bytes_descending(const void *a, const void *b)
{
	const struct cuf_site_level *left = a, *right = b;

	return compare_numbers(right->bytes, left->bytes);
}

/* The recorder listed the largest stacks; rows that are one call site become one row. */
static void merge_incident_sites(const struct reader *reader, struct cuf_incident *incident)
{
	uint64_t count = least_of(incident->site_count, CUF_INCIDENT_SITES), kept = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct cuf_site_level row = incident->sites[i];
		uint64_t at = 0;

		row.stack = reader_call_site(reader, row.stack);
		while (at < kept && (incident->sites[at].stack != row.stack ||
				     incident->sites[at].kind != row.kind))
			at++;
		if (at == kept) {
			incident->sites[kept++] = row;
			continue;
		}
		incident->sites[at].bytes += row.bytes;
		incident->sites[at].count += row.count;
	}
	incident->site_count = kept;
	if (kept < count)
		qsort(incident->sites, kept, sizeof *incident->sites, by_bytes_descending);
}

bool reader_incident_slot(const struct reader *reader, uint64_t slot, struct cuf_incident *incident)
{
	uint32_t stride = reader->sections[CUF_SEC_INCIDENTS].stride;
	const void *at = reader_at(reader, CUF_SEC_INCIDENTS, slot);
	if (!at)
		return false;
	*incident = (struct cuf_incident){
		.framework_allocated_bytes = CUF_UNKNOWN, .framework_reserved_bytes = CUF_UNKNOWN,
		.address_bytes = CUF_UNKNOWN, .address_max_bytes = CUF_UNKNOWN,
		.data_bytes = CUF_UNKNOWN, .data_max_bytes = CUF_UNKNOWN,
	};
	memcpy(incident, at, least_of(stride, sizeof *incident));
	merge_incident_sites(reader, incident);
	return incident->number != 0 && incident->seq <= reader->until_seq;
}

/* The first quarter of the slots keeps the first incidents; the rest is a ring. */
bool reader_incident(const struct reader *reader, uint64_t number, struct cuf_incident *incident)
{
	uint64_t slots = reader->sections[CUF_SEC_INCIDENTS].planned, keep = slots / 4,
		 slot = number - 1;
	if (!number || !slots)
		return false;
	if (slot >= keep)
		slot = keep + (slot - keep) % (slots - keep);
	return reader_incident_slot(reader, slot, incident) && incident->number == number;
}

/* Rounds inwards to whole pages: neighbours may still be in use. */
void reader_drop_range(const struct reader *reader, const void *at, uint64_t bytes)
{
	uintptr_t page = 4095, from = ((uintptr_t)at + page) & ~page,
		  to = ((uintptr_t)at + bytes) & ~page;
	bool is_mapped = (const uint8_t *)at >= reader->data &&
			 (const uint8_t *)at < reader->data + reader->bytes;

	if (reader->mapping && is_mapped && to > from)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

void reader_drop(const struct reader *reader, enum cuf_section_id id)
{
	reader_drop_range(reader, reader->sections[id].at, reader->sections[id].bytes);
}
