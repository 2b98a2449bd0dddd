/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/run/nvml.h"

#include <stddef.h>
#include <time.h>
#include "analysis/base/clock.h"
#include "analysis/cmd/target/ask.h"

/* The child may have been killed while it wrote. Counts are checked before they are used. */
static bool is_complete_answer(const struct cuf_gpu_reading *reading, ssize_t bytes)
{
	return bytes >= (ssize_t)offsetof(struct cuf_gpu_reading, processes) &&
	       reading->head.stored_count <= CUF_GPU_PROCESSES_MAX &&
	       bytes == (ssize_t)cuf_gpu_reading_bytes(reading);
}

/* The reading of a driver that did not answer in time. */
static void note_timeout(struct cuf_gpu_reading *reading)
{
	*reading = (struct cuf_gpu_reading){ .head = {
		.meta = { .type = CUF_META_GPU_PROCESSES },
		.failed = CUF_NVML_nvmlInit_v2,
		.result = CUF_NVML_TIMEOUT,
		.total_bytes = CUF_UNKNOWN,
		.used_bytes = CUF_UNKNOWN,
		.free_bytes = CUF_UNKNOWN,
		.reserved_bytes = CUF_UNKNOWN,
	} };
}

bool nvml_query(const struct cuf_device *device, struct cuf_gpu_reading *reading)
{
	const struct question question = { { "nvml" }, device, sizeof *device };
	ssize_t bytes = ask(&question, reading, sizeof *reading);

	if (bytes < 0)
		note_timeout(reading);
	else if (!is_complete_answer(reading, bytes))
		return false;
	reading->head.meta.time_ns = clock_ns(CLOCK_MONOTONIC);
	reading->head.device = device->ordinal;
	reading->head.flags |= CUF_GPU_PROCESSES_BY_RUN;
	return true;
}
