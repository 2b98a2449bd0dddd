/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk is: the page of the dictionary, if texts repeat; the page of the values. A page is a
 * header in Thrift, then its body, compressed as a whole: which rows are null, then the values.
 */
#include "analysis/view/tables/parquet_column.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "analysis/base/xalloc.h"

/* Numbers of parquet.thrift. */
enum { PAGE_DATA = 0, PAGE_DICTIONARY = 2 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_RLE_DICTIONARY = 8 };
enum { CODEC_ZSTD = 6 };
enum { ZSTD_LEVEL = 3 };

/* A text that is longer is no useful bound for a reader that skips row groups. */
enum { BOUND_BYTES_MAX = 256 };

enum parquet_type parquet_type_of(enum column_type type)
{
	switch (type) {
	case COLUMN_TEXT: return PARQUET_BYTE_ARRAY;
	case COLUMN_REAL: return PARQUET_DOUBLE;
	case COLUMN_BOOLEAN: return PARQUET_BOOLEAN;
	default: return PARQUET_INT64;
	}
}

void parquet_column_init(struct parquet_column *column, const struct field *of)
{
	*column = (struct parquet_column){ .column = of, .type = column_type(of) };
	hash_index_init(&column->index, 0);
}

void parquet_column_fini(struct parquet_column *column)
{
	bytes_fini(&column->known);
	bytes_fini(&column->values);
	bytes_fini(&column->texts);
	bytes_fini(&column->starts);
	hash_index_fini(&column->index);
}

/* Empty for the next row group; buffers keep their room. */
static void clear(struct parquet_column *column)
{
	column->known.count = column->values.count = 0;
	column->texts.count = column->starts.count = 0;
	column->plain_bytes = column->nulls = 0;
	column->any = false;
	if (column->type == COLUMN_TEXT) {
		hash_index_fini(&column->index);
		hash_index_init(&column->index, 0);
	}
}

size_t parquet_column_bytes(const struct parquet_column *column)
{
	return column->known.count + column->values.count + column->texts.count +
	       column->starts.count;
}

/* ---- values ---- */

struct text { const uint8_t *at; size_t bytes; };

static struct text text_at(const struct parquet_column *column, size_t number)
{
	uint64_t start;
	uint32_t bytes;

	memcpy(&start, column->starts.at + number * sizeof start, sizeof start);
	memcpy(&bytes, column->texts.at + start, sizeof bytes);
	return (struct text){ column->texts.at + start + sizeof bytes, bytes };
}

