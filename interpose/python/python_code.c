/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code: each distinct (function, file, first line) is written to META once and has a
 * number from then on. Owns the table of those, and the cache from code object to number that all
 * threads share. Code and texts are read through the kernel, because this is the first sight of
 * them, and names are rare.
 */
#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/side_stack.h"
#include "interpose/python/python_parts.h"
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/platform/laws.h"

enum {
	/* functions that can be named; a number is its slot + 1 */
	CODES = 1 << 15,
	PROBE = 64,
	/* code objects whose number is remembered */
	KNOWN = 1 << 13,
	/* of a number in a word of `known`; the other bits are the code's */
	ID_BITS = 24,
	HIDDEN = (1 << ID_BITS) - 1
};

/* hash of the text; 0: free */
static uint64_t codes[CODES];
static uint64_t known[KNOWN];
/* false: the pages were never touched, and stay so in a forked child */
static bool any;

/* The child's recording gets the names again. */
static void forget_codes(void)
{
	if (!any)
		return;
	memset(codes, 0, sizeof codes);
	memset(known, 0, sizeof known);
	any = false;
}
CUF_AT_FORK_CHILD(forget_codes);

void cuf_python_stopped(enum cuf_python_stop why)
{
	struct cuf_header *header = cuf_recording.header;

	if (header)
		__atomic_fetch_add(&header->python_stops[why], 1, __ATOMIC_RELAXED);
}

/* ---- texts ---- */

struct text {
	char *at;
	size_t used, room;
};

static void add_byte(struct text *text, uint32_t byte)
{
	if (text->used < text->room)
		text->at[text->used++] = (char)byte;
}

/*
 * Adds a character in UTF-8. The record consists of lines, so what would end one becomes a blank.
 * Surrogates stand for bytes of file names that are not UTF-8 (0xdc80 + byte - 0x80); they become
 * those bytes again.
 */
static void add_character(struct text *text, uint32_t c)
{
	if (c == '\n' || c == '\r' || !c)
		c = ' ';
	if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
		add_byte(text, c & 0xff);
	} else if (c < 0x800) {
		add_byte(text, 0xc0 | c >> 6);
		add_byte(text, 0x80 | (c & 63));
	} else if (c < 0x10000) {
		add_byte(text, 0xe0 | c >> 12);
		add_byte(text, 0x80 | (c >> 6 & 63));
		add_byte(text, 0x80 | (c & 63));
	} else {
		add_byte(text, 0xf0 | (c >> 18 & 7));
		add_byte(text, 0x80 | (c >> 12 & 63));
		add_byte(text, 0x80 | (c >> 6 & 63));
		add_byte(text, 0x80 | (c & 63));
	}
}

static uint32_t character_at(const uint8_t *bytes, unsigned size)
{
	uint16_t half;
	uint32_t whole;

	if (size == 1)
		return *bytes;
	memcpy(&half, bytes, sizeof half);
	if (size == 2)
		return half;
	memcpy(&whole, bytes, sizeof whole);
	return whole;
}

/* A Python text object: its characters, of this size each. */
struct characters {
	uintptr_t at;
	uint64_t length;
	unsigned size;
};

/* false: no text, or of a kind that names do not have. */
static bool open_text(const struct cuf_python *python, uintptr_t object, struct characters *found)
{
	const struct cuf_python_layout *layout = &python->layout;
	uint64_t type;
	uint32_t state;
	bool is_compact, is_ascii;

	if (!cuf_readable_copy(&type, object + layout->type, sizeof type) ||
	    type != python->text_type ||
	    !cuf_readable_copy(&found->length, object + layout->text_length,
			       sizeof found->length) ||
	    !cuf_readable_copy(&state, object + layout->text_state, sizeof state))
		return false;
	state = cuf_python_text_state(layout, state);
	found->size = state & 7;
	is_compact = state >> 3 & 1;
	is_ascii = state >> 4 & 1;
	found->at = object + (is_ascii ? layout->text_ascii_bytes : layout->text_compact_bytes);
	return is_compact && (found->size == 1 || found->size == 2 || found->size == 4);
}

/* Adds a Python text, cut after bytes_max. false: it cannot be read. */
static bool add_text(const struct cuf_python *python, struct text *text, uintptr_t object,
		     size_t bytes_max)
{
	struct characters found;
	uint8_t window[64];
	size_t end = text->used + bytes_max;

	if (!open_text(python, object, &found))
		return false;
	for (uint64_t i = 0, held; i < found.length; i += held) {
		held = sizeof window / found.size;
		if (held > found.length - i)
			held = found.length - i;
		if (!cuf_readable_copy(window, found.at + i * found.size, held * found.size))
			return false;
		for (uint64_t c = 0; c < held; c++) {
			if (text->used + 4 > end)
				return true;
			add_character(text, character_at(window + c * found.size, found.size));
		}
	}
	return true;
}

static void add_decimal(struct text *text, uint32_t number)
{
	char digits[12];
	unsigned count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		add_byte(text, (unsigned char)digits[--count]);
}

/*
 * "qualified name\nfile\nfirst line\n". hidden: code of the interpreter, whose file is its name.
 * false: it cannot be read.
 */
