/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython keeps what a stack needs: offsets in bytes, one layout for each minor version. To 3.12 they are a table
 * (within a minor version they do not change); from 3.13 on the interpreter tells them itself (_Py_DebugOffsets, at the
 * start of _PyRuntime). Contract: pure; a version whose frames work in ways not known here has no layout.
 */
#ifndef CUF_PYTHON_LAYOUT_H
#define CUF_PYTHON_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How frames hang together, and how those of one native call of the interpreter are told from the next one's. */
enum cuf_python_chain {
	CUF_PYTHON_FRAME_OBJECTS, /* 3.9: each frame has a native call of its own */
	CUF_PYTHON_FRAME_CALLS,   /* 3.10: the same, and each call has a struct on the stack (cframe) */
	CUF_PYTHON_ENTRY_FLAG,    /* 3.11: a call runs frames up to one that is marked; each call has a struct on the stack */
	CUF_PYTHON_ENTRY_FRAME    /* 3.12 and later: behind them comes a frame that lies on the stack itself */
};

enum cuf_python_lines { CUF_PYTHON_LNOTAB /* 3.9 */, CUF_PYTHON_LINETABLE /* 3.10 */, CUF_PYTHON_LOCATIONS /* 3.11 and later */ };

struct cuf_python_layout {
	uint8_t minor;             /* of 3.minor */
	uint8_t chain, lines;      /* enums above */
	uint8_t kind_shift;        /* see cuf_python_text_state; 0: to be found */
	uint8_t outer_owner;       /* a frame of this owner or more runs no code; 0: there is none */
	uint16_t type;             /* of an object */
	uint16_t thread_id, thread_frame, thread_cframe; /* thread_frame: the innermost, or what points to it (cframe_frame) */
	uint16_t cframe_frame, cframe_previous;
	uint16_t frame_previous, frame_code, frame_instruction, frame_owner, frame_entry;
	uint16_t code_name, code_qualified, code_file, code_first_line, code_lines, code_version; /* 0: not there */
	uint16_t code_bytes;       /* instructions; 0: frame_instruction is a number */
	uint16_t text_length, text_state, text_ascii_bytes, text_compact_bytes; /* hash: the word after the length */
	uint16_t bytes_length, bytes_data;
};

/*
 * The state of a text from its character size (3 bits) on; compact and ascii are the bits after it. From 3.14 on it comes
 * after 2, 8 or 16 bits, by release and build, which hold less than 4: where it is not yet, there is 0.
 */
static inline uint32_t cuf_python_text_state(const struct cuf_python_layout *layout, uint32_t state)
{
	if (layout->kind_shift)
		return state >> layout->kind_shift;
	return state >> 2 & 7 ? state >> 2 : state >> 8 & 7 ? state >> 8 : state >> 16;
}

/* version: PY_VERSION_HEX. runtime: the start of _PyRuntime, readable for CUF_PYTHON_OFFSETS_BYTES; used from 3.13 on. */
enum { CUF_PYTHON_OFFSETS_BYTES = 88 * 8 };
bool cuf_python_layout_of(uint32_t version, const uint64_t *runtime, struct cuf_python_layout *layout);

#endif
