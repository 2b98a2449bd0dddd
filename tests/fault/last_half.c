/* SPDX-License-Identifier: Apache-2.0 */
/*
 * last_half RECORDING...: forgets the older half of what the device and framework rings have, in
 * place, as if they had been half as large. The ledger stays: it never forgets a live block.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose/abi/format.h"

struct ring {
	uint8_t *at;
	uint64_t segment_bytes, segments, *overwritten;
	uint32_t record_bytes;
};

static struct cuf_segment *segment_of(const struct ring *ring, uint64_t i)
{
	return (struct cuf_segment *)(ring->at + i * ring->segment_bytes);
}

static uint64_t number_of(const struct ring *ring, const struct cuf_segment *segment, uint32_t i)
{
	return ((const struct cuf_event *)((const uint8_t *)(segment + 1) + i * ring->record_bytes))->seq;
}

static int by_number(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* The sequence number in the middle of both rings; 0: they are empty. */
static uint64_t middle_of(const struct ring *rings, size_t count)
{
	uint64_t *numbers = NULL, middle;
	size_t used = 0;

	for (const struct ring *ring = rings; ring < rings + count; ring++)
		for (uint64_t i = 0; i < ring->segments; i++) {
			const struct cuf_segment *segment = segment_of(ring, i);

			numbers = realloc(numbers, (used + segment->used + 1) * sizeof *numbers);
			if (!numbers)
				abort();
			for (uint32_t at = 0; at < segment->used; at++)
				numbers[used++] = number_of(ring, segment, at);
		}
	if (used)
		qsort(numbers, used, sizeof *numbers, by_number);
	middle = used ? numbers[used / 2] : 0;
	free(numbers);
	return middle;
}

/* Records before `first` go. A ticket beyond the number of segments tells that some went. */
static void forget(const struct ring *ring, uint64_t first)
{
	for (uint64_t i = 0; i < ring->segments; i++) {
		struct cuf_segment *segment = segment_of(ring, i);
		struct cuf_event *records = (struct cuf_event *)(segment + 1);
		uint32_t gone = 0;

		if (!segment->ticket)
			continue;
		while (gone < segment->used && number_of(ring, segment, gone) < first)
			gone++;
		segment->used -= gone;
		memmove(records, (uint8_t *)records + (size_t)gone * ring->record_bytes,
			(size_t)segment->used * ring->record_bytes);
		*ring->overwritten += gone;
		segment->ticket += ring->segments;
		if (gone && segment->used)
			segment->start_ns = records->time_ns;
	}
}

static bool find_ring(struct cuf_header *header, enum cuf_section_id id, struct ring *ring)
{
	for (uint32_t i = 0; i < header->section_count; i++) {
		const struct cuf_section *section = &header->sections[i];

		if (section->id != id)
			continue;
		*ring = (struct ring){
			.at = (uint8_t *)header + section->offset,
			.segment_bytes = id == CUF_SEC_RING ? header->device_segment_bytes :
							      header->framework_segment_bytes,
			.overwritten = id == CUF_SEC_RING ? &header->overwritten :
							    &header->framework_overwritten,
			.record_bytes = section->record_bytes,
		};
		ring->segments = ring->segment_bytes ? section->bytes / ring->segment_bytes : 0;
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int file = open(argv[i], O_RDWR);
		struct stat status;
		struct cuf_header *header = file < 0 || fstat(file, &status) ?
			MAP_FAILED :
			mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			     file, 0);
		struct ring rings[2];
		size_t count = 0;

		if (header == MAP_FAILED) {
			perror(argv[i]);
			return 2;
		}
		count += find_ring(header, CUF_SEC_RING, &rings[count]);
		count += find_ring(header, CUF_SEC_FRAMEWORK_RING, &rings[count]);
		uint64_t first = middle_of(rings, count);
		for (size_t n = 0; n < count; n++)
			forget(&rings[n], first);
	}
	return 0;
}
