/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/view/table_files/bytes.h"

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
