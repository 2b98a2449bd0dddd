/* SPDX-License-Identifier: Apache-2.0 */
/* Reads structs by the rows that wrote them. */
#include "analysis/view/json/fields.h"

#include <math.h>
#include <string.h>
#include "analysis/base/xalloc.h"

static void put_number(const struct field *field, char *at, uint64_t number)
{
	if (field->size == sizeof(uint64_t))
		*(uint64_t *)at = number;
	else
		*(uint32_t *)at = (uint32_t)number;
}

static uint64_t number_named(const struct words *words, const char *word)
{
	size_t i = 0;

	while (i < words->count && (!words->items[i] || strcmp(words->items[i], word) != 0))
		i++;
	return i;
}

static bool take_number(const struct field *field, struct json_object *from, char *at)
{
	if (!json_object_is_type(from, json_type_int) || json_object_get_int64(from) < 0)
		return false;
	put_number(field, at, json_object_get_uint64(from));
	return true;
}

static bool take_text(struct fields_reading *reading, const struct field *field,
		      struct json_object *from, char *at)
{
	const char *text = json_object_get_string(from);

	if (!json_object_is_type(from, json_type_string))
		return false;
	if (field->type == FIELD_NAME)
		put_number(field, at, number_named(field->words, text));
	else
		*(const char **)at = arena_text(reading->arena, text, strlen(text));
	return true;
}

static bool take_real(struct json_object *from, char *at)
{
	if (!json_object_is_type(from, json_type_double) &&
	    !json_object_is_type(from, json_type_int))
		return false;
	*(double *)at = json_object_get_double(from);
	return true;
}

static bool take_flag(struct json_object *from, char *at)
{
	*(bool *)at = json_object_get_boolean(from);
	return json_object_is_type(from, json_type_boolean);
}

static bool take_tuple(struct fields_reading *reading, const struct shape *shape,
		       struct json_object *from, char *object)
{
	if (!json_object_is_type(from, json_type_array) ||
	    json_object_array_length(from) != shape->count)
		return false;
	for (size_t i = 0; i < shape->count; i++)
		if (!take_number(&shape->fields[i], json_object_array_get_idx(from, i),
				 object + shape->fields[i].at))
			return false;
	return true;
}

static bool take_list(struct fields_reading *reading, const struct field *field,
		      struct json_object *from, char *object)
{
	size_t count, bytes = field->shape->bytes;
	char *rows;

	if (!json_object_is_type(from, json_type_array))
		return false;
	count = json_object_array_length(from);
	rows = arena_zeroed(reading->arena, count, bytes);
	for (size_t i = 0; i < count; i++)
		if (!fields_read(reading, field->shape, json_object_array_get_idx(from, i),
				 rows + i * bytes))
			return false;
	*(void **)(object + field->at) = rows;
	*(size_t *)(object + field->count_at) = count;
	return true;
}

static bool take_texts(struct fields_reading *reading, const struct field *field,
		       struct json_object *from, char *object)
{
	size_t count;
	const char **texts;

	if (!json_object_is_type(from, json_type_array))
		return false;
	count = json_object_array_length(from);
	texts = arena_zeroed(reading->arena, count, sizeof *texts);
	for (size_t i = 0; i < count; i++)
		if (!take_text(reading, field, json_object_array_get_idx(from, i),
			       (char *)&texts[i]))
			return false;
	*(const char *const **)(object + field->at) = texts;
	*(size_t *)(object + field->count_at) = count;
	return true;
}

static void take_unknown(const struct field *field, char *at)
{
	switch (field->type) {
	case FIELD_NUMBER: put_number(field, at, CUF_UNKNOWN); break;
	case FIELD_REAL: *(double *)at = NAN; break;
	case FIELD_WORD: *(const char **)at = ""; break;
	default: memset(at, 0, field->size); break;
	}
}

static bool take_value(struct fields_reading *reading, const struct field *field,
		       struct json_object *from, char *object)
{
	switch (field->type) {
	case FIELD_NUMBER:
	case FIELD_POSITIVE: return take_number(field, from, object + field->at);
	case FIELD_REAL: return take_real(from, object + field->at);
	case FIELD_FLAG: return take_flag(from, object + field->at);
	case FIELD_OBJECT: return fields_read(reading, field->shape, from, object + field->at);
	case FIELD_TEXTS: return take_texts(reading, field, from, object);
	case FIELD_LIST: return take_list(reading, field, from, object);
	default: return take_text(reading, field, from, object + field->at);
	}
}

static bool take_field(struct fields_reading *reading, const struct field *field,
		       struct json_object *from, char *object)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(from, field->key, &value);
	if (field->take)
		return field->take(reading, value, object);
	if (!value && (field->is_nullable || field->flags & LATER))
		take_unknown(field, object + field->at);
	else
		return take_value(reading, field, value, object);
	return true;
}

bool fields_read(struct fields_reading *reading, const struct shape *shape,
		 struct json_object *from, void *object)
{
	const char *wrong = reading->wrong;

	if (shape->is_tuple)
		return take_tuple(reading, shape, from, object);
	if (!json_object_is_type(from, json_type_object))
		return false;
	for (size_t i = 0; i < shape->count; i++) {
		const struct field *field = &shape->fields[i];

		if (field->value || (field->rows && !field->take))
			continue;
		if (take_field(reading, field, from, object))
			continue;
		if (reading->wrong == wrong)
			reading->wrong = field->key;
		return false;
	}
	return true;
}
