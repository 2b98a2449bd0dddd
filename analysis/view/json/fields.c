/* SPDX-License-Identifier: Apache-2.0 */
/* Writes structs by the rows that describe them. */
#include "analysis/view/json/fields.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t number_at(const void *at, size_t size)
{
	switch (size) {
	case 1: return *(const uint8_t *)at;
	case 2: return *(const uint16_t *)at;
	case 4: return *(const uint32_t *)at;
	default: return *(const uint64_t *)at;
	}
}

static struct json_object *json_hex(uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "0x%" PRIx64, number);
	return json_object_new_string(text);
}

static struct json_object *json_word(const char *text)
{
	return text && *text ? json_text(text) : NULL;
}

static struct json_object *json_name(const struct words *words, uint64_t number)
{
	return number < words->count ? json_word(words->items[number]) : NULL;
}

static struct json_object *interval(struct json_object *low, struct json_object *high)
{
	struct json_object *array = json_object_new_array();

	json_object_array_add(array, low);
	json_object_array_add(array, high);
	return array;
}

static struct json_object *json_layer(const struct fact_layer *layer)
{
	return layer->bytes == CUF_UNKNOWN ? NULL : json_text(layer->words);
}

static struct json_object *json_device_ordinal(const struct facts *facts, uint32_t device)
{
	if (device >= facts->device_count)
		return NULL;
	return json_object_new_uint64(facts->devices[device].ordinal);
}

static struct json_object *json_pid(const struct facts *facts, uint32_t process)
{
	if (process >= facts->process_count)
		return NULL;
	return json_object_new_uint64(facts->processes[process].pid);
}

static const char *text_at(const struct field *field, const void *at)
{
	return field->is_array ? at : *(const char *const *)at;
}

static struct json_object *number_of(const struct fields *fields, const struct field *field,
				     uint64_t number)
{
	switch (field->type) {
	case FIELD_POSITIVE: return number ? json_number(number) : NULL;
	case FIELD_HEX: return json_hex(number);
	case FIELD_NAME: return json_name(field->words, number);
	case FIELD_PROCESS: return json_pid(fields->facts, (uint32_t)number);
	case FIELD_DEVICE: return json_device_ordinal(fields->facts, (uint32_t)number);
	default: return json_number(number);
	}
}

static struct json_object *value_of(const struct fields *fields, const struct field *field,
				    const void *at)
{
	const void *high = (const char *)at + field->size; /* of an interval */

	switch (field->type) {
	case FIELD_FLAG: return json_object_new_boolean(*(const bool *)at);
	case FIELD_REAL: return json_double(*(const double *)at);
	case FIELD_SIGNED: return json_object_new_int64(*(const int64_t *)at);
	case FIELD_TEXT: return json_text(text_at(field, at));
	case FIELD_WORD: return json_word(text_at(field, at));
	case FIELD_LAYER: return json_layer(at);
	case FIELD_NUMBERS: return interval(json_number(*(const uint64_t *)at),
					    json_number(*(const uint64_t *)high));
	case FIELD_REALS: return interval(json_double(*(const double *)at),
					  json_double(*(const double *)high));
	default: return number_of(fields, field, number_at(at, field->size));
	}
}

bool fields_wants(const struct fields *fields, const struct field *field, size_t i, size_t count)
{
	if (field->flags & LONG)
		return json_stream_wants(fields->stream, i, count);
	return i < count && !fields->stream->stopped;
}

static size_t write_texts(struct fields *fields, const struct field *field, const void *object)
{
	const char *const *texts = *(const char *const *const *)((const char *)object + field->at);
	size_t count = *(const size_t *)((const char *)object + field->count_at);

	for (size_t i = 0; fields_wants(fields, field, i, count); i++)
		json_stream_value(fields->stream, NULL, json_text(texts[i]));
	return count;
}

static size_t write_rows(struct fields *fields, const struct field *field, const void *object)
{
	const char *at = (const char *)object + field->at;
	const char *rows = field->is_array ? at : *(const char *const *)at;
	size_t count = *(const size_t *)((const char *)object + field->count_at);

	for (size_t i = 0; fields_wants(fields, field, i, count); i++)
		fields_row(fields, NULL, field->shape, rows + i * field->shape->bytes);
	return count;
}

