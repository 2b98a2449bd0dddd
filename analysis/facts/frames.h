/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded stacks with names: fact_stack -> frames, through the modules of its process, the
 * symbols of their files and the recorder's notes. Contract: frames_of's array is valid
 * until the next call; its texts live as long as the struct frames (texts are foreign:
 * clean.h before printing). Unknown is NULL or 0. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/facts/facts.h"
#include "analysis/symbols/symbols.h"

struct frame {
	const char *function; /* NULL unknown */
	const char *module;   /* NULL: no module held this address, or a Python frame */
	const char *file;     /* NULL unknown */
	unsigned line;        /* 0 unknown */
	const char *language; /* "native", "python" */
	uint64_t addr;        /* as recorded: a return address, or a Python frame's code and line */
	/* of the call in the module's file, as addr2line takes it; without a module, addr */
	uint64_t offset;
	bool inlined;         /* into the next frame, of the same address */
	bool library;         /* Python: of the standard library or an installed package */
};

struct frames;

/* Both are borrowed and must outlive the frames. */
struct frames *frames_new(const struct facts *facts, struct symbols *symbols);
void frames_free(struct frames *frames);

/* Innermost first; 0 when the stack is unknown. */
size_t frames_of(struct frames *frames, const struct fact_stack *stack, const struct frame **out);

bool frame_is_python(const struct frame *frame);
/* Its function, abridged at its brackets; "": unknown. */
void frame_function(const struct frame *frame, char *out, size_t bytes);
/*
 * One frame: "function file.c:88" or "function module"; of an unknown function
 * "module+0x1f2c" or the address.
 */
void frame_text(const struct frame *frame, char *out, size_t bytes);
