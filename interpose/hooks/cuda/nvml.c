/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the conversation with NVML: init, find the device, memory, lists of processes, shutdown. */
#include "interpose/hooks/cuda/nvml.h"

#include "interpose/platform/laws.h"

/* Old drivers lack some of the functions. Only those without which nothing can be read are
 * required. Returns false when one of these is missing. */
bool cuf_nvml_bind(struct cuf_nvml *nvml, void *(*find)(const void *library, const char *name),
		   const void *library)
{
#define FIND(name, parameters) nvml->name = (int (*) parameters)find(library, #name);
	CUF_NVML_FUNCTIONS(FIND)
#undef FIND
	return nvml->nvmlInit_v2 && nvml->nvmlShutdown &&
	       (nvml->nvmlDeviceGetHandleByUUID || nvml->nvmlDeviceGetHandleByPciBusId_v2);
}

/* Returns true for success. Otherwise the reading keeps the function that failed and its result. */
static bool note_result(struct cuf_gpu_reading *reading, enum cuf_nvml_function function,
			int result)
{
	if (result == CUF_NVML_SUCCESS)
		return true;
	reading->head.failed = function;
	reading->head.result = (uint32_t)result;
	return false;
}

/* ---- the device ---- */

/* NVML's text form: 8-4-4-4-12 hexadecimal digits after the prefix. */
static void format_uuid(const uint8_t uuid[16], const char *prefix, char out[CUF_NVML_UUID_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	char *at = out;
	while (*prefix)
		*at++ = *prefix++;
	for (unsigned i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = digits[uuid[i] >> 4];
		*at++ = digits[uuid[i] & 15];
	}
	*at = 0;
}

/* Old drivers report no UUID, and the recording has zeros then. */
static bool has_uuid(const struct cuf_device *device)
{
	for (unsigned i = 0; i < sizeof device->uuid; i++)
		if (device->uuid[i])
			return true;
	return false;
}

/* The UUID is that of a whole device or of a MIG instance; only NVML's answer tells which. */
static bool find_by_uuid(const struct cuf_nvml *nvml, const struct cuf_device *device,
			 void **handle, struct cuf_gpu_reading *reading)
{
	static const char *const prefixes[] = { "GPU-", "MIG-" };
	char text[CUF_NVML_UUID_BYTES];
	int result = CUF_NVML_FUNCTION_NOT_FOUND;
	for (unsigned i = 0; i < 2 && nvml->nvmlDeviceGetHandleByUUID && result; i++) {
		format_uuid(device->uuid, prefixes[i], text);
		result = nvml->nvmlDeviceGetHandleByUUID(text, handle);
	}
	return note_result(reading, CUF_NVML_nvmlDeviceGetHandleByUUID, result);
}

/* Only for a device without a UUID: a bus id names the whole device, never a MIG instance. */
static bool find_by_bus(const struct cuf_nvml *nvml, const struct cuf_device *device, void **handle,
			struct cuf_gpu_reading *reading)
{
	char text[sizeof device->pci];
	int result = CUF_NVML_FUNCTION_NOT_FOUND;
	__builtin_memcpy(text, device->pci, sizeof text);
	text[sizeof text - 1] = 0;
	if (nvml->nvmlDeviceGetHandleByPciBusId_v2)
		result = nvml->nvmlDeviceGetHandleByPciBusId_v2(text, handle);
	return note_result(reading, CUF_NVML_nvmlDeviceGetHandleByPciBusId_v2, result);
}

/* The first version counts memory that the driver reserves as used; the second one separates it. */
static void read_memory(const struct cuf_nvml *nvml, void *handle,
			struct cuf_meta_gpu_processes *head)
{
	struct cuf_nvml_memory_2 second = { .version = CUF_NVML_MEMORY_2 };
	struct cuf_nvml_memory first;
	if (nvml->nvmlDeviceGetMemoryInfo_v2 &&
	    !nvml->nvmlDeviceGetMemoryInfo_v2(handle, &second)) {
		head->total_bytes = second.total_bytes;
		head->used_bytes = second.used_bytes;
		head->free_bytes = second.free_bytes;
		head->reserved_bytes = second.reserved_bytes;
	} else if (nvml->nvmlDeviceGetMemoryInfo &&
		   !nvml->nvmlDeviceGetMemoryInfo(handle, &first)) {
		head->total_bytes = first.total_bytes;
		head->used_bytes = first.used_bytes;
		head->free_bytes = first.free_bytes;
	}
}

/* ---- lists of processes ---- */

/* Unknown counts as less than any figure. */
static bool is_more(uint64_t bytes, uint64_t than)
{
	return bytes != CUF_UNKNOWN && (than == CUF_UNKNOWN || than < bytes);
}

/* A process may be in several lists. It is stored once, since each list has all of its memory. */
static void add_process(struct cuf_gpu_reading *reading, const struct cuf_nvml_process *process,
			unsigned flags)
{
	struct cuf_gpu_process *stored = reading->processes;
	struct cuf_gpu_process *end = stored + reading->head.stored_count;
	while (stored < end && stored->pid != process->pid)
		stored++;
	if (stored == end) {
		reading->head.reported_count++;
		if (reading->head.stored_count == CUF_GPU_PROCESSES_MAX)
			return;
		reading->head.stored_count++;
		*stored = (struct cuf_gpu_process){ .pid = process->pid,
						    .used_bytes = process->used_bytes };
	} else if (is_more(process->used_bytes, stored->used_bytes)) {
		stored->used_bytes = process->used_bytes;
	}
	stored->flags |= flags;
}

/* Length of one record, measured by what was written over the mark. 0: not a known length. */
static size_t measure_record(const uint8_t *room, unsigned count)
{
	size_t written = CUF_NVML_ROOM_BYTES, bytes;
	while (written && room[written - 1] == CUF_NVML_MARK)
		written--;
	bytes = (written + count - 1) / count;
	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes == 16 || bytes == 24 || bytes == 32)
		return bytes;
	return 0;
}

