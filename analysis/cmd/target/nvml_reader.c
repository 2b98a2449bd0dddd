/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of one reading, in order: init, handle, memory, lists, shutdown. */
#include "analysis/cmd/target/nvml_reader.h"

#include <stdio.h>
#include <string.h>

bool nvml_bind(struct cuf_nvml *nvml, void *(*find)(const void *library, const char *name),
	       const void *library)
{
	static const char *const names[] = {
#define NAME(name, parameters) #name,
		CUF_NVML_FUNCTIONS(NAME)
#undef NAME
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		nvml->functions[i] = find(library, names[i]);
	return nvml->nvmlInit_v2 && nvml->nvmlShutdown &&
	       (nvml->nvmlDeviceGetHandleByUUID || nvml->nvmlDeviceGetHandleByPciBusId_v2);
}

static bool keep_result(struct cuf_gpu_reading *reading, enum cuf_nvml_function function,
			int result)
{
	if (result) {
		reading->head.failed = function;
		reading->head.result = (uint32_t)result;
	}
	return !result;
}

static void uuid_text(const uint8_t *u, const char *prefix, char out[CUF_NVML_UUID_BYTES])
{
	snprintf(out, CUF_NVML_UUID_BYTES,
		 "%s%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix,
		 u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7],
		 u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

/* By UUID, of a whole device or of a MIG instance. By bus id only where there is no UUID: a bus id
 * is that of the whole device. */
static bool find_device(const struct cuf_nvml *nvml, const struct cuf_device *device, void **handle,
			struct cuf_gpu_reading *reading)
{
	static const uint8_t none[sizeof device->uuid];
	char text[CUF_NVML_UUID_BYTES];
	int result = CUF_NVML_FUNCTION_NOT_FOUND;
	if (!memcmp(device->uuid, none, sizeof none)) {
		snprintf(text, sizeof text, "%.*s", (int)sizeof device->pci - 1, device->pci);
		if (nvml->nvmlDeviceGetHandleByPciBusId_v2)
			result = nvml->nvmlDeviceGetHandleByPciBusId_v2(text, handle);
		return keep_result(reading, CUF_NVML_nvmlDeviceGetHandleByPciBusId_v2, result);
	}
	if (nvml->nvmlDeviceGetHandleByUUID) {
		uuid_text(device->uuid, "GPU-", text);
		result = nvml->nvmlDeviceGetHandleByUUID(text, handle);
		if (result) {
			uuid_text(device->uuid, "MIG-", text);
			result = nvml->nvmlDeviceGetHandleByUUID(text, handle);
		}
	}
	return keep_result(reading, CUF_NVML_nvmlDeviceGetHandleByUUID, result);
}

static void read_memory(const struct cuf_nvml *nvml, void *handle,
			struct cuf_meta_gpu_processes *head)
{
	struct cuf_nvml_memory_2 memory = { .version = CUF_NVML_MEMORY_2 };
	struct cuf_nvml_memory old;
	if (nvml->nvmlDeviceGetMemoryInfo_v2 &&
	    !nvml->nvmlDeviceGetMemoryInfo_v2(handle, &memory)) {
		head->reserved_bytes = memory.reserved_bytes;
	} else if (nvml->nvmlDeviceGetMemoryInfo && !nvml->nvmlDeviceGetMemoryInfo(handle, &old)) {
		memory.total_bytes = old.total_bytes;
		memory.used_bytes = old.used_bytes;
		memory.free_bytes = old.free_bytes;
	} else {
		return;
	}
	head->total_bytes = memory.total_bytes;
	head->used_bytes = memory.used_bytes;
	head->free_bytes = memory.free_bytes;
}

/* A process that is in several lists is stored once, with the largest figure. */
static void add_holder(struct cuf_gpu_reading *reading, const struct cuf_nvml_process *process,
		       unsigned flags)
{
	struct cuf_gpu_process *stored = NULL;
	for (uint32_t i = 0; i < reading->head.stored_count && !stored; i++)
		if (reading->processes[i].pid == process->pid)
			stored = &reading->processes[i];
	if (!stored) {
		reading->head.reported_count++;
		if (reading->head.stored_count == CUF_GPU_PROCESSES_MAX)
			return;
		stored = &reading->processes[reading->head.stored_count++];
		*stored = (struct cuf_gpu_process){
			.pid = process->pid,
			.used_bytes = CUF_UNKNOWN,
		};
	}
	if (process->used_bytes != CUF_UNKNOWN &&
	    (stored->used_bytes == CUF_UNKNOWN || stored->used_bytes < process->used_bytes))
		stored->used_bytes = process->used_bytes;
	stored->flags |= flags;
}

/* How long a record is, by what was written over the mark. 0: not a known length. */
static size_t record_bytes(const uint8_t *room, unsigned count)
{
	size_t written = CUF_NVML_ROOM_BYTES, bytes;
	while (written && room[written - 1] == CUF_NVML_MARK)
		written--;
	bytes = ((written + count - 1) / count + 7) & ~(size_t)7;
	return bytes == 16 || bytes == 24 || bytes == 32 ? bytes : 0;
}

static void read_list(const struct cuf_nvml *nvml, enum cuf_nvml_function function, void *handle,
		      uint8_t *room, unsigned flags, struct cuf_gpu_reading *reading)
{
	unsigned count = CUF_GPU_PROCESSES_MAX;
	size_t bytes;
	int result;
	memset(room, CUF_NVML_MARK, CUF_NVML_ROOM_BYTES);
	result = nvml->lists[function - 1](handle, &count, room);
	if (result == CUF_NVML_INSUFFICIENT_SIZE)
		reading->head.reported_count += count;
	if (!keep_result(reading, function, result) || !count)
		return;
	bytes = record_bytes(room, count);
	if (!bytes || count > CUF_GPU_PROCESSES_MAX) {
		reading->head.flags |= CUF_GPU_PROCESSES_LAYOUT;
		return;
	}
	for (unsigned i = 0; i < count; i++)
		add_holder(reading, (const void *)(room + i * bytes), flags);
}

/* The newest version of each list. A failure counts only for the last, the compute processes. */
static void read_lists(const struct cuf_nvml *nvml, void *handle, uint8_t *room,
		       struct cuf_gpu_reading *reading)
{
	for (unsigned i = 0; i < CUF_NVML_LISTS; i++) {
		const uint8_t *version = cuf_nvml_lists[i].functions;
		const uint8_t *end = version + CUF_NVML_VERSIONS;
		while (version < end && !(*version && nvml->functions[*version - 1]))
			version++;
		reading->head.failed = reading->head.result = 0;
		if (version < end)
			read_list(nvml, *version, handle, room, cuf_nvml_lists[i].flags, reading);
		else
			keep_result(reading, cuf_nvml_lists[i].functions[0],
				    CUF_NVML_FUNCTION_NOT_FOUND);
	}
}

void nvml_read(const struct cuf_nvml *nvml, const struct cuf_device *device, uint8_t *room,
	       struct cuf_gpu_reading *reading)
{
	void *handle = NULL;
	reading->head = (struct cuf_meta_gpu_processes){
		.meta = { .type = CUF_META_GPU_PROCESSES }, .device = device->ordinal,
		.total_bytes = CUF_UNKNOWN, .used_bytes = CUF_UNKNOWN,
		.free_bytes = CUF_UNKNOWN, .reserved_bytes = CUF_UNKNOWN };
	if (!keep_result(reading, CUF_NVML_nvmlInit_v2, nvml->nvmlInit_v2()))
		return;
	if (find_device(nvml, device, &handle, reading)) {
		read_memory(nvml, handle, &reading->head);
		read_lists(nvml, handle, room, reading);
	}
	nvml->nvmlShutdown();
}
