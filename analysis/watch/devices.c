/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the devices of processes by UUID. */
#include "analysis/watch/devices.h"

#include <string.h>
#include "analysis/base/numbers.h"

bool watch_is_same_device(const uint8_t a[16], unsigned a_ordinal, const uint8_t b[16],
			  unsigned b_ordinal)
{
	static const uint8_t none[16];

	return !memcmp(a, b, 16) && (memcmp(a, none, 16) || a_ordinal == b_ordinal);
}

const struct pass_device *watch_device_of(const struct watch_process *process,
					  const uint8_t uuid[16], unsigned ordinal)
{
	for (size_t i = 0; process->pass && i < process->pass->device_count; i++) {
		const struct pass_device *device = &process->pass->devices[i];
		if (watch_is_same_device(device->uuid, device->ordinal, uuid, ordinal))
			return device;
	}
	return NULL;
}

static struct watch_device *place_of_device(struct watch_device *out, size_t *count,
					    const struct cuf_device *device)
{
	for (size_t i = 0; i < *count; i++)
		if (watch_is_same_device(out[i].uuid, out[i].gpu, device->uuid, device->ordinal))
			return &out[i];
	if (*count == WATCH_DEVICES)
		return NULL;
	out[*count] = (struct watch_device){ .gpu = device->ordinal };
	memcpy(out[*count].uuid, device->uuid, sizeof device->uuid);
	return &out[(*count)++];
}

static uint64_t own_bytes(const struct pass_device *device)
{
	uint64_t sum = 0;

	for (unsigned owner = 0; owner < WATCH_OWN_MAX; owner++)
		sum += device->owners[owner];
	return sum;
}

/* Free memory is the driver's, as the newest pass has it. */
static void take_pass(struct watch_device *to, const struct watch_process *process,
		      uint64_t *newest_ns)
{
	const struct pass_device *device = watch_device_of(process, to->uuid, to->gpu);

	if (!device)
		return;
	to->own_bytes += own_bytes(device);
	to->total_bytes = most_of(to->total_bytes, device->total_bytes);
	to->has_pass = true;
	if (process->pass_ns < *newest_ns)
		return;
	*newest_ns = process->pass_ns;
	to->rest[WATCH_FREE] = device->owners[WATCH_FREE];
	/* for the newest process, all others are others: see balance */
	to->rest[WATCH_OTHER_PROCESSES] = device->owners[WATCH_OTHER_PROCESSES] +
					  own_bytes(device);
}

/* What is neither free nor of a recorded process is of others, as far as they were seen. */
static void balance(struct watch_device *device)
{
	uint64_t others = subtract_to_zero(device->rest[WATCH_OTHER_PROCESSES], device->own_bytes);
	uint64_t left;

	device->total_bytes = most_of(device->total_bytes, device->own_bytes);
	left = device->total_bytes - device->own_bytes;
	device->rest[WATCH_FREE] = least_of(device->rest[WATCH_FREE], left);
	left -= device->rest[WATCH_FREE];
	device->rest[WATCH_OTHER_PROCESSES] = least_of(others, left);
	device->rest[WATCH_UNEXPLAINED] = left - device->rest[WATCH_OTHER_PROCESSES];
}

size_t watch_devices(const struct watch *watch, struct watch_device out[WATCH_DEVICES])
{
	size_t count = 0;

	for (size_t i = 0; i < watch->count; i++) {
		const struct watch_process *process = watch->processes[i];

		for (size_t d = 0; watch_runs(process) && d < process->levels.device_count; d++) {
			const struct cuf_device *device = &process->levels.devices[d];
			struct watch_device *to = place_of_device(out, &count, device);

			if (to && device->total_bytes != CUF_UNKNOWN)
				to->total_bytes = most_of(to->total_bytes, device->total_bytes);
		}
	}
	for (size_t d = 0; d < count; d++) {
		uint64_t newest_ns = 0;

		for (size_t i = 0; i < watch->count; i++)
			if (watch_runs(watch->processes[i]))
				take_pass(&out[d], watch->processes[i], &newest_ns);
		balance(&out[d]);
	}
	return count;
}
