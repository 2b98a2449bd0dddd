/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Line numbers: the three encodings of "this instruction is on that line". Pure but for reading the table, which is done
 * through the kernel and ends after LOOKED_AT bytes: an instruction further on has no known line.
 */
#include "interpose/python/python_parts.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/laws.h"

enum { LOOKED_AT = 32768, WINDOW = 256 };

/* The table, read piece by piece. */
struct table {
	uintptr_t at;
	uint64_t bytes, next;     /* next: the byte to be read */
	uint64_t window;          /* what the copy begins with */
	unsigned held;
	bool failed;
	uint8_t copy[WINDOW];
};

static bool table_open(const struct cuf_python *python, uintptr_t code, struct table *t)
{
	const struct cuf_python_layout *l = &python->layout;
	uint64_t object, type;
	*t = (struct table){ 0 };
	if (!cuf_readable_copy(&object, code + l->code_lines, sizeof object) || !cuf_readable_copy(&type, object + l->type, sizeof type) ||
	    type != python->bytes_type || !cuf_readable_copy(&t->bytes, object + l->bytes_length, sizeof t->bytes))
		return false;
	t->at = object + l->bytes_data;
	return true;
}

static bool at_end(const struct table *t) { return t->failed || t->next >= t->bytes || t->next >= LOOKED_AT; }

/* The next byte; 0 past the end. */
static uint8_t take(struct table *t)
{
	if (at_end(t))
		return 0;
	if (t->next - t->window >= t->held) {
		t->window = t->next;
		t->held = (unsigned)(t->bytes - t->next < WINDOW ? t->bytes - t->next : WINDOW);
		if (!cuf_readable_copy(t->copy, t->at + t->next, t->held)) {
			t->failed = true;
			return 0;
		}
	}
	return t->copy[t->next++ - t->window];
}

/* 3.9: pairs (bytes of code, lines), both added up. */
static int64_t line_by_lnotab(struct table *t, int64_t line, int64_t offset)
{
	int64_t code = 0;
	while (!at_end(t)) {
		code += take(t);
		if (code > offset)
			break;
		line += (int8_t)take(t);
	}
	return t->failed || t->next >= LOOKED_AT ? 0 : line;
}

/* 3.10: pairs (bytes of code, lines to its line; -128 is no line). */
static int64_t line_by_linetable(struct table *t, int64_t line, int64_t offset)
{
	int64_t end = 0;
	while (!at_end(t)) {
		int8_t delta;
		end += take(t);
		delta = (int8_t)take(t);
		if (delta != -128)
			line += delta;
		if (offset < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* Six bits a byte, low ones first; the sign is the lowest. */
static int64_t take_signed(struct table *t)
{
	uint64_t value = 0;
	uint8_t byte;
	unsigned shift = 0;
	do {
		byte = take(t);
		value |= (uint64_t)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64 && shift < 60);
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* 3.11: entries begin with a byte whose top bit is set: 1, form in 4 bits, units of code - 1 in 3; what follows it are
 * columns, but for the forms that carry a difference of lines. */
static int64_t line_by_locations(struct table *t, int64_t line, int64_t offset)
{
	enum { ONE_LINE = 10, ONE_LINE_LAST = 12, NO_COLUMNS = 13, LONG = 14, NONE = 15, UNIT = 2 };
	int64_t end = 0;
	uint8_t byte = take(t);
	while (!t->failed && byte & 128) {
		unsigned form = byte >> 3 & 15;
		end += ((byte & 7) + 1) * UNIT;
		if (form >= ONE_LINE && form <= ONE_LINE_LAST)
			line += form - ONE_LINE;
		else if (form == NO_COLUMNS || form == LONG)
			line += take_signed(t);
		if (offset < end)
			return form == NONE || t->failed ? 0 : line;
		do {
			if (at_end(t))
				return 0;
			byte = take(t);
		} while (!(byte & 128));
	}
	return 0;
}

uint32_t cuf_python_line(const struct cuf_python *python, uintptr_t code, int64_t offset)
{
	static int64_t (*const decode[])(struct table *, int64_t, int64_t) = {
		[CUF_PYTHON_LNOTAB] = line_by_lnotab, [CUF_PYTHON_LINETABLE] = line_by_linetable, [CUF_PYTHON_LOCATIONS] = line_by_locations };
	uint32_t first;
	struct table t;
	int64_t line;
	if (!cuf_readable_copy(&first, code + python->layout.code_first_line, sizeof first))
		return 0;
	if (offset < 0) /* not begun */
		return first;
	if (!table_open(python, code, &t))
		return 0;
	line = decode[python->layout.lines](&t, (int32_t)first, offset);
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}
