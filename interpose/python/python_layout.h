/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython keeps what a stack needs: offsets in bytes, one layout for each minor version. Up
 * to 3.12 they are a table, as they do not change within a minor version. From 3.13 on the
 * interpreter publishes them (_Py_DebugOffsets, at the start of _PyRuntime). Contract: pure. A
 * version whose frames work in an unknown way has no layout.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * How frames are linked, and how those of one native call of the interpreter are separated from
 * the next call's.
 */
enum cuf_python_chain {
	/* 3.9: each frame has a native call of its own */
	CUF_PYTHON_FRAME_OBJECTS,
	/* 3.10: the same, and each call has a struct on the stack (cframe) */
	CUF_PYTHON_FRAME_CALLS,
	/* 3.11: a call runs frames up to one that is marked; each call has a struct on the stack */
	CUF_PYTHON_ENTRY_FLAG,
	/* 3.12 and later: behind them comes a frame that is on the stack itself */
	CUF_PYTHON_ENTRY_FRAME
};

/* How a code object encodes its lines: 3.9, 3.10, 3.11 and later. */
enum cuf_python_lines { CUF_PYTHON_LNOTAB, CUF_PYTHON_LINETABLE, CUF_PYTHON_LOCATIONS };

/*
 * An offset of 0 means that the field does not exist, except for fields at the beginning of a
 * struct.
 */
struct cuf_python_layout {
	/* of 3.minor */
	uint8_t minor;
	/* the enums above */
	uint8_t chain, lines;
	/* see cuf_python_text_state; 0: it must be found out */
	uint8_t kind_shift;
	/* a frame of this owner or more runs no code; 0: there is none */
	uint8_t outer_owner;
	/* of an object */
	uint16_t type;
	/* thread_frame: the innermost frame, or what points to it (cframe_frame) */
	uint16_t thread_id, thread_frame, thread_cframe;
	uint16_t cframe_frame, cframe_previous;
	uint16_t frame_previous, frame_code, frame_instruction, frame_owner, frame_entry;
	uint16_t code_name, code_qualified, code_file, code_first_line, code_lines, code_version;
	/* the instructions; 0: frame_instruction is a number, not an address */
	uint16_t code_bytes;
	/* a text's hash is the word after its length */
	uint16_t text_length, text_state, text_ascii_bytes, text_compact_bytes;
	uint16_t bytes_length, bytes_data;
};

/*
 * The state of a text from its character size (3 bits) on; the bits after it are compact and
 * ascii. From 3.14 on it comes after 2, 8 or 16 bits, depending on release and build. What
 * precedes it is less than 4, so a wrong place holds 0.
 */
static inline uint32_t cuf_python_text_state(const struct cuf_python_layout *layout, uint32_t state)
{
	if (layout->kind_shift)
		return state >> layout->kind_shift;
	if (state >> 2 & 7)
		return state >> 2;
	return state >> 8 & 7 ? state >> 8 : state >> 16;
}

/*
 * version: PY_VERSION_HEX. runtime: the start of _PyRuntime, readable for
 * CUF_PYTHON_OFFSETS_BYTES; used from 3.13 on. false: the version is not supported.
 */
enum { CUF_PYTHON_OFFSETS_BYTES = 88 * 8 };
bool cuf_python_layout_of(uint32_t version, const uint64_t *runtime,
			  struct cuf_python_layout *layout);
