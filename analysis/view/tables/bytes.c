/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/view/tables/bytes.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"

void bytes_fini(struct bytes *bytes)
{
	free(bytes->at);
	*bytes = (struct bytes){ 0 };
}

void bytes_add(struct bytes *bytes, const void *data, size_t count)
{
	if (bytes->count + count > bytes->room) {
		bytes->room = 2 * bytes->room + count + 64;
		bytes->at = xalloc_resize(bytes->at, bytes->room, 1);
	}
	if (count)
		memcpy(bytes->at + bytes->count, data, count);
	bytes->count += count;
}

void bytes_add_byte(struct bytes *bytes, uint8_t byte)
{
	bytes_add(bytes, &byte, 1);
}

void bytes_add_number(struct bytes *bytes, uint64_t number, size_t count)
{
	uint8_t data[8];

	for (size_t i = 0; i < count; i++)
		data[i] = (uint8_t)(number >> 8 * i);
	bytes_add(bytes, data, count);
}

void bytes_add_varint(struct bytes *bytes, uint64_t number)
{
	for (; number >= 0x80; number >>= 7)
		bytes_add_byte(bytes, (uint8_t)(number | 0x80));
	bytes_add_byte(bytes, (uint8_t)number);
}

/* ---- the hybrid ---- */

/* Packed numbers come in groups of 8, so a group has as many bytes as a number has bits. */
enum { GROUP = 8 };

unsigned hybrid_width(uint32_t largest)
{
	unsigned width = 1;

	while (width < 32 && largest >> width)
		width++;
	return width;
}

static size_t run_length(const uint32_t *numbers, size_t count)
{
	size_t run = 1;

	while (run < count && numbers[run] == numbers[0])
		run++;
	return run;
}

/* The last group may be short: what is missing is 0. */
static void add_group(struct bytes *out, const uint32_t *numbers, size_t count, unsigned width)
{
	uint64_t bits = 0;
	unsigned filled = 0;

	for (size_t i = 0; i < GROUP; i++) {
		bits |= (i < count ? (uint64_t)numbers[i] : 0) << filled;
		for (filled += width; filled >= 8; filled -= 8, bits >>= 8)
			bytes_add_byte(out, (uint8_t)bits);
	}
}

static void add_groups(struct bytes *out, const uint32_t *numbers, size_t count, unsigned width)
{
	size_t groups = (count + GROUP - 1) / GROUP;

	if (!groups)
		return;
	bytes_add_varint(out, groups << 1 | 1);
	for (size_t i = 0; i < count; i += GROUP)
		add_group(out, numbers + i, count - i < GROUP ? count - i : GROUP, width);
}

void bytes_add_hybrid(struct bytes *out, const uint32_t *numbers, size_t count, unsigned width)
{
	size_t packed = 0, at = 0; /* numbers from `packed` to `at` are packed together */

	while (at < count) {
		size_t run = run_length(numbers + at, count - at);

		if (run < GROUP) {
			at += count - at < GROUP ? count - at : GROUP;
			continue;
		}
		add_groups(out, numbers + packed, at - packed, width);
		bytes_add_varint(out, run << 1);
		bytes_add_number(out, numbers[at], (width + 7) / 8);
		packed = at += run;
	}
	add_groups(out, numbers + packed, at - packed, width);
}
