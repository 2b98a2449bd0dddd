/* SPDX-License-Identifier: Apache-2.0 */
/* Varints and length-delimited fields. */
#include "analysis/view/export/proto.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"

enum { WIRE_VARINT = 0, WIRE_BYTES = 2 };

void proto_fini(struct proto *message)
{
	free(message->bytes);
	*message = (struct proto){ 0 };
}

void proto_clear(struct proto *message) { message->count = 0; }

static void put_raw(struct proto *message, const void *bytes, size_t count)
{
	if (!count)
		return;
	if (message->count + count > message->room) {
		message->room = 2 * (message->count + count);
		message->bytes = xalloc_resize(message->bytes, message->room, 1);
	}
	memcpy(message->bytes + message->count, bytes, count);
	message->count += count;
}

static void put_varint(struct proto *message, uint64_t value)
{
	uint8_t bytes[10];
	size_t count = 0;

	do {
		bytes[count] = (uint8_t)(value & 0x7f);
		value >>= 7;
		if (value)
			bytes[count] |= 0x80;
		count++;
	} while (value);
	put_raw(message, bytes, count);
}

void proto_number(struct proto *message, unsigned field, uint64_t value)
{
	if (!value)
		return;
	put_varint(message, field << 3 | WIRE_VARINT);
	put_varint(message, value);
}

static void put_bytes(struct proto *message, unsigned field, const void *bytes, size_t count)
{
	put_varint(message, field << 3 | WIRE_BYTES);
	put_varint(message, count);
	put_raw(message, bytes, count);
}

void proto_text(struct proto *message, unsigned field, const char *text)
{
	put_bytes(message, field, text, strlen(text));
}

void proto_message(struct proto *message, unsigned field, const struct proto *inner)
{
	put_bytes(message, field, inner->bytes, inner->count);
}

void proto_packed(struct proto *message, unsigned field, const uint64_t *values, size_t count)
{
	struct proto inner = { 0 };

	for (size_t i = 0; i < count; i++)
		put_varint(&inner, values[i]);
	if (count)
		proto_message(message, field, &inner);
	proto_fini(&inner);
}
