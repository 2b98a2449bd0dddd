/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of one process on what it may map, and which of them refused a request of host memory.
 * The kernel adds what is mapped to what is asked for, so it is arithmetic. The limit of a cgroup
 * refuses nothing: beyond it the kernel kills.
 *
 * Contract: pure. CUF_UNKNOWN: no limit, or a recording of before the limits were recorded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum fact_limit_kind { LIMIT_NONE, LIMIT_ADDRESS, LIMIT_DATA, LIMIT_MAX };

struct fact_limit {
	uint64_t used_bytes, max_bytes;
};

extern const struct fact_limit_words {
	const char *key;  /* in the JSON */
	const char *what; /* that is limited */
	const char *set;  /* the shell's command */
	const char *by;   /* what sets it */
} fact_limit_words[LIMIT_MAX];

/*
 * limits: by kind. The lowest of those that left no room for the request; LIMIT_NONE. is_mapped:
 * the addresses were there already, and were to become memory.
 */
enum fact_limit_kind fact_limit_refused(const struct fact_limit *limits, uint64_t requested_bytes,
					bool is_mapped);
