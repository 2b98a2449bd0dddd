/* SPDX-License-Identifier: Apache-2.0 */
/* The table of layouts, and the reading of _Py_DebugOffsets. */
#include "interpose/python/python_layout.h"

#include <string.h>
#include "interpose/platform/laws.h"

static const struct cuf_python_layout table[] = {
#define LAYOUT(of, ...) { __VA_ARGS__ },
#include "interpose/python/python_layouts.def"
};

/* The first version that publishes its offsets. */
enum { PUBLISHED_FROM = 13 };

/*
 * Indices of words in _Py_DebugOffsets. Its beginning is the same in all versions: a cookie, the
 * version, whether threads run free. code_version is missing there: in all versions and builds
 * that publish offsets it comes CODE_VERSION_AFTER bytes after the first line.
 */
struct offsets {
	uint8_t minor, kind_shift;
	uint8_t thread_frame, thread_id;
	uint8_t frame_previous, frame_code, frame_instruction, frame_owner;
	uint8_t code_file, code_name, code_qualified, code_lines, code_first_line, code_bytes;
	uint8_t type;
	uint8_t bytes_length, bytes_data;
	uint8_t text_state, text_length, text_ascii_bytes;
};
enum { WORD_VERSION = 1, OFFSET_MAX = 4096, CODE_VERSION_AFTER = 24 };
static const char cookie[] = "xdebugpy";

static const struct offsets offsets[] = {
	{ .minor = 13, .kind_shift = 2, .thread_frame = 23, .thread_id = 24,
	  .frame_previous = 29, .frame_code = 30, .frame_instruction = 31, .frame_owner = 33,
	  .code_file = 35, .code_name = 36, .code_qualified = 37, .code_lines = 38,
	  .code_first_line = 39, .code_bytes = 43, .type = 45, .bytes_length = 65,
	  .bytes_data = 66, .text_state = 68, .text_length = 69, .text_ascii_bytes = 70 },
	{ .minor = 14, .thread_frame = 26, .thread_id = 27,
	  .frame_previous = 32, .frame_code = 33, .frame_instruction = 34, .frame_owner = 36,
	  .code_file = 40, .code_name = 41, .code_qualified = 42, .code_lines = 43,
	  .code_first_line = 44, .code_bytes = 48, .type = 51, .bytes_length = 75,
	  .bytes_data = 76, .text_state = 78, .text_length = 79, .text_ascii_bytes = 80 },
};

/* What the version does not publish comes first. false: of another build, or out of range. */
static bool read_offsets(const uint64_t *runtime, uint32_t version, const struct offsets *words,
			 struct cuf_python_layout *layout)
{
	const struct {
		uint8_t word;
		uint16_t *to;
	} fields[] = {
		{ words->thread_frame, &layout->thread_frame },
		{ words->thread_id, &layout->thread_id },
		{ words->frame_previous, &layout->frame_previous },
		{ words->frame_code, &layout->frame_code },
		{ words->frame_instruction, &layout->frame_instruction },
		{ words->frame_owner, &layout->frame_owner },
		{ words->code_file, &layout->code_file },
		{ words->code_name, &layout->code_name },
		{ words->code_qualified, &layout->code_qualified },
		{ words->code_lines, &layout->code_lines },
		{ words->code_first_line, &layout->code_first_line },
		{ words->code_bytes, &layout->code_bytes },
		{ words->type, &layout->type },
		{ words->bytes_length, &layout->bytes_length },
		{ words->bytes_data, &layout->bytes_data },
		{ words->text_state, &layout->text_state },
		{ words->text_length, &layout->text_length },
		{ words->text_ascii_bytes, &layout->text_ascii_bytes },
	};

	if (memcmp(runtime, cookie, sizeof cookie - 1) || runtime[WORD_VERSION] != version)
		return false;
	*layout = (struct cuf_python_layout){
		.minor = words->minor,
		.chain = CUF_PYTHON_ENTRY_FRAME,
		.lines = CUF_PYTHON_LOCATIONS,
		.kind_shift = words->kind_shift,
		.outer_owner = 3,
	};
	for (unsigned i = 0; i < sizeof fields / sizeof *fields; i++) {
		if (runtime[fields[i].word] >= OFFSET_MAX)
			return false;
		*fields[i].to = (uint16_t)runtime[fields[i].word];
	}
	/* between them: the length and the text in UTF-8 */
	layout->text_compact_bytes = (uint16_t)(layout->text_ascii_bytes + 16);
	layout->code_version = (uint16_t)(layout->code_first_line + CODE_VERSION_AFTER);
	return true;
}

bool cuf_python_layout_of(uint32_t version, const uint64_t *runtime,
			  struct cuf_python_layout *layout)
{
	unsigned minor = version >> 16 & 0xff;

	if (version >> 24 != 3)
		return false;
	for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
		if (table[i].minor != minor || minor >= PUBLISHED_FROM)
			continue;
		*layout = table[i];
		return true;
	}
	for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++)
		if (offsets[i].minor == minor)
			return read_offsets(runtime, version, &offsets[i], layout);
	return false;
}
