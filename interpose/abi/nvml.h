/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML, as far as it says who holds a device: its functions, its layouts (declared here from NVIDIA's nvml.h and nvidia-ml-py,
 * so that nothing of NVIDIA's is needed to build) and one reading of it, written once because neither side may be built from
 * the other's sources.
 *
 * Contract: no allocation, no lock of ours, no libc but what the compiler makes of a copy. NVML counts its initialisations,
 * so init and shutdown in pairs leave a program's own as they were; it is thread-safe and calls nobody back. Functions that
 * a driver does not have are NULL. Any answer may be wrong: counts are clamped, lengths are measured.
 */
#ifndef CUF_NVML_H
#define CUF_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/tenants.h"

#define CUF_NVML_SONAME "libnvidia-ml.so.1"

enum { CUF_NVML_SUCCESS = 0, CUF_NVML_INSUFFICIENT_SIZE = 7, CUF_NVML_FUNCTION_NOT_FOUND = 13 };

struct cuf_nvml_memory { uint64_t total_bytes, free_bytes, used_bytes; };
#define CUF_NVML_MEMORY_2 (2u << 24 | (unsigned)sizeof(struct cuf_nvml_memory_2))
struct cuf_nvml_memory_2 { uint32_t version, padding; uint64_t total_bytes, reserved_bytes, free_bytes, used_bytes; };

/* A process: 16 bytes at first, 24 since version 2; version 3 of two releases of driver 535 has 32. */
struct cuf_nvml_process { uint32_t pid, padding; uint64_t used_bytes; /* all ones: not available */ };
struct cuf_nvml_process_long { struct cuf_nvml_process process; uint32_t gpu_instance, compute_instance; uint64_t protected_bytes; };

typedef int cuf_nvml_list(void *device, unsigned *count, void *records);

/* F(name, parameters). Numbered on disk (cuf_meta_tenants.failed): append only. */
#define CUF_NVML_FUNCTIONS(F) \
	F(nvmlInit_v2, (void)) \
	F(nvmlShutdown, (void)) \
	F(nvmlDeviceGetHandleByUUID, (const char *uuid, void **device)) \
	F(nvmlDeviceGetHandleByPciBusId_v2, (const char *bus, void **device)) \
	F(nvmlDeviceGetMemoryInfo_v2, (void *device, struct cuf_nvml_memory_2 *memory)) \
	F(nvmlDeviceGetMemoryInfo, (void *device, struct cuf_nvml_memory *memory)) \
	F(nvmlDeviceGetComputeRunningProcesses_v3, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetComputeRunningProcesses_v2, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetComputeRunningProcesses, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetGraphicsRunningProcesses_v3, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetGraphicsRunningProcesses_v2, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetGraphicsRunningProcesses, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetMPSComputeRunningProcesses_v3, (void *device, unsigned *count, void *records)) \
	F(nvmlDeviceGetMPSComputeRunningProcesses_v2, (void *device, unsigned *count, void *records))

enum cuf_nvml_function {
	CUF_NVML_NONE = 0,
#define CUF_NVML_NUMBER(name, parameters) CUF_NVML_##name,
	CUF_NVML_FUNCTIONS(CUF_NVML_NUMBER)
#undef CUF_NVML_NUMBER
	CUF_NVML_FUNCTION_MAX
};

struct cuf_nvml {
#define CUF_NVML_SLOT(name, parameters) int (*name) parameters;
	CUF_NVML_FUNCTIONS(CUF_NVML_SLOT)
#undef CUF_NVML_SLOT
};

/* false: it lacks what every NVML has. */
static inline bool cuf_nvml_bind(struct cuf_nvml *nvml, void *(*find)(const void *where, const char *name), const void *where)
{
#define CUF_NVML_FIND(name, parameters) nvml->name = (int (*) parameters)find(where, #name);
	CUF_NVML_FUNCTIONS(CUF_NVML_FIND)
#undef CUF_NVML_FIND
	return nvml->nvmlInit_v2 && nvml->nvmlShutdown && (nvml->nvmlDeviceGetHandleByUUID || nvml->nvmlDeviceGetHandleByPciBusId_v2);
}

/* One reading, as it goes to META. */
struct cuf_nvml_reading { struct cuf_meta_tenants head; struct cuf_tenant tenants[CUF_TENANTS_MAX]; };

static inline size_t cuf_nvml_reading_bytes(const struct cuf_nvml_reading *reading)
{
	return offsetof(struct cuf_nvml_reading, tenants) + reading->head.tenant_count * sizeof *reading->tenants;
}

/* "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"; the prefix has four characters. */
#define CUF_NVML_UUID_BYTES 41
static inline void cuf_nvml_uuid_text(const uint8_t uuid[16], const char *prefix, char out[CUF_NVML_UUID_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char *at = out;
	for (unsigned i = 0; i < 4; i++)
		*at++ = prefix[i];
	for (unsigned i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[uuid[i] >> 4];
		*at++ = digits[uuid[i] & 15];
	}
	*at = 0;
}

static inline bool cuf_nvml_note(struct cuf_nvml_reading *reading, enum cuf_nvml_function function, int result)
{
	if (result == CUF_NVML_SUCCESS)
		return true;
	reading->head.failed = function;
	reading->head.result = (uint32_t)result;
	return false;
}

/* By UUID, as a whole device or as a MIG instance; by bus only where there is no UUID, since a bus is of the whole device. */
static inline bool cuf_nvml_find(const struct cuf_nvml *nvml, const struct cuf_device *device, void **handle, struct cuf_nvml_reading *reading)
{
	static const char prefixes[2][5] = { "GPU-", "MIG-" };
	char text[CUF_NVML_UUID_BYTES];
	uint8_t any = 0;
	int result = CUF_NVML_FUNCTION_NOT_FOUND;
	for (unsigned i = 0; i < sizeof device->uuid; i++)
		any |= device->uuid[i];
	for (unsigned i = 0; any && i < 2 && nvml->nvmlDeviceGetHandleByUUID && result; i++) {
		cuf_nvml_uuid_text(device->uuid, prefixes[i], text);
		result = nvml->nvmlDeviceGetHandleByUUID(text, handle);
	}
	if (any)
		return cuf_nvml_note(reading, CUF_NVML_nvmlDeviceGetHandleByUUID, result);
	for (unsigned i = 0; i < sizeof device->pci; i++)
		text[i] = device->pci[i];
	text[sizeof device->pci - 1] = 0;
	if (nvml->nvmlDeviceGetHandleByPciBusId_v2)
		result = nvml->nvmlDeviceGetHandleByPciBusId_v2(text, handle);
	return cuf_nvml_note(reading, CUF_NVML_nvmlDeviceGetHandleByPciBusId_v2, result);
}

static inline void cuf_nvml_read_memory(const struct cuf_nvml *nvml, void *handle, struct cuf_meta_tenants *head)
{
	struct cuf_nvml_memory_2 second = { .version = CUF_NVML_MEMORY_2 };
	struct cuf_nvml_memory first;
	head->total_bytes = head->used_bytes = head->free_bytes = head->reserved_bytes = CUF_UNKNOWN;
	if (nvml->nvmlDeviceGetMemoryInfo_v2 && !nvml->nvmlDeviceGetMemoryInfo_v2(handle, &second)) {
		head->total_bytes = second.total_bytes;
		head->used_bytes = second.used_bytes;
		head->free_bytes = second.free_bytes;
		head->reserved_bytes = second.reserved_bytes;
	} else if (nvml->nvmlDeviceGetMemoryInfo && !nvml->nvmlDeviceGetMemoryInfo(handle, &first)) {
		head->total_bytes = first.total_bytes;
		head->used_bytes = first.used_bytes;
		head->free_bytes = first.free_bytes;
	}
}

/* A process may be in several lists: it is one tenant, and each list has all of its memory. */
static inline void cuf_nvml_add(struct cuf_nvml_reading *reading, const struct cuf_nvml_process *process, unsigned flags)
{
	struct cuf_tenant *t = reading->tenants, *end = t + reading->head.tenant_count;
	while (t < end && t->pid != process->pid)
		t++;
	if (t == end) {
		reading->head.process_count++;
		if (reading->head.tenant_count == CUF_TENANTS_MAX)
			return;
		reading->head.tenant_count++;
		*t = (struct cuf_tenant){ .pid = process->pid, .used_bytes = process->used_bytes };
	} else if (process->used_bytes != CUF_UNKNOWN && (t->used_bytes == CUF_UNKNOWN || t->used_bytes < process->used_bytes)) {
		t->used_bytes = process->used_bytes;
	}
	t->flags |= flags;
}

/*
 * How long a record is is seen, not believed: the room is filled with a mark beforehand, and what was written over it ends
 * with the last record. 0: not one of the lengths known.
 */
#define CUF_NVML_MARK 0xa5
static inline size_t cuf_nvml_record_bytes(const uint8_t *room, size_t room_bytes, unsigned count)
{
	size_t written = room_bytes, bytes;
	while (written && room[written - 1] == CUF_NVML_MARK)
		written--;
	bytes = count ? (written + count - 1) / count : 0;
	bytes = (bytes + 7) & ~(size_t)7;
	return bytes == 16 || bytes == 24 || bytes == 32 ? bytes : 0;
}

/* room: for CUF_TENANTS_MAX of the longest records; aligned as they are. */
#define CUF_NVML_ROOM_BYTES (CUF_TENANTS_MAX * sizeof(struct cuf_nvml_process_long))
static inline bool cuf_nvml_read_list(cuf_nvml_list *list, enum cuf_nvml_function function, void *handle, uint8_t *room, unsigned flags,
				      struct cuf_nvml_reading *reading)
{
	unsigned count = CUF_TENANTS_MAX;
	int result;
	size_t bytes;
	for (size_t i = 0; i < CUF_NVML_ROOM_BYTES; i++)
		room[i] = CUF_NVML_MARK;
	result = list(handle, &count, room);
	if (result == CUF_NVML_INSUFFICIENT_SIZE)
		reading->head.process_count += count;
	if (!cuf_nvml_note(reading, function, result) || !count)
		return result == CUF_NVML_SUCCESS;
	bytes = cuf_nvml_record_bytes(room, CUF_NVML_ROOM_BYTES, count);
	if (!bytes || count > CUF_TENANTS_MAX) {
		reading->head.flags |= CUF_TENANTS_LAYOUT;
		return false;
	}
	for (unsigned i = 0; i < count; i++)
		cuf_nvml_add(reading, (const struct cuf_nvml_process *)(const void *)(room + i * bytes), flags);
	return true;
}

/* The newest version of each list that there is. Compute processes decide whether the reading tells who is there. */
static inline void cuf_nvml_read_lists(const struct cuf_nvml *nvml, void *handle, uint8_t *room, struct cuf_nvml_reading *reading)
{
#define CUF_NVML_NEWEST(a, b, c) (nvml->a ? nvml->a : nvml->b ? nvml->b : c), (nvml->a ? CUF_NVML_##a : CUF_NVML_##b)
	const struct { cuf_nvml_list *list; enum cuf_nvml_function function; unsigned flags; } lists[] = {
		{ CUF_NVML_NEWEST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlDeviceGetGraphicsRunningProcesses_v2, nvml->nvmlDeviceGetGraphicsRunningProcesses), CUF_TENANT_GRAPHICS },
		{ CUF_NVML_NEWEST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlDeviceGetMPSComputeRunningProcesses_v2, NULL), CUF_TENANT_COMPUTE },
		{ CUF_NVML_NEWEST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2, nvml->nvmlDeviceGetComputeRunningProcesses), CUF_TENANT_COMPUTE },
	};
