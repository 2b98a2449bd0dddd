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

static struct json_object *interval(struct json_object *low, struct json_object *high)
{
	struct json_object *array = json_object_new_array();

	json_object_array_add(array, low);
	json_object_array_add(array, high);
	return array;
}

static struct field_value no_value(void) { return (struct field_value){ .sort = VALUE_UNKNOWN }; }

static struct field_value number_value(uint64_t number)
{
	if (number == CUF_UNKNOWN)
		return no_value();
	return (struct field_value){ .sort = VALUE_NUMBER, .number = number };
}

static struct field_value text_value(const char *text)
{
	if (!text)
		return no_value();
	return (struct field_value){ .sort = VALUE_TEXT, .text = text };
}

static struct field_value word_value(const char *text)
{
	return text_value(text && *text ? text : NULL);
}

static struct field_value layer_value(const struct fact_layer *layer)
{
	return text_value(layer->bytes == CUF_UNKNOWN ? NULL : layer->words);
}

static struct field_value stack_value(const struct fact_stack *stack)
{
	if (stack->process == FACT_NONE || !stack->id)
		return no_value();
	return number_value(stack->id);
}

static struct field_value device_value(const struct facts *facts, uint64_t device)
{
	return device < facts->device_count ? number_value(facts->devices[device].ordinal) :
					      no_value();
}

static struct field_value process_value(const struct facts *facts, uint64_t process)
{
	return process < facts->process_count ? number_value(facts->processes[process].pid) :
						no_value();
}

static const char *text_at(const struct field *field, const void *at)
{
	return field->is_array ? at : *(const char *const *)at;
}

static struct field_value number_of(const struct fields *fields, const struct field *field,
				    uint64_t number)
{
	const struct words *words = field->words;

	switch (field->type) {
	case FIELD_POSITIVE: return number ? number_value(number) : no_value();
	case FIELD_HEX: return (struct field_value){ VALUE_NUMBER, .number = number };
	case FIELD_ANSWER:
		return number == FACT_CANNOT_TELL ? no_value() :
		       (struct field_value){ VALUE_FLAG, .flag = number == FACT_YES };
	case FIELD_INDEX: return number == FACT_NONE ? no_value() : number_value(number);
	case FIELD_NAME: return word_value(number < words->count ? words->items[number] : NULL);
	case FIELD_PROCESS: return process_value(fields->facts, number);
	case FIELD_DEVICE: return device_value(fields->facts, number);
	default: return number_value(number);
	}
}

static struct field_value value_at(const struct fields *fields, const struct field *field,
				   const void *at)
{
	switch (field->type) {
	case FIELD_FLAG: return (struct field_value){ VALUE_FLAG, .flag = *(const bool *)at };
	case FIELD_REAL: return (struct field_value){ VALUE_REAL, .real = *(const double *)at };
	case FIELD_SIGNED:
		return (struct field_value){ VALUE_SIGNED, .integer = *(const int64_t *)at };
	case FIELD_TEXT: return text_value(text_at(field, at));
	case FIELD_WORD: return word_value(text_at(field, at));
	case FIELD_LAYER: return layer_value(at);
	case FIELD_STACK: return stack_value(at);
	default: return number_of(fields, field, number_at(at, field->size));
	}
}

/* The struct that the member is in; NULL: there is none. */
static const void *base_of(const struct fields *fields, const struct field *field,
			   const void *object)
{
	const void *base = field->base ? field->base(fields, object) : object;

	if (base && field->via)
		base = *(const void *const *)((const char *)base + field->via - 1);
	return base;
}

struct field_value fields_value(const struct fields *fields, const struct field *field,
				const void *object)
{
	const char *base = base_of(fields, field, object);

	return base ? value_at(fields, field, base + field->at) : no_value();
}

int64_t fields_since(uint64_t origin_ns, uint64_t time_ns)
{
	int64_t since = (int64_t)(time_ns - origin_ns);

	if (time_ns == CUF_UNKNOWN)
		return -1;
	return since == -1 ? 0 : since;
}

static struct json_object *json_of_number(const struct fields *fields, const struct field *field,
					  uint64_t number)
{
	switch (field->type) {
	case FIELD_HEX: return json_hex(number);
	case FIELD_TIME: return json_object_new_int64(fields_since(fields->origin_ns, number));
	default: return json_object_new_uint64(number);
	}
}

