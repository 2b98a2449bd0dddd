/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording, opened and checked. The only place that turns offsets of the file into pointers.
 *
 * Contract. The file may be hostile, cut short, or still being written: reader_open checks the header and the section
 * table once and keeps a private copy of the header; afterwards every access goes through a bounds check of its own,
 * and what a record says is data, never trusted. A cut file opens as long as its header page is whole: sections
 * beyond its end are empty or shorter, and `complete` is false. Records are borrowed from the mapping (read-only) and
 * may change under the reader of a live recording: copy, then check.
 * Errors: 0 or a negative enum reader_error_code with *error filled (error may be NULL). One thread at a time.
 */
#ifndef ANALYSIS_RECORDING_READER_H
#define ANALYSIS_RECORDING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/recording/reader_error.h"
#include "interpose/abi/format.h"

#define READER_HEADER_BYTES 4096u /* the header's page */

struct reader_section {
	const uint8_t *at;        /* NULL when count is 0 */
	uint64_t offset;          /* in the file */
	uint64_t bytes;           /* as far as the file has them */
	uint64_t count;           /* whole records; META: 0 */
	uint64_t planned;         /* records as laid out; more than count when the file is cut */
	uint32_t stride;          /* bytes from record to record */
};

struct reader {
	struct cuf_header header; /* a copy; fields that later writers add are cut */
	const char *path;         /* owned; "" for memory */
	const uint8_t *data;
	uint64_t bytes;           /* as found */
	uint64_t missing_bytes;   /* the header promises more than the file has */
	bool complete;
	bool mapped;
	void *copy;               /* of badly aligned memory; NULL */
	struct reader_section sections[CUF_SEC_MAX];
	uint32_t *call_sites;     /* by stack id, see reader_call_site; NULL: stacks are not merged */
	size_t call_site_count;
};

int reader_open(const char *path, struct reader **out, struct reader_error *error);
/* The same for an entry of a directory of recordings. A symbolic link is not followed. */
int reader_open_entry(const char *path, struct reader **out, struct reader_error *error);
/* data is borrowed until reader_close. */
int reader_open_memory(const void *data, uint64_t bytes, struct reader **out,
		       struct reader_error *error);
void reader_close(struct reader *reader); /* NULL is fine */

/* Record `index` of a table; NULL beyond its end. */
static inline const void *reader_at(const struct reader *reader, enum cuf_section_id id,
				    uint64_t index)
{
	const struct reader_section *section = &reader->sections[id];
	return index < section->count ? section->at + index * section->stride : NULL;
}

static inline uint64_t reader_count(const struct reader *reader, enum cuf_section_id id)
{
	return reader->sections[id].count;
}

/* The frames of a stack id, innermost first; NULL and *depth 0 when unknown or torn. */
const uint64_t *reader_stack(const struct reader *reader, uint32_t id, uint32_t *depth,
			     uint8_t *stop);

/*
 * The one id that stands for all stacks that print alike (stack_identity.h). Whatever sums or judges
 * by call site uses it as the key. Events and blocks keep the stack that was recorded: patterns of
 * requests (explain/site_trace.h) are those of one call instruction.
 */
static inline uint32_t reader_call_site(const struct reader *reader, uint32_t stack)
{
	return stack < reader->call_site_count ? reader->call_sites[stack] : stack;
}

/* Takes ownership of call_sites, from stack_identities. */
void reader_merge_stacks(struct reader *reader, uint32_t *call_sites, size_t count);

/* Recorded CLOCK_MONOTONIC to CLOCK_REALTIME; 0 and CUF_UNKNOWN give CUF_UNKNOWN. */
uint64_t reader_realtime(const struct reader *reader, uint64_t monotonic_ns);

/* A ring's segments. The header of segment i, copied and clamped so that `used` records lie within it; *records points
 * at them (stride as in the section). false: never used, or beyond the end. */
bool reader_segment(const struct reader *reader, enum cuf_section_id ring, uint64_t index,
		    struct cuf_segment *segment, const uint8_t **records);
uint64_t reader_segment_count(const struct reader *reader, enum cuf_section_id ring);
uint64_t reader_segment_bytes(const struct reader *reader, enum cuf_section_id ring);

/* Incident by number, copied; false: overwritten, torn or never there. */
bool reader_incident(const struct reader *reader, uint64_t number, struct cuf_incident *incident);
/* The one in a slot, a copy; what its writer did not know of is CUF_UNKNOWN. False: no such slot, or never used. */
bool reader_incident_slot(const struct reader *reader, uint64_t slot,
			  struct cuf_incident *incident);

/* Gives the memory of a section's pages back (they are read again when needed): reading 1 GiB must not hold 1 GiB. */
void reader_drop(const struct reader *reader, enum cuf_section_id id);
void reader_drop_range(const struct reader *reader, const void *at, uint64_t bytes);

#endif