static void write_list(struct fields *fields, const struct field *field, const void *object)
{
	const void *outer = fields->outer;
	char left_out[64];
	size_t count;

	fields->outer = object;
	json_stream_array(fields->stream, field->key);
	if (field->rows)
		count = field->rows(fields, field, object);
	else if (field->type == FIELD_TEXTS)
		count = write_texts(fields, field, object);
	else
		count = write_rows(fields, field, object);
	json_stream_close(fields->stream);
	fields->outer = outer;
	if ((field->flags & COUNTED) != COUNTED)
		return;
	snprintf(left_out, sizeof left_out, "%s_left_out", field->key);
	json_stream_left_out(fields->stream, left_out, count);
}

static void write_map(struct fields *fields, const struct field *field, const void *object)
{
	json_stream_object(fields->stream, field->key);
	field->rows(fields, field, object);
	json_stream_close(fields->stream);
}

/*
 * Innermost frame first. A stack that was not recorded is an empty array, not null. Inlined
 * functions have frames of their own, with the address of their caller.
 */
static void write_stack(struct fields *fields, const char *key, const struct fact_stack *stack)
{
	const struct frame *frames;
	size_t count = frames_of(fields->frames, stack, &frames);

	json_stream_array(fields->stream, key);
	for (size_t i = 0; i < count; i++)
		fields_row(fields, NULL, &frame_shape, &frames[i]);
	json_stream_close(fields->stream);
}

static void write_object(struct fields *fields, const struct field *field, const void *object,
			 const void *inner)
{
	const void *outer = fields->outer;

	fields->outer = object;
	if (inner && field->is_pointer)
		inner = *(const void *const *)inner;
	fields_row(fields, field->key, field->shape, inner);
	fields->outer = outer;
}

static void write_field(struct fields *fields, const struct field *field, const void *object)
{
	const void *base = field->base ? field->base(fields, object) : object;
	const void *at = base ? (const char *)base + field->at : NULL;

	if (field->is_there && !field->is_there(fields, object))
		return;
	if (field->value)
		json_stream_value(fields->stream, field->key, field->value(fields, object));
	else if (field->type == FIELD_LIST || field->type == FIELD_TEXTS)
		write_list(fields, field, base);
	else if (field->type == FIELD_MAP)
		write_map(fields, field, object);
	else if (field->type == FIELD_OBJECT)
		write_object(fields, field, object, at);
	else if (field->type == FIELD_STACK && at)
		write_stack(fields, field->key, at);
	else
		json_stream_value(fields->stream, field->key,
				  at ? value_of(fields, field, at) : NULL);
}

/* The members of an object, into the one that is open. */
static void write_members(struct fields *fields, const struct shape *shape, const void *object)
{
	for (size_t i = 0; i < shape->count; i++)
		write_field(fields, &shape->fields[i], object);
}

void fields_row(struct fields *fields, const char *key, const struct shape *shape,
		const void *object)
{
	if (!object) {
		json_stream_value(fields->stream, key, NULL);
		return;
	}
	json_stream_object(fields->stream, key);
	write_members(fields, shape, object);
	json_stream_close(fields->stream);
}

bool fields_document(struct fields *fields, const struct shape *shape, const void *object)
{
	char schema[64];

	snprintf(schema, sizeof schema, "cuflight.%s/1", shape->name);
	json_stream_object(fields->stream, NULL);
	json_stream_value(fields->stream, "schema", json_text(schema));
	write_members(fields, shape, object);
	json_stream_close(fields->stream);
	return json_stream_end(fields->stream);
}

void fields_print(FILE *out, struct fields *fields, const struct shape *shape, const void *object)
{
	fields_print_as(out, JSON_C_TO_STRING_PRETTY, fields, shape, object);
}

void fields_print_as(FILE *out, int style, struct fields *fields, const struct shape *shape,
		     const void *object)
{
	struct json_stream stream;

	json_stream_begin(&stream, out, UINT64_MAX);
	stream.style = style;
	fields->stream = &stream;
	fields_document(fields, shape, object);
}
