/* SPDX-License-Identifier: Apache-2.0 */
/* The private copy of the constant part of the header. */
#include "interpose/store/seal.h"

#include <stddef.h>
#include <string.h>
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* Up to the first field that changes. created_ns is set at the hand-over, so it is not compared. */
enum { CONSTANT_BYTES = offsetof(struct cuf_header, state) };
static struct cuf_header sealed;

void cuf_recording_seal(void) { memcpy(&sealed, cuf_recording.header, CONSTANT_BYTES); }

void cuf_recording_write_sealed(struct cuf_header *header)
{
	memcpy(header, &sealed, CONSTANT_BYTES);
}

/* Compares bytes [from, to) of the header. */
static bool is_same(size_t from, size_t to)
{
	const uint8_t *now = (const uint8_t *)cuf_recording.header;
	const uint8_t *before = (const uint8_t *)&sealed;

	return !memcmp(now + from, before + from, to - from);
}

bool cuf_recording_is_intact(void)
{
	return is_same(0, offsetof(struct cuf_header, created_ns)) &&
	       is_same(offsetof(struct cuf_header, start_ns), CONSTANT_BYTES);
}

void cuf_recording_repair(void)
{
	struct cuf_header *header = cuf_recording.header;

	memset((uint8_t *)header + CONSTANT_BYTES, 0, sizeof *header - CONSTANT_BYTES);
	memcpy(header, &sealed, CONSTANT_BYTES);
	memset(header->sections, 0, sizeof header->sections);
	for (unsigned i = 0; i < sealed.section_count; i++)
		if (sealed.sections[i].id == CUF_SEC_META)
			header->sections[0] = sealed.sections[i];
	header->section_count = 1;
	header->created_ns = header->start_ns;
}
