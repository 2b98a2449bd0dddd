/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutator of the fuzzer knows the section table. So one step changes a field of a record, to
 * values that sums and sizes do not expect, or repeats a record over those behind it. Bytes alone
 * find neither: a recording that costs much work has many records that all agree.
 *
 * Contract: as libFuzzer's. Nothing but the data and the seed decides the result.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "interpose/abi/format.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed);

static uint64_t random_of(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t below(uint64_t *state, uint64_t n) { return n ? (random_of(state) >> 11) % n : 0; }

/* A section as far as the data has it; bytes 0: none. */
struct part { uint8_t *at; uint64_t bytes, stride; unsigned id; };

static struct part choose_section(uint8_t *data, size_t bytes, uint64_t *state)
{
	struct cuf_header header;
	struct cuf_section section;
	struct part part = { 0 };

	memcpy(&header, data, sizeof header);
	if (!header.section_count ||
	    header.section_count > sizeof header.sections / sizeof *header.sections)
		return part;
	section = header.sections[below(state, header.section_count)];
	if (!section.record_bytes || section.offset >= bytes)
		return part;
	part = (struct part){ data + section.offset, bytes - section.offset, section.record_bytes,
			      section.id };
	if (section.bytes < part.bytes)
		part.bytes = section.bytes;
	/* records of a ring follow the header of their segment, those of META have any size */
	if (part.id == CUF_SEC_META)
		part.stride = 8;
	else if (part.id == CUF_SEC_RING || part.id == CUF_SEC_FRAMEWORK_RING ||
		 part.id == CUF_SEC_HOST_RING) {
		uint64_t skipped = sizeof(struct cuf_segment);

		if (part.bytes <= skipped)
			return (struct part){ 0 };
		part.at += skipped;
		part.bytes -= skipped;
	}
	return part;
}

static uint64_t odd_value(uint64_t *state, uint64_t was)
{
	switch (below(state, 8)) {
	case 0: return 0;
	case 1: return CUF_UNKNOWN;
	case 2: return was + 1;
	case 3: return was - 1;
	case 4: return (uint64_t)1 << below(state, 64);
	case 5: return ((uint64_t)1 << below(state, 64)) - 1;
	case 6: return below(state, 64);
	default: return random_of(state);
	}
}

/* One field of 1, 2, 4 or 8 bytes, at a place where such a field can be. */
static void change_field(uint8_t *at, uint64_t bytes, uint64_t *state)
{
	size_t width = (size_t)1 << below(state, 4);
	uint64_t value = 0;

	if (bytes < width)
		return;
	at += below(state, bytes / width) * width;
	memcpy(&value, at, width);
	value = odd_value(state, value);
	memcpy(at, &value, width);
}

/* Copies a record over those behind it, each with its first number larger by a step: keys, sequence
 * numbers and numbers of incidents go up. */
static void repeat_record(const struct part *part, uint64_t *state)
{
	uint64_t count = part->bytes / part->stride, from = below(state, count), first;
	uint64_t times = 1 + below(state, 1 + below(state, count)), step = below(state, 3);

	if (count < 2 || part->stride < sizeof first)
		return;
	memcpy(&first, part->at + from * part->stride, sizeof first);
	if (!step)
		step = (uint64_t)1 << below(state, 32);
	for (uint64_t i = 1; i <= times && from + i < count; i++) {
		uint8_t *to = part->at + (from + i) * part->stride;

		memcpy(to, part->at + from * part->stride, part->stride);
		first += step;
		memcpy(to, &first, sizeof first);
	}
}

/* The count of incidents, of samples and of META's bytes follow what was repeated, or lie. */
static void change_header(uint8_t *data, uint64_t *state)
{
	static const size_t fields[] = {
		offsetof(struct cuf_header, incident_count),
		offsetof(struct cuf_header, sample_count),
		offsetof(struct cuf_header, meta_used),
		offsetof(struct cuf_header, frames_used),
		offsetof(struct cuf_header, stack_count),
		offsetof(struct cuf_header, replaced),
		offsetof(struct cuf_header, next_seq),
		offsetof(struct cuf_header, end_seq),
		offsetof(struct cuf_header, work_end_seq),
		offsetof(struct cuf_header, sample_mean_bytes),
		offsetof(struct cuf_header, options_host_mode),
	};

	change_field(data + fields[below(state, sizeof fields / sizeof *fields)], 8, state);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t most, unsigned seed)
{
	uint64_t state = (uint64_t)seed * 0x9E3779B97F4A7C15ull + 1;

	if (bytes < sizeof(struct cuf_header) || below(&state, 8) == 0)
		return LLVMFuzzerMutate(data, bytes, most);
	for (uint64_t steps = 1 + below(&state, 4); steps; steps--) {
		struct part part = choose_section(data, bytes, &state);

		if (below(&state, 8) == 0)
			change_header(data, &state);
		else if (part.bytes && below(&state, 3) == 0)
			repeat_record(&part, &state);
		else if (part.bytes)
			change_field(part.at, part.bytes, &state);
	}
	return bytes;
}
