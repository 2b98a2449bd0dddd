/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recording, opened and checked. The only place that turns offsets of the file into pointers.
 *
 * Contract. The file may be hostile, truncated, or still being written. reader_open checks the
 * header and the section table once and keeps a copy of the header. Afterwards every access checks
 * its bounds, and the contents of records are data that is never trusted. A truncated file opens
 * if its header page is whole; sections beyond its end are empty or shorter, and `complete` is
 * false. Records are borrowed from the read-only mapping and may change while a live recording is
 * read: copy, then check.
 *
 * Errors: 0, or a negative enum reader_error_code with *error filled (error may be NULL). Several
 * threads may read one recording.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/regular_file.h"
#include "interpose/abi/format.h"

/*
 * Why a recording could not be read: a negative code with a sentence, and where in the file the
 * damage is. Only cmd/ prints it.
 *
 * Contract: plain data. The functions that fill a struct reader_error copy the path into it.
 */

/* READER_ERROR(name, code, sentence): append only. */
#define READER_ERRORS(READER_ERROR) \
	READER_ERROR(OPEN, -1, "cannot open the recording") \
	READER_ERROR(EMPTY, -2, "the file is empty") \
	READER_ERROR(SHORT, -3, "the file is truncated inside its header") \
	READER_ERROR(MAGIC, -4, "not a cuflight recording") \
	READER_ERROR(ENDIAN, -5, "recorded on a machine with the other byte order") \
	READER_ERROR(VERSION, -6, "written by a newer version of cuflight") \
	READER_ERROR(HEADER, -7, "the header is damaged") \
	READER_ERROR(SECTIONS, -8, "the section table is damaged") \
	READER_ERROR(NONE_FOUND, -9, "no recordings in this directory") \
	READER_ERROR(READ, -10, "cannot read the recording") \
	READER_ERROR(NO_RUN, -11, "the directory has no run of that number") \
	READER_ERROR(PACK, -12, "the pack is damaged, or no pack of cuflight") \
	READER_ERROR(PACK_LIMIT, -13, "the pack would unpack to far more than its size") \
	READER_ERROR(UNPACK, -14, "cannot unpack into TMPDIR, else /tmp") \
	READER_ERROR(LARGE, -15, "larger than any recording, which has at most 8 GiB") \
	READER_ERROR(UNBEGUN, -16, "never begun: its process ended while it was being created") \
	READER_ERROR(NO_PROCESS, -17, "the run has no recording of that process")

enum reader_error_code {
	READER_OK = 0,
#define READER_ERROR(name, code, sentence) READER_E_##name = code,
	READER_ERRORS(READER_ERROR)
#undef READER_ERROR
};

struct reader_error {
	int code;              /* enum reader_error_code */
	int system;            /* errno of the failing call; 0 none */
	uint64_t offset;       /* where the damage is, in bytes from the start of the file */
	char path[512];        /* the file, cut to fit; "" for memory */
};

/* The sentence of a code, never NULL: lower case, no full stop, as in "PATH: SENTENCE (at byte
 * OFFSET)". */
const char *reader_error_sentence(int code);

#define READER_HEADER_BYTES 4096u /* the header's page */
/* Twice what the option size= allows; `cuflight run` appends little. A sparse file takes hardly any
 * room on a disk and has any length. */
#define READER_BYTES_MAX ((uint64_t)8 << 30)

struct reader_section {
	const uint8_t *at;        /* NULL when count is 0 */
	uint64_t offset;          /* in the file */
	uint64_t bytes;           /* as far as the file has them */
	uint64_t count;           /* whole records; 0 for META */
	uint64_t planned;         /* records as laid out; more than count in a truncated file */
	uint32_t stride;          /* bytes from record to record */
};

/* How often each ring was read since the recording was opened. Threads count without a lock, so
 * some events may be missing. */
struct reader_sweeps {
	uint64_t decoded; /* events */
	uint64_t events;  /* in the ring; 0: nobody has read it */
};

struct reader {
	struct cuf_header header; /* a copy, without the fields that later writers add */
	char *path;               /* "" for memory */
	const uint8_t *data;
	uint64_t bytes;           /* as found */
	uint64_t missing_bytes;   /* what the header promises and the file does not have */
	bool complete;
	enum file_writers writers; /* just before the header was copied */
	uint64_t birth_ns;         /* of the file, in CLOCK_REALTIME; 0 unknown */
	/* Of a recording that is being written: the last device event of the moment that its copy
	 * of DEVICES is of. CUF_UNKNOWN: it is not written any more. */
	uint64_t until_seq;
	bool is_blurred;          /* no such moment was found: sums may differ by a few blocks */
	void *still, *ledger;     /* copies of sections; NULL */
	void *mapping;            /* of the file; NULL for memory */
	void *copy;               /* of misaligned memory; NULL */
	struct reader_section sections[CUF_SEC_MAX];
	uint32_t *call_sites;     /* by stack id: see reader_call_site; NULL: not merged */
	uint32_t *places;         /* by stack id: see reader_place; NULL: not merged */
	uint64_t **joined;        /* by stack id: depth, then frames; see reader_stack; NULL */
	size_t call_site_count;
	struct reader_sweeps *sweeps; /* by section; never NULL */
};

