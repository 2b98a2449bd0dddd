/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for formats: short texts for frames, processes and devices. Contract: written to out, valid
 * UTF-8 without control characters (clean.h), always NUL-terminated and never empty.
 */
#pragma once

#include <stdio.h>
#include "analysis/facts/history/rows.h"

enum { NAME_BYTES = 1024 };

/* Any foreign text. */
void name_text(const char *text, char *out, size_t bytes);
/* "attention.forward", "cudaMalloc", "libfoo.so+0x1f2c". */
void name_function(const struct frame *frame, char *out, size_t bytes);
/* The same with the place: "forward (model.py:88)". */
void name_frame(const struct frame *frame, char *out, size_t bytes);
/* "python 4131", with the rank where there is one. */
void name_process(const struct facts *facts, uint32_t process, char *out, size_t bytes);
/* "device gpu 0", "host", "pinned": what a sum is of. */
void name_memory(const struct facts *facts, uint32_t kind, uint32_t device, char *out,
		 size_t bytes);

/* Any foreign text as a string of JSON, with its quotes. */
void name_put_json(FILE *out, const char *text);
