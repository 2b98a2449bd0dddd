/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line numbers: the three encodings of "this instruction is on that line". Pure except for
 * reading the table. That goes through the kernel and ends after TABLE_BYTES_MAX, so an
 * instruction further on has no known line.
 */
#include "interpose/platform/readable.h"
#include "interpose/platform/side_stack.h"
#include "interpose/python/python_parts.h"
#include "interpose/platform/laws.h"

enum { TABLE_BYTES_MAX = 32768, WINDOW = 256 };

/* The table, read piece by piece. */
struct table {
	uintptr_t at;
	/* next: the byte to be read */
	uint64_t bytes, next;
	/* the copy holds `held` bytes from this one on */
	uint64_t window;
	unsigned held;
	bool failed;
	uint8_t copy[WINDOW];
};

static bool table_open(const struct cuf_python *python, uintptr_t code, struct table *table)
{
	const struct cuf_python_layout *layout = &python->layout;
	uint64_t object, type;

	*table = (struct table){ 0 };
	if (!cuf_readable_copy(&object, code + layout->code_lines, sizeof object) ||
	    !cuf_readable_copy(&type, object + layout->type, sizeof type) ||
	    type != python->bytes_type ||
	    !cuf_readable_copy(&table->bytes, object + layout->bytes_length, sizeof table->bytes))
		return false;
	table->at = object + layout->bytes_data;
	return true;
}

static bool at_end(const struct table *table)
{
	return table->failed || table->next >= table->bytes || table->next >= TABLE_BYTES_MAX;
}

/* The next byte; 0 past the end. */
static uint8_t read_byte(struct table *table)
{
	if (at_end(table))
		return 0;
	if (table->next - table->window >= table->held) {
		uint64_t left = table->bytes - table->next;

		table->window = table->next;
		table->held = WINDOW;
		if (left < WINDOW)
			table->held = (unsigned)left;
		if (!cuf_readable_copy(table->copy, table->at + table->next, table->held)) {
			table->failed = true;
			return 0;
		}
	}
	return table->copy[table->next++ - table->window];
}

/* 3.9: pairs (bytes of code, lines), both summed up. */
static int64_t line_by_lnotab(struct table *table, int64_t line, int64_t offset)
{
	int64_t code = 0;

	while (!at_end(table)) {
		code += read_byte(table);
		if (code > offset)
			break;
		line += (int8_t)read_byte(table);
	}
	if (table->failed || table->next >= TABLE_BYTES_MAX)
		return 0;
	return line;
}

/* 3.10: pairs (bytes of code, lines to its line; -128 is no line). */
static int64_t line_by_linetable(struct table *table, int64_t line, int64_t offset)
{
	enum { NO_LINE = -128 };
	int64_t end = 0;

	while (!at_end(table)) {
		int8_t delta;

		end += read_byte(table);
		delta = (int8_t)read_byte(table);
		if (delta == NO_LINE) {
			if (offset < end)
				return 0;
			continue;
		}
		line += delta;
		if (offset < end)
			return line;
	}
	return 0;
}

/* Six bits a byte, low ones first; the lowest bit is the sign. */
static int64_t read_signed(struct table *table)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned shift = 0;

	do {
		byte = read_byte(table);
		value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64 && shift < 60);
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/*
 * 3.11: an entry begins with a byte whose top bit is set: 1, form in 4 bits, units of code - 1 in
 * 3. What follows it are columns, except for the forms that have a difference of lines.
 */
static int64_t line_by_locations(struct table *table, int64_t line, int64_t offset)
{
	enum { ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15, UNIT = 2 };
	int64_t end = 0;
	uint8_t byte = read_byte(table);

	while (!table->failed && byte & 128) {
		unsigned form = byte >> 3 & 15;

		end += ((byte & 7) + 1) * UNIT;
		if (form >= ONE_LINE && form <= ONE_LINE_LAST)
			line += form - ONE_LINE;
		else if (form == NO_COLUMNS || form == LONG)
			line += read_signed(table);
		if (offset < end) {
			if (form == NONE || table->failed)
				return 0;
			return line;
		}
		do {
			if (at_end(table))
				return 0;
			byte = read_byte(table);
		} while (!(byte & 128));
	}
	return 0;
}

static uint32_t find_line(const struct cuf_python *python, uintptr_t code, int64_t offset)
{
	static int64_t (*const decode[])(struct table *, int64_t, int64_t) = {
		[CUF_PYTHON_LNOTAB] = line_by_lnotab,
		[CUF_PYTHON_LINETABLE] = line_by_linetable,
		[CUF_PYTHON_LOCATIONS] = line_by_locations,
	};
	uint32_t first;
	struct table table;
	int64_t line;

	if (!cuf_readable_copy(&first, code + python->layout.code_first_line, sizeof first))
		return 0;
	if (offset < 0) /* the function has not begun */
		return first;
	if (!table_open(python, code, &table))
		return 0;
	line = decode[python->layout.lines](&table, (int32_t)first, offset);
	if (line <= 0 || line > INT32_MAX)
		return 0;
	return (uint32_t)line;
}

struct line_question {
	const struct cuf_python *python;
	uintptr_t code;
	int64_t offset;
	uint32_t line;
};

static void answer_line(void *argument)
{
	struct line_question *question = argument;
	question->line = find_line(question->python, question->code, question->offset);
}

/* The table is read through a buffer. */
uint32_t cuf_python_line(const struct cuf_python *python, uintptr_t code, int64_t offset)
{
	struct line_question question = { python, code, offset, 0 };
	cuf_on_side_stack(answer_line, &question);
	return question.line;
}