/* No block is larger: what claims to be is damage. */
#define BYTES_SANE ((uint64_t)1 << 57)

int reader_open(const char *path, struct reader **out, struct reader_error *error);
/* Of a recording that is being written: copies DEVICES anew, for a later moment. */
void reader_look_again(struct reader *reader);
/* Takes blocks, count of them, as the content of LEDGER. */
void reader_take_ledger(struct reader *reader, struct cuf_block *blocks, size_t count);
/* The same for an entry of a directory of recordings. A symbolic link is not followed. */
int reader_open_entry(const char *path, struct reader **out, struct reader_error *error);
/* A part of an open file, from a page on; path is what it is called. fd stays the caller's. */
struct file_part { int fd; uint64_t offset, bytes; };
int reader_open_part(const struct file_part *part, const char *path, struct reader **out,
		     struct reader_error *error);
/* data is borrowed until reader_close. */
int reader_open_memory(const void *data, uint64_t bytes, struct reader **out,
		       struct reader_error *error);
/* NULL is fine. With CUFLIGHT_SWEEPS in the environment, stderr has how often each ring was read:
 * tests keep commands from reading a recording again and again. */
void reader_close(struct reader *reader);

static inline void reader_decoded(const struct reader *reader, enum cuf_section_id ring,
				  uint64_t events)
{
	uint64_t *decoded = &reader->sweeps[ring].decoded;
	__atomic_store_n(decoded, __atomic_load_n(decoded, __ATOMIC_RELAXED) + events,
			 __ATOMIC_RELAXED);
}

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

/* The frames of a stack id, innermost first; NULL and *depth 0 when unknown or torn. Once stacks
 * are merged, those of a thread in which a library works go on with the stack that created the
 * thread (stack_identity.h). */
const uint64_t *reader_stack(const struct reader *reader, uint32_t id, uint32_t *depth,
			     uint8_t *stop);
bool reader_stack_is_joined(const struct reader *reader, uint32_t id);
/* The stack that created this stack's thread; 0: unknown, or the main thread. */
uint32_t reader_stack_creator(const struct reader *reader, uint32_t id);

/* The one id for all stacks that print alike (stack_identity.h). Whatever sums or judges by call
 * site uses it as the key. Events and blocks keep the recorded stack: patterns of requests
 * (explain/site_trace.h) are those of one call instruction. */
static inline uint32_t reader_call_site(const struct reader *reader, uint32_t stack)
{
	return stack < reader->call_site_count ? reader->call_sites[stack] : stack;
}

/* The lowest id of the same place (stack_identity.h); without merging the id itself. */
static inline uint32_t reader_place(const struct reader *reader, uint32_t stack)
{
	return stack < reader->call_site_count ? reader->places[stack] : stack;
}

struct stack_identities {
	uint32_t *call_sites, *places;
	uint64_t **joined;
	size_t count;
};
/* Takes ownership of the tables. */
void reader_merge_stacks(struct reader *reader, const struct stack_identities *merged);

/* Recorded CLOCK_MONOTONIC to CLOCK_REALTIME; 0 and CUF_UNKNOWN give CUF_UNKNOWN. */
uint64_t reader_realtime(const struct reader *reader, uint64_t monotonic_ns);

/* The header of segment i of a ring, copied, with `used` limited to the file. *records points at
 * its records (stride as in the section). False: never used, or beyond the end. */
bool reader_segment(const struct reader *reader, enum cuf_section_id ring, uint64_t index,
		    struct cuf_segment *segment, const uint8_t **records);
uint64_t reader_segment_count(const struct reader *reader, enum cuf_section_id ring);
uint64_t reader_segment_bytes(const struct reader *reader, enum cuf_section_id ring);

/* The incident with this number, copied; false: overwritten, torn, or it never existed. */
bool reader_incident(const struct reader *reader, uint64_t number, struct cuf_incident *incident);
/* The incident in a slot, copied. Fields that its writer did not have are CUF_UNKNOWN. False: no
 * such slot, or never used. */
bool reader_incident_slot(const struct reader *reader, uint64_t slot,
			  struct cuf_incident *incident);

/* Releases the pages of a section; they are read again when needed. Reading 1 GiB must not occupy 1
 * GiB. */
void reader_drop(const struct reader *reader, enum cuf_section_id id);
void reader_drop_range(const struct reader *reader, const void *at, uint64_t bytes);
