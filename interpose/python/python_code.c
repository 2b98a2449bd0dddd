/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code: each distinct (function, file, first line) is written to META once, and is known by a number from then
 * on. Owns the table of those, and two caches before it: code object to number (shared), and instruction to frame (each
 * thread's). What is read of code and texts goes through the kernel: this is the first sight, and names are rare.
 */
#include <string.h>
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/python/python_parts.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/laws.h"

enum {
	CODES = 1 << 15,          /* functions that can be named; a number is its slot + 1 */
	PROBE = 64,
	KNOWN = 1 << 13,          /* code objects whose number is remembered */
	ID_BITS = 24,             /* in a word of known; the rest is the code's */
	HIDDEN = (1 << ID_BITS) - 1
};
static uint64_t codes[CODES]; /* hash of the text; 0 free */
static uint64_t known[KNOWN];
static bool any; /* else the pages were never touched, and stay so */

void cuf_python_names_atfork_child(void)
{
	if (!any)
		return;
	memset(codes, 0, sizeof codes);
	memset(known, 0, sizeof known);
	any = false;
}

void cuf_python_stopped(enum cuf_python_stop why)
{
	if (cuf_recording.header)
		__atomic_fetch_add(&cuf_recording.header->python_stops[why], 1, __ATOMIC_RELAXED);
}

/* ---- texts ---- */

struct text { char *at; size_t used, room; };

static void add_byte(struct text *text, uint32_t byte)
{
	if (text->used < text->room)
		text->at[text->used++] = (char)byte;
}

/* A character in UTF-8. The record is of lines: what would end one is shown as a blank. Surrogates stand for bytes of file
 * names that are not UTF-8 (0xdc80 + byte - 0x80), which are given back. */
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

/* A Python text. Of one too long the end is left out. false: it is none, or of a kind that names do not have. */
static bool add_text(const struct cuf_python *python, struct text *text, uintptr_t object, size_t bytes_max)
{
	const struct cuf_python_layout *l = &python->layout;
	uint64_t type, length;
	uint32_t state;
	uint8_t window[64];
	size_t end = text->used + bytes_max;
	if (!cuf_readable_copy(&type, object + l->type, sizeof type) || type != python->text_type ||
	    !cuf_readable_copy(&length, object + l->text_length, sizeof length) || !cuf_readable_copy(&state, object + l->text_state, sizeof state))
		return false;
	state = cuf_python_text_state(l, state);
	unsigned size = state & 7, compact = state >> 3 & 1, ascii = state >> 4 & 1;
	uintptr_t at = object + (ascii ? l->text_ascii_bytes : l->text_compact_bytes);
	if ((size != 1 && size != 2 && size != 4) || !compact)
		return false;
	for (uint64_t i = 0, held; i < length; i += held) {
		held = length - i < sizeof window / size ? length - i : sizeof window / size;
		if (!cuf_readable_copy(window, at + i * size, held * size))
			return false;
		for (uint64_t c = 0; c < held; c++) {
			if (text->used + 4 > end)
				return true;
			add_character(text, character_at(window + c * size, size));
		}
	}
	return true;
}

/* "qualified name\nfile\nfirst line\n". hidden: the interpreter's own, which has its name for a file, too. */
static bool describe(const struct cuf_python *python, uintptr_t code, struct text *text, bool *hidden)
{
	const struct cuf_python_layout *l = &python->layout;
	uint64_t name, file;
	uint32_t line;
	char digits[12];
	unsigned count = 0;
	if (!cuf_readable_copy(&name, code + l->code_name, sizeof name) || !cuf_readable_copy(&file, code + l->code_file, sizeof file) ||
	    !cuf_readable_copy(&line, code + l->code_first_line, sizeof line))
		return false;
	*hidden = name == file;
	if (l->code_qualified && !cuf_readable_copy(&name, code + l->code_qualified, sizeof name))
		return false;
	if (!add_text(python, text, name, CUF_PYTHON_NAME_BYTES))
		return false;
	add_byte(text, '\n');
	if (!add_text(python, text, file, CUF_PYTHON_FILE_BYTES))
		return false;
	add_byte(text, '\n');
	do
		digits[count++] = (char)('0' + line % 10);
	while (line /= 10);
	while (count)
		add_byte(text, (unsigned char)digits[--count]);
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

/* The number of what this text names; written at first sight. 0: no room. */
static uint32_t number_of(const struct text *text)
{
	uint64_t hash = hash_of(text);
	for (unsigned i = 0, at = (unsigned)(hash >> 40); i < PROBE; i++, at++) {
		uint64_t seen = __atomic_load_n(&codes[at % CODES], __ATOMIC_RELAXED);
		if (!seen && __atomic_compare_exchange_n(&codes[at % CODES], &seen, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
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

static uint32_t code_number(const struct cuf_python *python, struct cuf_python_thread *p, const struct cuf_python_frame *frame)
{
	uint64_t key = cuf_python_mix(frame->code, frame->identity), *place = &known[key % KNOWN], seen = __atomic_load_n(place, __ATOMIC_RELAXED);
	struct text text = { p->text, 0, sizeof p->text };
	bool hidden;
	uint32_t number;
	if (seen && seen >> ID_BITS == key >> ID_BITS)
		return seen & HIDDEN;
	__atomic_store_n(&any, true, __ATOMIC_RELAXED);
	if (!describe(python, frame->code, &text, &hidden)) {
		cuf_count_dropped(CUF_LOST_CODES);
		return 0;
	}
	number = hidden ? HIDDEN : number_of(&text);
	__atomic_store_n(place, key >> ID_BITS << ID_BITS | number, __ATOMIC_RELAXED);
	return number;
}

/* ---- frames ---- */

/* Bytes from the code's first instruction to this one; negative: not begun. false: it is not this code's (free-threaded
 * builds run a thread's own copy). */
static bool offset_of(const struct cuf_python_layout *l, uintptr_t code, uintptr_t instruction, int64_t *offset)
{
	enum { UNIT = 2, CODE_BYTES_MAX = 1 << 28 };
	if (!l->code_bytes) {
		*offset = (int64_t)instruction * (l->lines == CUF_PYTHON_LINETABLE ? UNIT : 1);
		return true;
	}
	*offset = (int64_t)(instruction - code - l->code_bytes);
	return *offset >= -UNIT && *offset < CODE_BYTES_MAX;
}

uint64_t cuf_python_name(const struct cuf_python *python, struct cuf_python_thread *p, const struct cuf_python_frame *frame)
{
	uint32_t number = code_number(python, p, frame);
	int64_t offset;
	if (number == HIDDEN)
		return CUF_PYTHON_HIDDEN;
	if (!offset_of(&python->layout, frame->code, frame->instruction, &offset))
		return cuf_frame_python(number, 0);
	return cuf_frame_python(number, cuf_python_line(python, frame->code, offset));
}
