/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the recorder saw and what it did not see. Contract: as in facts.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"

struct fact_text {
	const char *text;
	uint32_t process; /* FACT_NONE: of the run */
	bool minor; /* could not change who holds what and why */
};

struct fact_loss {
	const char *what;
	uint64_t count;
	uint32_t process;
};

struct fact_coverage {
	const char *const *hooked; /* hooked functions that were called */
	size_t hooked_count;
	const char *const *unhooked; /* names like allocators that were resolved, not hooked */
	size_t unhooked_count;
	const char *const *static_cudart;
	size_t static_cudart_count;
	const struct fact_loss *lost; /* tables that overflowed; only non-zero ones */
	size_t lost_count;
	const struct fact_text *blind; /* whole sentences, most important first */
	size_t blind_count;
	uint64_t stack_stops[CUF_STOP_MAX];
	uint64_t unknown_frees, replaced, undone_frees;
	uint64_t recorder_ns; /* CPU time in device paths, a duration */
	bool other_gpus; /* a runtime of another vendor's GPUs was used */
	bool complete; /* nothing dropped, cut or overwritten */
};
