/* SPDX-License-Identifier: Apache-2.0 */
/*
 * META GPU_PROCESSES: which processes hold memory of a device, as NVML once reported it.
 * Contract: as format.h, of which this is a part. FORMAT.md explains whose process ids these are.
 */
#pragma once

#include "interpose/abi/format.h"

#define CUF_GPU_PROCESSES_MAX 120u

/* One process on a device, as NVML reports it. */
struct cuf_gpu_process {
	uint32_t pid;            /* in NVML's choice of namespace: usually the caller's, */
				 /* with some drivers the machine's */
	uint32_t flags;          /* CUF_GPU_PROCESS_* */
	uint64_t used_bytes;     /* includes its context; CUF_UNKNOWN: NVML cannot account for it */
	char name[16];           /* /proc/PID/comm; "" when not readable */
};
#define CUF_GPU_PROCESS_COMPUTE 0x1u
#define CUF_GPU_PROCESS_GRAPHICS 0x2u
#define CUF_GPU_PROCESS_SEEN 0x4u  /* the reader's pid namespace has a process of this id */

struct cuf_meta_gpu_processes {
	struct cuf_meta meta;    /* number = the incident that caused it; time_ns = of the */
				 /* reading */
	uint32_t device;         /* driver's index, in the process of this recording */
	uint32_t flags;          /* CUF_GPU_PROCESSES_* */
	uint32_t failed;         /* enum cuf_nvml_function that failed; 0: the list is complete */
	uint32_t result;         /* what it returned */
	uint64_t total_bytes;    /* these four: the device as NVML reports it; CUF_UNKNOWN */
	uint64_t used_bytes;
	uint64_t free_bytes;
	uint64_t reserved_bytes;
	uint32_t reported_count; /* as NVML reports it; those beyond stored_count were dropped */
	uint32_t stored_count;   /* struct cuf_gpu_process that follow */
};
#define CUF_GPU_PROCESSES_BY_RUN 0x1u  /* read by `cuflight run`, not by the process itself */
#define CUF_GPU_PROCESSES_AFTER 0x2u   /* read after the process had ended */
#define CUF_GPU_PROCESSES_LAYOUT 0x4u  /* records of an unknown length: not used */

/* A whole record, as a writer assembles it. Only its first stored_count processes are written. */
struct cuf_gpu_reading {
	struct cuf_meta_gpu_processes head;
	struct cuf_gpu_process processes[CUF_GPU_PROCESSES_MAX];
};

static inline size_t cuf_gpu_reading_bytes(const struct cuf_gpu_reading *reading)
{
	return offsetof(struct cuf_gpu_reading, processes) +
	       reading->head.stored_count * sizeof *reading->processes;
}

_Static_assert(sizeof(struct cuf_gpu_process) == 32, "packed by hand");
_Static_assert(sizeof(struct cuf_meta_gpu_processes) == 88, "packed by hand");
