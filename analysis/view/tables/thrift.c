/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/view/tables/thrift.h"

#include <assert.h>
#include <string.h>

enum { TYPE_TRUE = 1, TYPE_FALSE = 2 };

void thrift_fini(struct thrift *thrift)
{
	bytes_fini(&thrift->bytes);
	*thrift = (struct thrift){ .depth = 0 };
}

/* Fields are near each other, so the difference of their ids fits next to the type. */
static void begin_field(struct thrift *thrift, int field, unsigned type)
{
	int *last = &thrift->last[thrift->depth];

	assert(field > *last && field - *last < 16);
	bytes_add_byte(&thrift->bytes, (uint8_t)((unsigned)(field - *last) << 4 | type));
	*last = field;
}

/* Small numbers of either sign become small numbers. */
static uint64_t zigzag(int64_t value)
{
	return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

void thrift_bool(struct thrift *thrift, int field, bool value)
{
	begin_field(thrift, field, value ? TYPE_TRUE : TYPE_FALSE);
}

void thrift_i8(struct thrift *thrift, int field, int8_t value)
{
	begin_field(thrift, field, THRIFT_I8);
	bytes_add_byte(&thrift->bytes, (uint8_t)value);
}

void thrift_i32(struct thrift *thrift, int field, int32_t value)
{
	begin_field(thrift, field, THRIFT_I32);
	bytes_add_varint(&thrift->bytes, zigzag(value));
}

void thrift_i64(struct thrift *thrift, int field, int64_t value)
{
	begin_field(thrift, field, THRIFT_I64);
	bytes_add_varint(&thrift->bytes, zigzag(value));
}

static void add_binary(struct thrift *thrift, const void *data, size_t count)
{
	bytes_add_varint(&thrift->bytes, count);
	bytes_add(&thrift->bytes, data, count);
}

void thrift_binary(struct thrift *thrift, int field, const void *data, size_t count)
{
	begin_field(thrift, field, THRIFT_BINARY);
	add_binary(thrift, data, count);
}

void thrift_text(struct thrift *thrift, int field, const char *text)
{
	thrift_binary(thrift, field, text, strlen(text));
}

static void descend(struct thrift *thrift)
{
	assert(thrift->depth + 1 < THRIFT_DEPTH_MAX);
	thrift->last[++thrift->depth] = 0;
}

void thrift_struct(struct thrift *thrift, int field)
{
	begin_field(thrift, field, THRIFT_STRUCT);
	descend(thrift);
}

void thrift_empty(struct thrift *thrift, int field)
{
	thrift_struct(thrift, field);
	thrift_end(thrift);
}

void thrift_list(struct thrift *thrift, int field, enum thrift_type type, size_t count)
{
	begin_field(thrift, field, THRIFT_LIST);
	if (count < 15) {
		bytes_add_byte(&thrift->bytes, (uint8_t)(count << 4 | type));
		return;
	}
	bytes_add_byte(&thrift->bytes, (uint8_t)(0xf0 | type));
	bytes_add_varint(&thrift->bytes, count);
}

void thrift_element(struct thrift *thrift)
{
	descend(thrift);
}

void thrift_element_i32(struct thrift *thrift, int32_t value)
{
	bytes_add_varint(&thrift->bytes, zigzag(value));
}

void thrift_element_text(struct thrift *thrift, const char *text)
{
	add_binary(thrift, text, strlen(text));
}

void thrift_end(struct thrift *thrift)
{
	bytes_add_byte(&thrift->bytes, 0);
	if (thrift->depth)
		thrift->depth--;
}
