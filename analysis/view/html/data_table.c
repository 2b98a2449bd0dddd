/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the page: of each field of a row one column, with the numbers of all rows. */
#include "analysis/view/html/data.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"

int64_t data_time(const struct data *data, uint64_t time_ns)
{
	return fields_since(data->timeline->begin_ns, time_ns);
}

struct json_object *data_json_time(const struct data *data, uint64_t time_ns)
{
	return is_known(time_ns) ? json_object_new_int64(data_time(data, time_ns)) : NULL;
}

static int64_t cell_number(struct fields *fields, const struct field *field, const void *row)
{
	struct data *data = fields->state;
	struct field_value value = fields_value(fields, field, row);

	switch (value.sort) {
	case VALUE_NUMBER:
		return field->type == FIELD_TIME ? data_time(data, value.number) :
						   signed_up_to(value.number, COLUMN_NUMBER_MOST);
	case VALUE_SIGNED: return value.integer;
	case VALUE_FLAG: return value.flag;
	case VALUE_TEXT: return strings_add(&data->strings, value.text);
	default: return -1;
	}
}

size_t data_columns(struct fields *fields, const struct field *field, const void *object)
{
	struct data *data = fields->state;
	const struct data_table *table = object;

	for (size_t at = 0; at < field->shape->count; at++) {
		const struct field *of = &field->shape->fields[at];
		struct column column = column_begin(&data->columns);

		for (size_t i = 0; i < table->count; i++)
			column_add(&column, cell_number(fields, of, (const char *)table->rows +
							       i * field->shape->bytes));
		json_stream_value(fields->stream, of->key, column_end(&column));
	}
	return table->count;
}

/* is_pointer: they are times. */
size_t data_series(struct fields *fields, const struct field *field, const void *object)
{
	struct data *data = fields->state;
	const char *at = (const char *)object + field->at;
	const uint64_t *numbers = (const void *)at;
	size_t count = *(const size_t *)((const char *)object + field->count_at);
	struct column column = column_begin(&data->columns);

	if (!field->is_array)
		numbers = *(const uint64_t *const *)at;
	for (size_t i = 0; i < count; i++) {
		if (field->is_pointer)
			column_add(&column, data_time(data, numbers[i]));
		else
			column_add_unsigned(&column, numbers[i]);
	}
	json_stream_value(fields->stream, field->key, column_end(&column));
	return count;
}

const struct data_table *data_table(struct data *data, void *rows, size_t count, size_t left_out)
{
	free(data->made);
	data->made = rows;
	data->table = (struct data_table){ rows, count, left_out };
	return &data->table;
}

const struct data_table *data_table_of(struct data *data, const void *rows, size_t count)
{
	data->table = (struct data_table){ rows, count, 0 };
	return &data->table;
}
