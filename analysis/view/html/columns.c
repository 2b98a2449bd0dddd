/* SPDX-License-Identifier: Apache-2.0 */
/* Differences as zigzag LEB128; texts by hash. */
#include "analysis/view/html/columns.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/json/json_parts.h"

enum { STRINGS_BYTES_MOST = 16 << 20 };

void columns_fini(struct columns *columns)
{
	free(columns->bytes);
	*columns = (struct columns){ 0 };
}

struct column column_begin(struct columns *columns)
{
	return (struct column){ .to = columns, .begin = columns->count };
}

static void put(struct columns *columns, uint8_t byte)
{
	xalloc_grow(&columns->bytes, columns->count, &columns->room, 1);
	columns->bytes[columns->count++] = byte;
}

void column_add(struct column *column, int64_t number)
{
	uint64_t zigzag;
	int64_t change;

	if (number > COLUMN_NUMBER_MOST)
		number = COLUMN_NUMBER_MOST;
	if (number < -COLUMN_NUMBER_MOST)
		number = -COLUMN_NUMBER_MOST;
	change = number - column->last;
	zigzag = (uint64_t)change << 1 ^ (uint64_t)(change >> 63);
	for (; zigzag > 127; zigzag >>= 7)
		put(column->to, (uint8_t)(zigzag | 128));
	put(column->to, (uint8_t)zigzag);
	column->last = number;
	column->numbers++;
}

void column_add_unsigned(struct column *column, uint64_t number)
{
	column_add(column, is_known(number) ? signed_up_to(number, COLUMN_NUMBER_MOST) : -1);
}

void column_add_index(struct column *column, uint32_t index)
{
	column_add(column, index == FACT_NONE ? -1 : (int64_t)index);
}

struct json_object *column_end(const struct column *column)
{
	struct json_object *object = json_object_new_object(), *array = json_object_new_array();

	json_object_array_add(array, json_object_new_uint64(column->begin));
	json_object_array_add(array, json_object_new_uint64(column->to->count - column->begin));
	json_object_array_add(array, json_object_new_uint64(column->numbers));
	json_object_object_add(object, "column", array);
	return object;
}

void strings_init(struct strings *strings)
{
	*strings = (struct strings){ 0 };
	hash_index_init(&strings->index, 0);
}

void strings_fini(struct strings *strings)
{
	for (size_t i = 0; i < strings->count; i++)
		free(strings->items[i]);
	free(strings->items);
	hash_index_fini(&strings->index);
}

uint32_t strings_add(struct strings *strings, const char *text)
{
	uint32_t *number;
	size_t length;

	if (!text)
		return FACT_NONE;
	length = strlen(text);
	if (strings->bytes + least_of(length, JSON_TEXT_MAX) > STRINGS_BYTES_MOST)
		text = "(left out)";
	number = hash_index_place(&strings->index, hash_index_text(&strings->index, text));
	if (*number)
		return *number - 1;
	xalloc_grow(&strings->items, strings->count, &strings->room, sizeof *strings->items);
	strings->items[strings->count] = xalloc_string(text);
	strings->bytes += least_of(length, JSON_TEXT_MAX) + 8;
	*number = (uint32_t)++strings->count;
	return *number - 1;
}

struct json_object *strings_json(const struct strings *strings)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < strings->count; i++)
		json_object_array_add(array, json_text(strings->items[i]));
	return array;
}