static struct json_object *json_of(const struct fields *fields, const struct field *field,
				   const void *at)
{
	const void *high = (const char *)at + field->size; /* of an interval */
	struct field_value value;

	if (field->type == FIELD_NUMBERS)
		return interval(json_number(*(const uint64_t *)at),
				json_number(*(const uint64_t *)high));
	if (field->type == FIELD_REALS)
		return interval(json_double(*(const double *)at),
				json_double(*(const double *)high));
	value = value_at(fields, field, at);
	switch (value.sort) {
	case VALUE_NUMBER: return json_of_number(fields, field, value.number);
	case VALUE_SIGNED: return json_object_new_int64(value.integer);
	case VALUE_REAL: return json_double(value.real);
	case VALUE_FLAG: return json_object_new_boolean(value.flag);
	case VALUE_TEXT: return json_text(value.text);
	default: return NULL;
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

/* What is opened next, with all that is inside it. */
static void begin_one_line(struct json_stream *stream)
{
	if (!stream->lines && stream->style & JSON_C_TO_STRING_PRETTY)
		stream->lines = stream->depth;
}

/* Of what was opened last. */
static void begin_lines(struct json_stream *stream, const struct field *field)
{
	if (!stream->lines && field->flags & A_LINE_EACH)
		stream->lines = stream->depth;
}

static void write_list(struct fields *fields, const struct field *field, const void *object)
{
	const void *outer = fields->outer;
	char left_out[64];
	size_t count;

	fields->outer = object;
	json_stream_array(fields->stream, field->key);
	begin_lines(fields->stream, field);
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

static void write_words(struct fields *fields, const struct field *field)
{
	json_stream_array(fields->stream, field->key);
	for (size_t i = 0; i < field->words->count; i++)
		json_stream_value(fields->stream, NULL, json_text(field->words->items[i]));
	json_stream_close(fields->stream);
}

static void write_map(struct fields *fields, const struct field *field, const void *object)
{
	json_stream_object(fields->stream, field->key);
	begin_lines(fields->stream, field);
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

/* Columns, and what has a writer of its own. */
static void write_by_function(struct fields *fields, const struct field *field, const void *object)
{
	if (field->type == FIELD_ANY)
		json_stream_key(fields->stream, field->key);
	field->rows(fields, field, object);
}

static void write_value(struct fields *fields, const struct field *field, const void *object)
{
	const void *base = base_of(fields, field, object);
	const void *at = base ? (const char *)base + field->at : NULL;

	if (field->value)
		json_stream_value(fields->stream, field->key, field->value(fields, object));
	else if (field->type == FIELD_OBJECT && field->rows)
		field->rows(fields, field, object);
	else if (field->type == FIELD_LIST || field->type == FIELD_TEXTS)
		write_list(fields, field, base);
	else if (field->type == FIELD_MAP)
		write_map(fields, field, object);
	else if (field->type == FIELD_WORDS)
		write_words(fields, field);
	else if (field->rows)
		write_by_function(fields, field, object);
	else if (field->type == FIELD_OBJECT)
		write_object(fields, field, object, at);
	else if (field->type == FIELD_STACK && at)
		write_stack(fields, field->key, at);
	else
		json_stream_value(fields->stream, field->key,
				  at ? json_of(fields, field, at) : NULL);
}

static void write_field(struct fields *fields, const struct field *field, const void *object)
{
	unsigned lines = fields->stream->lines;

	if (field->is_there && !field->is_there(fields, object))
		return;
	if (field->flags & ONE_LINE)
		begin_one_line(fields->stream);
	write_value(fields, field, object);
	fields->stream->lines = lines;
}

/* The members of an object, into the one that is open. */
static void write_members(struct fields *fields, const struct shape *shape, const void *object)
{
	for (size_t i = 0; i < shape->count; i++)
		write_field(fields, &shape->fields[i], object);
}

/* Its values without keys, in the line of its own key. */
static void write_tuple(struct fields *fields, const char *key, const struct shape *shape,
			const void *object)
{
	struct json_stream *stream = fields->stream;
	unsigned lines = stream->lines;

	begin_one_line(stream);
	json_stream_array(stream, key);
	for (size_t i = 0; i < shape->count; i++)
		json_stream_value(stream, NULL, json_of(fields, &shape->fields[i],
				  (const char *)object + shape->fields[i].at));
	json_stream_close(stream);
	stream->lines = lines;
}

void fields_row(struct fields *fields, const char *key, const struct shape *shape,
		const void *object)
{
	if (!object) {
		json_stream_value(fields->stream, key, NULL);
		return;
	}
	if (shape->is_tuple) {
		write_tuple(fields, key, shape, object);
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
