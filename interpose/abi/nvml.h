/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML's functions, layouts and results, as far as they report which processes hold a device.
 * They are declared here after NVIDIA's nvml.h and nvidia-ml-py, so a build needs neither.
 *
 * Data only. Two readers use it: hooks/cuda/nvml.c in the recorded process, and
 * analysis/cmd/target/nvml_reader.c in a child of `cuflight run`.
 * Contract for both: a driver may lack any function (NULL). Any answer may be wrong, so counts are
 * clamped and record lengths are measured. NVML counts its initialisations: init and shutdown in
 * pairs leave the program's use of it as it was. NVML is thread-safe and never calls back.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/gpu_processes.h"

#define CUF_NVML_SONAME "libnvidia-ml.so.1"

enum cuf_nvml_result {
	CUF_NVML_SUCCESS = 0,
	CUF_NVML_INSUFFICIENT_SIZE = 7,
	CUF_NVML_TIMEOUT = 10,
	CUF_NVML_FUNCTION_NOT_FOUND = 13
};

struct cuf_nvml_memory { uint64_t total_bytes, free_bytes, used_bytes; };

#define CUF_NVML_MEMORY_2 (2u << 24 | (unsigned)sizeof(struct cuf_nvml_memory_2))
struct cuf_nvml_memory_2 {
	uint32_t version;        /* CUF_NVML_MEMORY_2 */
	uint32_t padding;
	uint64_t total_bytes, reserved_bytes, free_bytes, used_bytes;
};

/*
 * One process of a list. A record had 16 bytes at first and has 24 since version 2. In two releases
 * of driver 535, version 3 has 32. A reader therefore fills the room with CUF_NVML_MARK beforehand:
 * what was overwritten ends with the last record.
 */
struct cuf_nvml_process {
	uint32_t pid, padding;
	uint64_t used_bytes;     /* all ones: not available */
};
struct cuf_nvml_process_long {
	struct cuf_nvml_process process;
	uint32_t gpu_instance, compute_instance;
	uint64_t protected_bytes;
};
#define CUF_NVML_MARK 0xa5
/* Room for CUF_GPU_PROCESSES_MAX records of the longest kind. Align it to 8 bytes. */
#define CUF_NVML_ROOM_BYTES (CUF_GPU_PROCESSES_MAX * sizeof(struct cuf_nvml_process_long))

/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx" with its final NUL; "MIG-..." for a MIG instance. */
#define CUF_NVML_UUID_BYTES 41

typedef int cuf_nvml_list(void *device, unsigned *count, void *records);

/* F(name, parameters). The numbers are on disk (cuf_meta_gpu_processes.failed): append only. */
#define CUF_NVML_FUNCTIONS(F) \
	F(nvmlInit_v2, (void)) \
	F(nvmlShutdown, (void)) \
	F(nvmlDeviceGetHandleByUUID, (const char *uuid, void **device)) \
	F(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **device)) \
	F(nvmlDeviceGetMemoryInfo_v2, (void *device, struct cuf_nvml_memory_2 *memory)) \
	F(nvmlDeviceGetMemoryInfo, (void *device, struct cuf_nvml_memory *memory)) \
	F(nvmlDeviceGetComputeRunningProcesses_v3, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetComputeRunningProcesses_v2, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetComputeRunningProcesses, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetGraphicsRunningProcesses_v3, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetGraphicsRunningProcesses_v2, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetGraphicsRunningProcesses, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetMPSComputeRunningProcesses_v3, (void *, unsigned *count, void *records)) \
	F(nvmlDeviceGetMPSComputeRunningProcesses_v2, (void *, unsigned *count, void *records))

enum cuf_nvml_function {
	CUF_NVML_NONE = 0,
#define CUF_NVML_NUMBER(name, parameters) CUF_NVML_##name,
	CUF_NVML_FUNCTIONS(CUF_NVML_NUMBER)
#undef CUF_NVML_NUMBER
	CUF_NVML_FUNCTION_MAX
};

/* The functions of a loaded NVML, by name and by number. */
struct cuf_nvml {
	union {
		struct {
#define CUF_NVML_SLOT(name, parameters) int (*name) parameters;
			CUF_NVML_FUNCTIONS(CUF_NVML_SLOT)
#undef CUF_NVML_SLOT
		};
		void *functions[CUF_NVML_FUNCTION_MAX - 1]; /* [number - 1] */
		cuf_nvml_list *lists[CUF_NVML_FUNCTION_MAX - 1];
	};
};

/*
 * The lists of processes, newest version first. The last row decides whether a reading is usable:
 * a device without graphics or MPS is still described completely.
 */
enum { CUF_NVML_VERSIONS = 3 };
static const struct cuf_nvml_list_row {
	uint8_t functions[CUF_NVML_VERSIONS]; /* enum cuf_nvml_function; CUF_NVML_NONE: no such */
					      /* version */
	uint8_t flags;                        /* of its processes: CUF_GPU_PROCESS_* */
} cuf_nvml_lists[] = {
	{ { CUF_NVML_nvmlDeviceGetGraphicsRunningProcesses_v3,
	    CUF_NVML_nvmlDeviceGetGraphicsRunningProcesses_v2,
	    CUF_NVML_nvmlDeviceGetGraphicsRunningProcesses }, CUF_GPU_PROCESS_GRAPHICS },
	{ { CUF_NVML_nvmlDeviceGetMPSComputeRunningProcesses_v3,
	    CUF_NVML_nvmlDeviceGetMPSComputeRunningProcesses_v2,
	    CUF_NVML_NONE }, CUF_GPU_PROCESS_COMPUTE },
	{ { CUF_NVML_nvmlDeviceGetComputeRunningProcesses_v3,
	    CUF_NVML_nvmlDeviceGetComputeRunningProcesses_v2,
	    CUF_NVML_nvmlDeviceGetComputeRunningProcesses }, CUF_GPU_PROCESS_COMPUTE },
};
enum { CUF_NVML_LISTS = sizeof cuf_nvml_lists / sizeof *cuf_nvml_lists };
