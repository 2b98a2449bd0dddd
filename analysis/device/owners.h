/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the bytes of a device: what one process holds of it (its usage), and the rows that sum to the driver's
 * total. Rules of the sum: analysis/facts/README.md.
 *
 * Contract: device is the ordinal in that process. Rows and fragmentation lie in the arena. Figures are bytes; the
 * unknown is CUF_UNKNOWN and counts nothing.
 */
#ifndef ANALYSIS_DEVICE_OWNERS_H
#define ANALYSIS_DEVICE_OWNERS_H

#include "analysis/device/holes.h"
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
extern const char *const owner_names[OWNER_MAX]; /* device array async graph vmm imported ... */

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
	uint64_t nvml_bytes;                         /* what NVML accounts to the process at that moment; CUF_UNKNOWN: nobody asked */
	uint64_t bytes[OWNER_MAX], count[OWNER_MAX]; /* DEVICE ... POOL_SLACK, FRAMEWORK_SLACK, CONTEXT, MANAGED; the others 0 */
	uint64_t slack_bytes[OWNER_MAX];             /* of each row: free inside a framework's segments; FRAMEWORK_SLACK is their sum */
	bool framework_known;                        /* false: no framework told of its blocks */
	enum fact_basis framework_basis;
	struct role_sum *roles; size_t role_count;   /* NULL: not asked for */
	bool pool_slack_known, estimated;            /* estimated: arrays whose size is our own reckoning */
	uint64_t exported_bytes;                     /* of its blocks: shared with other processes */
	struct page_facts pages;
	struct fact_fragmentation fragmentation;
};

void usage_measure(const struct device_blocks *blocks, uint32_t pid,
		   const struct driver_state *levels, struct arena *arena, struct usage *out);
/* All that it takes of the device, imported memory left out. */
uint64_t usage_bytes(const struct usage *usage);

/* A process that NVML names and that has no recording. */
struct gpu_process { uint32_t pid; const char *name; uint64_t bytes; /* CUF_UNKNOWN: NVML cannot tell */ };

struct owners_question {
	const struct usage *focus;              /* itemised; never NULL */
	const struct usage *others; size_t other_count;
	const struct gpu_process *gpu_processes; size_t gpu_process_count;
	enum fact_basis gpu_processes_basis;
	uint64_t total_bytes, free_bytes;
	enum fact_basis free_basis, basis;        /* basis: of the replay */
};

/* The rows in order of enum fact_owner; *total_bytes is raised when the rows are more than the driver's total. */
struct fact_owner_row *owners_rows(const struct owners_question *question, struct arena *arena,
				   size_t *count, uint64_t *total_bytes);

/* What packing would give: free, whole pages of it, every hole, and the slack of pools and frameworks. CUF_UNKNOWN when free is. */
uint64_t packed_bytes(const struct usage *usage, uint64_t free_bytes);

#endif