/* As Parquet orders texts: by unsigned bytes. */
static int compare_texts(const struct parquet_column *column, size_t left, size_t right)
{
	struct text a = text_at(column, left), b = text_at(column, right);
	int order = memcmp(a.at, b.at, a.bytes < b.bytes ? a.bytes : b.bytes);

	if (order)
		return order;
	return (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

/* Only a text that is new can be a new bound. */
static uint32_t add_new_text(struct parquet_column *column, const char *text)
{
	size_t bytes = strlen(text), number = column->starts.count / sizeof(uint64_t);

	bytes_add_number(&column->starts, column->texts.count, sizeof(uint64_t));
	bytes_add_number(&column->texts, bytes, 4);
	bytes_add(&column->texts, text, bytes);
	if (!number || compare_texts(column, number, (size_t)column->least) < 0)
		column->least = (int64_t)number;
	if (!number || compare_texts(column, number, (size_t)column->most) > 0)
		column->most = (int64_t)number;
	return (uint32_t)number;
}

static void add_text(struct parquet_column *column, const char *text)
{
	uint32_t *number = hash_index_place(&column->index, hash_index_text(&column->index, text));

	if (!*number)
		*number = add_new_text(column, text) + 1;
	bytes_add_number(&column->values, *number - 1, sizeof(uint32_t));
	column->plain_bytes += 4 + strlen(text);
}

static void add_real(struct parquet_column *column, double real)
{
	uint64_t bits;

	if (!column->any || real < column->least_real)
		column->least_real = real;
	if (!column->any || real > column->most_real)
		column->most_real = real;
	memcpy(&bits, &real, sizeof bits);
	bytes_add_number(&column->values, bits, sizeof bits);
}

static void add_integer(struct parquet_column *column, int64_t integer)
{
	if (column->type == COLUMN_TIME)
		integer /= 1000; /* to the microseconds that every reader has a type for */
	if (!column->any || integer < column->least)
		column->least = integer;
	if (!column->any || integer > column->most)
		column->most = integer;
	if (column->type == COLUMN_BOOLEAN)
		bytes_add_byte(&column->values, integer != 0);
	else
		bytes_add_number(&column->values, (uint64_t)integer, sizeof integer);
}

void parquet_column_add(struct parquet_column *column, const struct cell *cell)
{
	bytes_add_byte(&column->known, cell->known);
	column->nulls += !cell->known;
	if (!cell->known)
		return;
	switch (column->type) {
	case COLUMN_TEXT: add_text(column, cell->text); break;
	case COLUMN_REAL: add_real(column, cell->real); break;
	default: add_integer(column, cell->integer); break;
	}
	column->any = true;
}

/* ---- pages ---- */

void parquet_out_add(struct parquet_out *out, const void *data, size_t count)
{
	fwrite(data, 1, count, out->file);
	out->offset += count;
}

static void describe_data_page(struct thrift *header, size_t rows, int encoding)
{
	thrift_struct(header, 5);
	thrift_i32(header, 1, (int32_t)rows);
	thrift_i32(header, 2, encoding);
	thrift_i32(header, 3, ENCODING_RLE);
	thrift_i32(header, 4, ENCODING_RLE);
	thrift_end(header);
}

static void describe_dictionary_page(struct thrift *header, size_t texts)
{
	thrift_struct(header, 7);
	thrift_i32(header, 1, (int32_t)texts);
	thrift_i32(header, 2, ENCODING_PLAIN);
	thrift_end(header);
}

/* Compresses out->page and writes it behind its header. */
static void write_page(struct parquet_out *out, int type, size_t count, int encoding,
		       struct parquet_sizes *sizes)
{
	struct thrift header = { .depth = 0 };
	size_t room = ZSTD_compressBound(out->page.count), packed;

	if (out->packed.room < room) {
		out->packed.at = xalloc_resize(out->packed.at, room, 1);
		out->packed.room = room;
	}
	packed = ZSTD_compress(out->packed.at, room, out->page.at, out->page.count, ZSTD_LEVEL);
	thrift_i32(&header, 1, type);
	thrift_i32(&header, 2, (int32_t)out->page.count);
	thrift_i32(&header, 3, (int32_t)packed);
	if (type == PAGE_DATA)
		describe_data_page(&header, count, encoding);
	else
		describe_dictionary_page(&header, count);
	thrift_end(&header);
	parquet_out_add(out, header.bytes.at, header.bytes.count);
	parquet_out_add(out, out->packed.at, packed);
	sizes->plain_bytes += header.bytes.count + out->page.count;
	sizes->written_bytes += header.bytes.count + packed;
	thrift_fini(&header);
	out->page.count = 0;
}

static uint32_t *widen(const struct bytes *bytes, size_t each)
{
	size_t count = bytes->count / each;
	uint32_t *numbers = xalloc_zeroed(count + 1, sizeof *numbers);

	for (size_t i = 0; i < count; i++)
		memcpy(&numbers[i], bytes->at + i * each, each);
	return numbers;
}

/* Which rows are null: a row's level is 1 where it has a value. */
static void add_levels(const struct parquet_column *column, struct bytes *page)
{
	uint32_t *levels = widen(&column->known, 1);
	size_t at = page->count, bytes;

	bytes_add_number(page, 0, 4);
	bytes_add_hybrid(page, levels, column->known.count, 1);
	bytes = page->count - at - 4;
	for (size_t i = 0; i < 4; i++)
		page->at[at + i] = (uint8_t)(bytes >> 8 * i);
	free(levels);
}

static void add_booleans(const struct parquet_column *column, struct bytes *page)
{
	for (size_t i = 0; i < column->values.count; i += 8) {
		unsigned bits = 0;

		for (size_t j = i; j < i + 8 && j < column->values.count; j++)
			bits |= (unsigned)column->values.at[j] << (j - i);
		bytes_add_byte(page, (uint8_t)bits);
	}
}

/* Texts one by one, or as their places in the dictionary. */
static void add_texts(const struct parquet_column *column, bool dictionary, struct bytes *page)
{
	uint32_t *numbers = widen(&column->values, sizeof(uint32_t));
	size_t count = column->values.count / sizeof(uint32_t);
	unsigned width = hybrid_width((uint32_t)(column->starts.count / sizeof(uint64_t)) - 1);

	if (dictionary) {
		bytes_add_byte(page, (uint8_t)width);
		bytes_add_hybrid(page, numbers, count, width);
	} else {
		for (size_t i = 0; i < count; i++) {
			struct text text = text_at(column, numbers[i]);

			bytes_add_number(page, text.bytes, 4);
			bytes_add(page, text.at, text.bytes);
		}
	}
	free(numbers);
}

/* A dictionary pays where texts repeat. */
static bool wants_dictionary(const struct parquet_column *column)
{
	return column->type == COLUMN_TEXT && column->any &&
	       column->texts.count < column->plain_bytes / 2 + 64;
}

static void add_values(const struct parquet_column *column, bool dictionary, struct bytes *page)
{
	add_levels(column, page);
	if (!column->any)
		return;
	switch (column->type) {
	case COLUMN_TEXT: add_texts(column, dictionary, page); break;
	case COLUMN_BOOLEAN: add_booleans(column, page); break;
	default: bytes_add(page, column->values.at, column->values.count); break;
	}
}

/* ---- metadata ---- */

static void describe_bound(struct thrift *meta, int field, const struct parquet_column *column,
			   bool most)
{
	int64_t number = most ? column->most : column->least;
	double real = most ? column->most_real : column->least_real;
	uint8_t flag = number != 0;
	struct text text;

	switch (column->type) {
	case COLUMN_TEXT:
		text = text_at(column, (size_t)number);
		if (text.bytes <= BOUND_BYTES_MAX)
			thrift_binary(meta, field, text.at, text.bytes);
		break;
	case COLUMN_REAL:
		if (real == 0) /* both zeros lie within the bounds */
			real = most ? 0.0 : -0.0;
		thrift_binary(meta, field, &real, sizeof real);
		break;
	case COLUMN_BOOLEAN: thrift_binary(meta, field, &flag, sizeof flag); break;
	default: thrift_binary(meta, field, &number, sizeof number); break;
	}
}

static void describe_statistics(struct thrift *meta, const struct parquet_column *column)
{
	thrift_struct(meta, 12);
	thrift_i64(meta, 3, (int64_t)column->nulls);
	if (column->any) {
		describe_bound(meta, 5, column, true);
		describe_bound(meta, 6, column, false);
	}
	thrift_end(meta);
}

struct chunk { uint64_t dictionary_offset, data_offset; bool dictionary; };

static void describe(struct thrift *meta, const struct parquet_column *column,
		     const struct chunk *chunk, const struct parquet_sizes *sizes)
{
	thrift_element(meta);
	thrift_i64(meta, 2, 0);
	thrift_struct(meta, 3);
	thrift_i32(meta, 1, parquet_type_of(column->type));
	thrift_list(meta, 2, THRIFT_I32, chunk->dictionary ? 3 : 2);
	thrift_element_i32(meta, ENCODING_PLAIN);
	thrift_element_i32(meta, ENCODING_RLE);
	if (chunk->dictionary)
		thrift_element_i32(meta, ENCODING_RLE_DICTIONARY);
	thrift_list(meta, 3, THRIFT_BINARY, 1);
	thrift_element_text(meta, column->column->key);
	thrift_i32(meta, 4, CODEC_ZSTD);
	thrift_i64(meta, 5, (int64_t)column->known.count);
	thrift_i64(meta, 6, (int64_t)sizes->plain_bytes);
	thrift_i64(meta, 7, (int64_t)sizes->written_bytes);
	thrift_i64(meta, 9, (int64_t)chunk->data_offset);
	if (chunk->dictionary)
		thrift_i64(meta, 11, (int64_t)chunk->dictionary_offset);
	describe_statistics(meta, column);
	thrift_end(meta);
	thrift_end(meta);
}

struct parquet_sizes parquet_column_write(struct parquet_column *column, struct parquet_out *out,
					  struct thrift *meta)
{
	struct chunk chunk = { .dictionary = wants_dictionary(column) };
	struct parquet_sizes sizes = { 0 };
	size_t rows = column->known.count;

	chunk.dictionary_offset = out->offset;
	if (chunk.dictionary) {
		bytes_add(&out->page, column->texts.at, column->texts.count);
		write_page(out, PAGE_DICTIONARY, column->starts.count / sizeof(uint64_t),
			   ENCODING_PLAIN, &sizes);
	}
	chunk.data_offset = out->offset;
	add_values(column, chunk.dictionary, &out->page);
	write_page(out, PAGE_DATA, rows,
		   chunk.dictionary ? ENCODING_RLE_DICTIONARY : ENCODING_PLAIN, &sizes);
	describe(meta, column, &chunk, &sizes);
	clear(column);
	return sizes;
}