/* A list that does not fit returns only its length. Then no process of it is stored. */
static void read_list(cuf_nvml_list *list, enum cuf_nvml_function function, void *handle,
		      uint8_t *room, unsigned flags, struct cuf_gpu_reading *reading)
{
	unsigned count = CUF_GPU_PROCESSES_MAX;
	size_t bytes;
	int result;
	__builtin_memset(room, CUF_NVML_MARK, CUF_NVML_ROOM_BYTES);
	result = list(handle, &count, room);
	if (result == CUF_NVML_INSUFFICIENT_SIZE)
		reading->head.reported_count += count;
	if (!note_result(reading, function, result) || !count)
		return;
	bytes = measure_record(room, count);
	if (!bytes || count > CUF_GPU_PROCESSES_MAX) {
		reading->head.flags |= CUF_GPU_PROCESSES_LAYOUT;
		return;
	}
	for (unsigned i = 0; i < count; i++)
		add_process(reading, (const void *)(room + i * bytes), flags);
}

/* The newest version of this list that the driver has. */
static enum cuf_nvml_function newest_version(const struct cuf_nvml *nvml,
					     const struct cuf_nvml_list_row *row)
{
	for (unsigned i = 0; i < CUF_NVML_VERSIONS; i++)
		if (row->functions[i] && nvml->functions[row->functions[i] - 1])
			return row->functions[i];
	return CUF_NVML_NONE;
}

/* Graphics and MPS lists come first: the compute list is the one that must succeed. */
static void read_lists(const struct cuf_nvml *nvml, void *handle, uint8_t *room,
		       struct cuf_gpu_reading *reading)
{
	for (unsigned i = 0; i < CUF_NVML_LISTS; i++) {
		const struct cuf_nvml_list_row *row = &cuf_nvml_lists[i];
		enum cuf_nvml_function function = newest_version(nvml, row);
		/* only a failure of the last list counts */
		reading->head.failed = reading->head.result = 0;
		if (function)
			read_list(nvml->lists[function - 1], function, handle, room, row->flags,
				  reading);
		else
			note_result(reading, row->functions[0], CUF_NVML_FUNCTION_NOT_FOUND);
	}
}

struct cuf_meta_gpu_processes cuf_nvml_nothing(uint32_t ordinal)
{
	return (struct cuf_meta_gpu_processes){
		.meta = { .type = CUF_META_GPU_PROCESSES }, .device = ordinal,
		.total_bytes = CUF_UNKNOWN, .used_bytes = CUF_UNKNOWN,
		.free_bytes = CUF_UNKNOWN, .reserved_bytes = CUF_UNKNOWN
	};
}

/* Init and shutdown are a pair in every case, so NVML's count stays as it was. */
void cuf_nvml_read(const struct cuf_nvml *nvml, const struct cuf_device *device, uint8_t *room,
		   struct cuf_gpu_reading *reading)
{
	void *handle = NULL;
	bool found;
	reading->head = cuf_nvml_nothing(device->ordinal);
	if (!note_result(reading, CUF_NVML_nvmlInit_v2, nvml->nvmlInit_v2()))
		return;
	if (has_uuid(device))
		found = find_by_uuid(nvml, device, &handle, reading);
	else
		found = find_by_bus(nvml, device, &handle, reading);
	if (found) {
		read_memory(nvml, handle, &reading->head);
		read_lists(nvml, handle, room, reading);
	}
	nvml->nvmlShutdown();
}