#undef CUF_NVML_NEWEST
	unsigned last = sizeof lists / sizeof *lists - 1;
	for (unsigned i = 0; i < last; i++)
		if (lists[i].list)
			cuf_nvml_read_list(lists[i].list, lists[i].function, handle, room, lists[i].flags, reading);
	reading->head.failed = reading->head.result = 0; /* a device without graphics or MPS is none the worse */
	if (!lists[last].list)
		cuf_nvml_note(reading, lists[last].function, CUF_NVML_FUNCTION_NOT_FOUND);
	else
		cuf_nvml_read_list(lists[last].list, lists[last].function, handle, room, lists[last].flags, reading);
}

/* Asks NVML who holds the device. head.failed says what refused; names of processes are the caller's to add. */
static inline void cuf_nvml_read(const struct cuf_nvml *nvml, const struct cuf_device *device, uint8_t *room, struct cuf_nvml_reading *reading)
{
	void *handle = NULL;
	reading->head = (struct cuf_meta_tenants){ .meta = { .type = CUF_META_TENANTS }, .device = device->ordinal,
		.total_bytes = CUF_UNKNOWN, .used_bytes = CUF_UNKNOWN, .free_bytes = CUF_UNKNOWN, .reserved_bytes = CUF_UNKNOWN };
	if (!cuf_nvml_note(reading, CUF_NVML_nvmlInit_v2, nvml->nvmlInit_v2()))
		return;
	if (cuf_nvml_find(nvml, device, &handle, reading)) {
		cuf_nvml_read_memory(nvml, handle, &reading->head);
		cuf_nvml_read_lists(nvml, handle, room, reading);
	}
	nvml->nvmlShutdown();
}

#endif