static bool describe_code(const struct cuf_python *python, uintptr_t code, struct text *text,
			  bool *hidden)
{
	const struct cuf_python_layout *layout = &python->layout;
	uint64_t name, file;
	uint32_t line;

	if (!cuf_readable_copy(&name, code + layout->code_name, sizeof name) ||
	    !cuf_readable_copy(&file, code + layout->code_file, sizeof file) ||
	    !cuf_readable_copy(&line, code + layout->code_first_line, sizeof line))
		return false;
	*hidden = name == file;
	if (layout->code_qualified &&
	    !cuf_readable_copy(&name, code + layout->code_qualified, sizeof name))
		return false;
	if (!add_text(python, text, name, CUF_PYTHON_NAME_BYTES))
		return false;
	add_byte(text, '\n');
	if (!add_text(python, text, file, CUF_PYTHON_FILE_BYTES))
		return false;
	add_byte(text, '\n');
	add_decimal(text, line);
	add_byte(text, '\n');
	return true;
}

/* ---- numbers ---- */

static uint64_t hash_of(const struct text *text)
{
	uint64_t hash = text->used, word;
	size_t i = 0;

	for (; i + sizeof word <= text->used; i += sizeof word) {
		memcpy(&word, text->at + i, sizeof word);
		hash = cuf_python_mix(hash, word);
	}
	word = 0;
	memcpy(&word, text->at + i, text->used - i);
	return cuf_python_mix(hash, word) | 1;
}

/* The number of a described function. Its text is written at first sight. 0: the table is full. */
static uint32_t number_of(const struct text *text)
{
	uint64_t hash = hash_of(text);

	for (unsigned i = 0, at = (unsigned)(hash >> 40); i < PROBE; i++, at++) {
		uint64_t *slot = &codes[at % CODES];
		uint64_t seen = __atomic_load_n(slot, __ATOMIC_RELAXED);

		if (!seen && __atomic_compare_exchange_n(slot, &seen, hash, 0, __ATOMIC_RELAXED,
							 __ATOMIC_RELAXED)) {
			cuf_meta_text(CUF_META_CODE, at % CODES + 1, text->at, text->used);
			return at % CODES + 1;
		}
		if (seen == hash)
			return at % CODES + 1;
	}
	cuf_count_dropped(CUF_LOST_CODES);
	cuf_python_stopped(CUF_PYTHON_STOP_NAMES);
	return 0;
}

/* Code that is met for the first time. */
struct new_code {
	const struct cuf_python *python;
	uintptr_t code;
	struct text text;
	bool known;
	uint32_t number;
};

static void number_new_code(void *argument)
{
	struct new_code *new = argument;
	bool hidden;
	new->known = describe_code(new->python, new->code, &new->text, &hidden);
	if (new->known)
		new->number = hidden ? HIDDEN : number_of(&new->text);
}

/* The number of a frame's code, HIDDEN for the interpreter's, 0 when it was dropped. */
static uint32_t code_number(const struct cuf_python *python, struct cuf_python_thread *thread,
			    const struct cuf_python_frame *frame)
{
	uint64_t key = cuf_python_mix(frame->code, frame->identity), *place = &known[key % KNOWN];
	uint64_t seen = __atomic_load_n(place, __ATOMIC_RELAXED);
	struct new_code new = { .python = python,
				.code = frame->code,
				.text = { thread->text, 0, sizeof thread->text } };

	if (seen && seen >> ID_BITS == key >> ID_BITS)
		return seen & HIDDEN;
	__atomic_store_n(&any, true, __ATOMIC_RELAXED);
	cuf_on_side_stack(number_new_code, &new);
	if (!new.known) {
		cuf_count_dropped(CUF_LOST_CODES);
		return 0;
	}
	__atomic_store_n(place, key >> ID_BITS << ID_BITS | new.number, __ATOMIC_RELAXED);
	return new.number;
}

/* ---- frames ---- */

/*
 * Bytes from the code's first instruction to this one; negative: not begun. false: the
 * instruction is not in this code (free-threaded builds run a copy for each thread).
 */
static bool find_offset(const struct cuf_python_layout *layout, uintptr_t code,
			uintptr_t instruction, int64_t *offset)
{
	enum { UNIT = 2, CODE_BYTES_MAX = 1 << 28 };

	if (!layout->code_bytes) {
		*offset = (int64_t)instruction;
		if (layout->lines == CUF_PYTHON_LINETABLE)
			*offset *= UNIT;
		return true;
	}
	*offset = (int64_t)(instruction - code - layout->code_bytes);
	return *offset >= -UNIT && *offset < CODE_BYTES_MAX;
}

uint64_t cuf_python_name(const struct cuf_python *python, struct cuf_python_thread *thread,
			 const struct cuf_python_frame *frame)
{
	uint32_t number = code_number(python, thread, frame), line = 0;
	int64_t offset;

	if (number == HIDDEN)
		return CUF_PYTHON_HIDDEN;
	if (find_offset(&python->layout, frame->code, frame->instruction, &offset))
		line = cuf_python_line(python, frame->code, offset);
	return cuf_frame_python(number, line);
}
