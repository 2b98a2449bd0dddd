/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rows share. Contract: private to this folder; as in rows.h. */
#pragma once

#include "analysis/base/hash_index.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/run.h"
#include "analysis/facts/rows/rows.h"

/* The phases that were open between two boundaries, by thread. */
struct phase_times {
	uint64_t *at;            /* begins and ends of phases, ascending */
	size_t count;
	struct hash_index cache; /* thread and stretch to a place in found, plus one */
	struct phase_found {
		const struct fact_phase *phase, *request;
	} *found;
	size_t found_count, found_room;
	bool ready;
};

struct rows {
	const struct facts *facts;
	struct frames *frames;
	struct run *run;
	struct rows_filter filter;
	struct hash_index site_index; /* process and stack to a site */
	struct site_row *sites;
	size_t site_count, site_room;
	struct frame *own_frames; /* of the last rows_site_frames */
	size_t own_frame_room;
	struct hash_index role_index; /* process, kind and stack to a place in roles, plus one */
	const char **roles;
	size_t role_count, role_room;
	struct phase_times *phases;   /* by process */
	void (*progress)(void *context, uint64_t done, uint64_t total);
	void *progress_context;
	uint64_t passed, total;
};

const char *rows_api(const struct rows *rows, uint32_t process, unsigned hook, unsigned label);
bool rows_want(const struct rows *rows, unsigned kind, uint32_t device);
uint32_t rows_device(const struct rows *rows, uint32_t process, unsigned ordinal);
/* A new pass over all processes that the filter has. */
void rows_begin_pass(struct rows *rows);
static inline void rows_step(struct rows *rows)
{
	if (!(++rows->passed & 0xffff) && rows->progress)
		rows->progress(rows->progress_context, rows->passed, rows->total);
}

/* The row of a device block, without its death. */
struct block_row rows_device_block(struct rows *rows, uint32_t process,
				   const struct cuf_block *block);

/* A block of the host, with what it stands for. */
struct host_row {
	uint64_t addr, bytes, born_ns, mean_bytes; /* born: CLOCK_MONOTONIC; CUF_UNKNOWN */
	uint32_t stack, tid;
};
struct block_row rows_host_block(struct rows *rows, uint32_t process, const struct host_row *host);

/* The next entry of the host's ledger, from *at = 0 (host_ledger.h); false: at the end. */
bool rows_ledger_next(const struct run_process *recorded, const struct host_means *means,
		      uint64_t *at, struct host_row *out);
