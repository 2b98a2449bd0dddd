/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Python functions by the number that frames carry. The recorder writes them when it
 * first sees a function (CUF_META_CODE).
 *
 * Contract: python_names_of copies what it needs from the texts. A found name lives as long as the
 * struct. Damaged records cost names, nothing else. Dies on exhaustion. One thread.
 */
#pragma once

#include <stdbool.h>
#include "analysis/recording/fact_types.h"

struct python_names;

struct python_name {
	const char *function; /* qualified from 3.11 on; "" unknown */
	const char *file;     /* as the code has it: "<string>", perhaps relative; "" unknown */
	unsigned first_line;  /* of the function; 0 unknown */
};

struct python_names *python_names_of(const struct fact_meta_text *texts, size_t count);
void python_names_free(struct python_names *names); /* NULL is fine */

/* code: cuf_frame_code() of a frame. NULL: the recording has no name for it. */
const struct python_name *python_names_find(const struct python_names *names, uint32_t code);

/* Whether a file is of the standard library, of an installed package or frozen into the
 * interpreter: not the user's code. */
bool python_file_is_library(const char *file);
