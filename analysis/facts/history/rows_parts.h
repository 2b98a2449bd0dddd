/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of rows share. Contract: private to this folder; as in rows.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/hash_index.h"
#include "analysis/facts/history/rows.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/run.h"

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

/*
 * Blocks of the host by address: 24 bytes a slot, since a recording in full mode has millions.
 * Contract: heap memory, freed by host_table_fini. Address 0 is not stored. One thread.
 */

struct host_slot {
	uint64_t addr;       /* 0: empty */
	uint64_t word1;      /* stack and bytes: cuf_host_word1 */
	uint32_t born_ms;    /* since the recorder's start; HOST_BORN_UNKNOWN */
	uint32_t tid;        /* of the allocation; 0 unknown */
};
#define HOST_BORN_UNKNOWN UINT32_MAX

struct host_table {
	struct host_slot *slots;
	size_t room, count;  /* room is a power of two */
	uint64_t secret;     /* hostile addresses cannot be chosen to collide */
};

void host_table_init(struct host_table *table);
void host_table_fini(struct host_table *table);
/* Adds a block or replaces the one at its address. False: there was one, which is in *was (may be
 * NULL). */
bool host_table_put(struct host_table *table, const struct host_slot *slot, struct host_slot *was);
bool host_table_take(struct host_table *table, uint64_t addr, struct host_slot *slot);
/* NULL: not there. Valid until the next put or take. */
struct host_slot *host_table_find(const struct host_table *table, uint64_t addr);
