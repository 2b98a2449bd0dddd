/* SPDX-License-Identifier: Apache-2.0 */
/*
 * META, read once: modules with the time during which they were loaded, names of functions and
 * hooks, and all other texts.
 *
 * Contract: everything is in the arena; texts are NUL-terminated copies, never NULL; times are
 * CLOCK_REALTIME. A damaged record ends the reading, and damage_offset tells where (0: none).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "analysis/base/xalloc.h"
#include "analysis/recording/fact_types.h"
#include "analysis/recording/reader.h"
#include "interpose/abi/gpu_processes.h"

/*
 * Hides secrets in what a recording has as text. The recorder did so already; its version may have
 * known fewer kinds of them, or none.
 *
 * Contract: in place; texts are hostile. What was hidden already ("***") does not count.
 */

/* Makes each secret "***", or fewer stars where it is shorter. The text is NUL-terminated. */
void secret_texts_hide(uint32_t meta_type, char *text);
/* Covers the secrets of a whole section META by stars of the same length, so that no record moves.
 * Returns how many there were. */
size_t secret_texts_cover(void *meta, size_t bytes);

/* What NVML reported once about a device. */
struct gpu_processes_reading {
	struct cuf_meta_gpu_processes head;     /* gpu_process_count is what follows */
	const struct cuf_gpu_process *holders;
	uint64_t time_ns;                 /* CLOCK_REALTIME */
};

struct meta {
	struct fact_module *modules; size_t module_count;
	struct fact_function *functions; size_t function_count; /* sorted by addr */
	struct fact_meta_text *texts; size_t text_count; /* all but modules, functions */
	struct gpu_processes_reading *readings; size_t reading_count;
	const char *const *hook_names; size_t hook_name_count;
	uint64_t damage_offset;
};

void meta_read(struct meta *meta, const struct reader *reader, struct arena *arena);

/* The first text of a type; NULL: none. */
const char *meta_text(const struct meta *meta, uint32_t type);
/* A number of LIMITS by its key; CUF_UNKNOWN: absent, or no limit. */
uint64_t meta_limit(const struct meta *meta, const char *key);
/* Whether the recorder wrote a note with this number. */
bool meta_noted(const struct meta *meta, uint64_t note);
