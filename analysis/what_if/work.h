/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of the work: less of it, or fewer at once. Each is derived from nothing but the requests,
 * and makes a trace that is played as the recorded one is.
 *
 * Contract: work_trials (trials.h) adds those for which the trace shows what they need. A change
 * returns a new trace that the caller frees, or NULL with *why_not. Rows state what was found;
 * README.md states what is assumed.
 */
#pragma once

#include "analysis/what_if/trials.h"

/* Fills *trial from NAME=VALUE, where `typed` names a change of the work: "weights=60%". False
 * without *why: it names none; with it, a clause: its value cannot be read. */
bool work_trial_parse(struct trial *trial, const struct trace *trace, const char *typed,
		      const char **why);

/* A call site whose blocks accumulate: those that are never freed, request after request. */
struct gaining_site {
	uint32_t stack;    /* 0: there is none */
	size_t blocks;
	uint64_t bytes;    /* of these blocks */
};
struct gaining_site gaining_site_of(const struct trace *trace);
/* The trace with at most trial->argument blocks of that call site: an older one is freed. */
struct trace *bound_site(const struct trace *trace, const struct trial *trial, struct arena *arena,
			 const char **why_not);

/* What was requested before anything was freed, and stayed: weights, where no role is known. */
uint64_t loaded_bytes_of(const struct trace *trace);
/* The trace with these blocks smaller: trial->argument is the share that is left. */
struct trace *scale_loaded(const struct trace *trace, const struct trial *trial,
			   struct arena *arena, const char **why_not);

/* The trace with blocks of the role "KV cache" smaller, the refused one included. */
struct trace *scale_kv(const struct trace *trace, const struct trial *trial, struct arena *arena,
		       const char **why_not);

/* The largest request, which may be the one that failed. */
uint64_t largest_request_of(const struct trace *trace);
struct trace *scale_largest(const struct trace *trace, const struct trial *trial,
			    struct arena *arena, const char **why_not);

/* Threads that had a request in progress at the one that failed, its own included. */
size_t threads_at_once(const struct trace *trace);
/* The trace without the requests in progress of all but trial->argument threads. */
struct trace *limit_threads(const struct trace *trace, const struct trial *trial,
			    struct arena *arena, const char **why_not);

/* The call site with most bytes of which blocks are requested all along and some are kept. */
struct gaining_site cache_site_of(const struct trace *trace);
/* The trace with at most trial->argument bytes of its blocks: older ones are freed first. */
struct trace *bound_cache(const struct trace *trace, const struct trial *trial,
			  struct arena *arena, const char **why_not);

/* By how many equal steps the blocks of a call site grew at most; 0: of none they do. */
uint64_t context_steps_of(const struct trace *trace);
/* The trace with none of them further than trial->argument steps above its smallest. */
struct trace *cap_context(const struct trace *trace, const struct trial *trial,
			  struct arena *arena, const char **why_not);
/* The largest multiple, where call sites request different multiples of one size, and that size; 0:
 * none does. */
uint64_t batch_of(const struct trace *trace, uint64_t *unit_bytes);
struct trace *cap_batch(const struct trace *trace, const struct trial *trial, struct arena *arena,
			const char **why_not);

/* By number of block: the step that frees it; SIZE_MAX: none. Ended by free. */
size_t *frees_of(const struct trace *trace);
