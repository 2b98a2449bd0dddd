/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated libnvidia-ml.so.1: which process holds how much of a device, from the shared state
 * of the simulated driver and from SIMCUDA_TENANTS. Names, layouts and results are those of nvml.h.
 * NVML_ERA is the driver's release: 450 has only the first names, 535 is one of the few releases
 * whose third version had longer records, 580 is the present.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/abi/nvml.h"
#include "tests/sim/driver.h"

enum { UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, USERS_MAX = 128 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned initialised;

/* SIMCUDA_NVML_FAIL=NAME:CODE: this function answers with this code; CODE hang: it never answers.
 * Comma-separated. */
static int failure_of(const char *name)
{
	const char *text = getenv("SIMCUDA_NVML_FAIL"), *at = text ? strstr(text, name) : NULL;
	size_t length = strlen(name);
	if (!at || (at != text && at[-1] != ',') || at[length] != ':')
		return 0;
	while (!strncmp(at + length + 1, "hang", 4))
		pause();
	return atoi(at + length + 1);
}

static int enter(const char *name)
{
	int result = failure_of(name);
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	result = initialised ? 0 : UNINITIALIZED;
	pthread_mutex_unlock(&lock);
	return result;
}

#define NVML(name, params) API int name params; API int name params

NVML(nvmlInit_v2, (void))
{
	int result = failure_of("nvmlInit_v2");
	if (result || !device_look())
		return result ? result : 9; /* no driver */
	pthread_mutex_lock(&lock);
	initialised++;
	pthread_mutex_unlock(&lock);
	return 0;
}

NVML(nvmlInit, (void)) { return nvmlInit_v2(); }
NVML(nvmlInitWithFlags, (unsigned flags)) { return nvmlInit_v2(); }

NVML(nvmlShutdown, (void))
{
	int result = enter("nvmlShutdown");
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	initialised--;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* A handle is the address of its number. */
static int handles[DEVICES_MAX];
static int device_of(const void *handle) { return (int)((const int *)handle - handles); }
static bool is_handle(const void *handle) { return (const int *)handle >= handles && (const int *)handle < handles + settings.devices; }

static int give(void **handle, int device)
{
	if (device < 0 || device >= settings.devices)
		return NOT_FOUND;
	*handle = &handles[device];
	return 0;
}

NVML(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **handle))
{
	int result = enter("nvmlDeviceGetHandleByPciBusId_v2");
	for (int device = 0; !result && device < settings.devices; device++) {
		char own[32];
		snprintf(own, sizeof own, SIM_PCI_FORMAT, device + 1);
		if (!strcmp(own, bus))
			return give(handle, device);
	}
	return result ? result : NOT_FOUND;
}

NVML(nvmlDeviceGetHandleByUUID, (const char *uuid, void **handle))
{
	int result = enter("nvmlDeviceGetHandleByUUID");
	for (int device = 0; !result && device < settings.devices; device++) {
		uint8_t bytes[16];
		char own[CUF_NVML_UUID_BYTES] = "GPU-";
		memcpy(bytes, SIM_UUID_STEM, 15);
		bytes[15] = (uint8_t)device;
		for (int i = 0, at = 4; i < 16; i++)
			at += sprintf(own + at, "%s%02x", i >= 4 && i <= 10 && i % 2 == 0 ? "-" : "", bytes[i]);
		if (!strcmp(own, uuid))
			return give(handle, device);
	}
	return result ? result : NOT_FOUND;
}

NVML(nvmlDeviceGetMemoryInfo, (void *handle, struct cuf_nvml_memory *memory))
{
	int result = enter("nvmlDeviceGetMemoryInfo");
	if (result || !is_handle(handle))
		return result ? result : INVALID_ARGUMENT;
	memory->total_bytes = settings.total_bytes;
	memory->free_bytes = device_free_bytes(device_of(handle));
	memory->used_bytes = memory->total_bytes - memory->free_bytes;
	return 0;
}

#if NVML_ERA > 450
NVML(nvmlDeviceGetMemoryInfo_v2, (void *handle, struct cuf_nvml_memory_2 *memory))
{
	int result = enter("nvmlDeviceGetMemoryInfo_v2");
	if (result || !is_handle(handle))
		return result ? result : INVALID_ARGUMENT;
	if (memory->version != CUF_NVML_MEMORY_2)
		return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
	memory->total_bytes = settings.total_bytes;
	memory->reserved_bytes = 0;
	memory->free_bytes = device_free_bytes(device_of(handle));
	memory->used_bytes = memory->total_bytes - memory->free_bytes;
	return 0;
}
#endif

/* SIMCUDA_NVML_PIDS=N: process ids are those of another pid namespace, N higher. */
static uint32_t pid_there(uint32_t pid)
{
	const char *higher = getenv("SIMCUDA_NVML_PIDS");
	return pid + (higher ? (uint32_t)strtoul(higher, NULL, 10) : 0);
}

/* Records of three lengths: of each, what comes first is the same. */
static int list(const char *name, const void *handle, unsigned *count, uint8_t *records, size_t record_bytes)
{
	struct device_user users[USERS_MAX];
	unsigned all, room;
	int result = enter(name);
	if (result || !is_handle(handle) || !count)
		return result ? result : INVALID_ARGUMENT;
	all = device_users(device_of(handle), users, USERS_MAX);
	room = *count;
	*count = all;
	if (all > room)
		return INSUFFICIENT_SIZE;
	for (unsigned i = 0; i < all; i++) {
		struct cuf_nvml_process_long record = { { pid_there(users[i].pid), 0, users[i].untold ? UINT64_MAX : users[i].bytes }, UINT32_MAX, UINT32_MAX, 0 };
		memcpy(records + i * record_bytes, &record, record_bytes);
	}
	return 0;
}

static int no_list(const char *name, unsigned *count)
{
	int result = enter(name);
	if (!result)
		*count = 0;
	return result;
}

#define LIST(name, bytes) NVML(name, (void *handle, unsigned *count, void *records)) { return list(#name, handle, count, records, bytes); }
#define NO_LIST(name) NVML(name, (void *handle, unsigned *count, void *records)) { return no_list(#name, count); }

LIST(nvmlDeviceGetComputeRunningProcesses, 16)
NO_LIST(nvmlDeviceGetGraphicsRunningProcesses)
#if NVML_ERA > 450
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 24)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, NVML_ERA == 535 ? 32 : 24)
NO_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)
#endif

/* PyTorch insists on these before it maps memory; a device without links supports none of them. */
#define UNSUPPORTED(name) NVML(name, (void)) { return NOT_SUPPORTED; }
UNSUPPORTED(nvmlDeviceGetNvLinkRemoteDeviceType)
UNSUPPORTED(nvmlDeviceGetNvLinkRemotePciInfo_v2)
UNSUPPORTED(nvmlSystemGetCudaDriverVersion_v2)
UNSUPPORTED(nvmlDeviceGetGpuFabricInfoV)
