/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the bytes of a device: the usage of each process, and the rows that sum to the
 * driver's total. In short:
 *
 * - Rows of blocks have the requested sizes; rounding to pages and slack have rows of their own.
 * - What was inferred gives way when the rows exceed the total; the rest is "unexplained".
 * - Memory imported from a process of this run counts in that process's row only.
 *
 * analysis/facts/README.md, "Who holds a device", has the rules in full.
 *
 * Contract: device is the ordinal in that process. Rows and fragmentation are in the arena.
 * Figures are bytes; CUF_UNKNOWN counts nothing.
 */
#pragma once

#include "analysis/measure/holes.h"
#include "analysis/replay/driver_state.h"

/* The rows of the table "who holds the device", in this order. */
enum fact_owner {
	OWNER_DEVICE,
	OWNER_ARRAY,
	OWNER_ASYNC,
	OWNER_GRAPH,
	OWNER_VMM,
	OWNER_IMPORTED,
	OWNER_PAGE_ROUNDING,
	OWNER_POOL_SLACK,
	OWNER_FRAMEWORK_SLACK,
	OWNER_OTHER_PROCESSES,
	OWNER_CONTEXT,
	OWNER_UNEXPLAINED,
	OWNER_FREE,
	OWNER_MANAGED,
	OWNER_MAX
};

/* The row of a block that a program allocated and that is in the sum; mapped memory counts as VMM.
 * OWNER_MAX: no such row (graph pools, contexts, managed memory, the host). */
enum fact_owner owner_of_block(unsigned kind);

struct fact_owner_row {
	enum fact_owner kind;
	const char *role;           /* weights, kv ...; NULL unknown */
	enum fact_basis role_basis; /* NONE without a role */
	uint64_t bytes;             /* CUF_UNKNOWN: cannot be known; it counts 0 in the sum */
	uint64_t count;             /* blocks; CUF_UNKNOWN where it makes no sense */
	enum fact_basis basis;
	uint32_t pid;               /* 0: of no process */
	const char *name;           /* of another process, as NVML's reader saw it; NULL unknown */
	bool by_nvml;               /* reported by NVML at that moment, or derived from that */
	bool recorded;              /* of another process: it has a recording in this run */
	bool in_sum;                /* false: managed, or imported from a process of this run */
};

/* Live blocks of one row that are for one thing. */
struct role_sum {
	enum fact_owner owner;
	const char *role;
	enum fact_basis basis;
	uint64_t bytes, count;
};

struct usage {
	uint32_t pid;
	const char *name; /* of the program; NULL */
	/* what NVML reports for the process at that moment; CUF_UNKNOWN: not queried */
	uint64_t nvml_bytes;
	/* of blocks, slack, context and managed memory; the other rows are 0 */
	uint64_t bytes[OWNER_MAX], count[OWNER_MAX];
	/* of each row: free inside segments; their sum is FRAMEWORK_SLACK */
	uint64_t slack_bytes[OWNER_MAX];
	bool framework_known;                        /* false: no framework reported blocks */
	enum fact_basis framework_basis;
	struct role_sum *roles;                      /* NULL: not requested */
	size_t role_count;
	bool pool_slack_known;                       /* false: a pool has no report */
	bool estimated;                              /* the recorder computed sizes of arrays */
	uint64_t exported_bytes;                     /* of blocks shared with other processes */
	struct page_facts pages;
	struct fact_fragmentation fragmentation;
};

/* Measures the blocks of one process on one device. out->fragmentation is filled, except for
 * frameworks. */
void usage_measure(const struct device_blocks *blocks, uint32_t pid,
		   const struct driver_state *levels, struct arena *arena, struct usage *out);
/* Everything that it occupies on the device, without imported memory. */
uint64_t usage_bytes(const struct usage *usage);

/* A process that NVML names and that has no recording. */
struct gpu_process {
	uint32_t pid;
	const char *name;
	uint64_t bytes; /* CUF_UNKNOWN: NVML has no figure */
};

struct owners_question {
	const struct usage *focus;  /* itemised; never NULL */
	/* the other recorded processes of the run */
	const struct usage *others;
	size_t other_count;
	/* processes without a recording, as NVML reported them */
	const struct gpu_process *gpu_processes;
	size_t gpu_process_count;
	enum fact_basis gpu_processes_basis;
	/* as the driver reported them */
	uint64_t total_bytes, free_bytes;
	enum fact_basis free_basis;
	enum fact_basis basis;      /* of the replay */
};

/* The rows in order of enum fact_owner. Raises *total_bytes when the rows exceed the total of the
 * driver. */
struct fact_owner_row *owners_rows(const struct owners_question *question, struct arena *arena,
				   size_t *count, uint64_t *total_bytes);

/* What packing would free at most: whole pages of free memory, all holes, and the slack of pools
 * and frameworks. CUF_UNKNOWN when free memory is unknown. */
uint64_t packed_bytes(const struct usage *usage, uint64_t free_bytes);
