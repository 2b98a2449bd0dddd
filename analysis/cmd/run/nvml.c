/* SPDX-License-Identifier: Apache-2.0 */
/* fork; in the child dlopen, query, and write the answer to a pipe. */
#include "analysis/cmd/run/nvml.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/cmd/run/nvml_reader.h"

enum { PATIENCE_MS = 2000 };

/* ---- the child ---- */

static void *find_function(const void *library, const char *name)
{
	return dlsym((void *)(uintptr_t)library, name);
}

/* NVML reports process ids only; the name is /proc's. */
static void fill_name(struct cuf_gpu_process *process)
{
	char path[32];
	ssize_t bytes = 0;
	int fd;

	snprintf(path, sizeof path, "/proc/%u/comm", process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		process->flags |= CUF_GPU_PROCESS_SEEN;
		bytes = read(fd, process->name, sizeof process->name - 1);
		close(fd);
	}
	if (bytes > 0 && process->name[bytes - 1] == '\n')
		process->name[bytes - 1] = 0;
}

/* _exit, because exit would run handlers and flush buffers that belong to the parent. */
static void query_and_exit(const struct cuf_device *device, int to)
{
	static struct cuf_gpu_reading reading;
	static _Alignas(uint64_t) uint8_t scratch[CUF_NVML_ROOM_BYTES];
	struct cuf_nvml nvml;
	void *library = dlopen(CUF_NVML_SONAME, RTLD_NOW | RTLD_LOCAL);
	ssize_t bytes;

	if (!library || !nvml_bind(&nvml, find_function, library))
		_exit(1);
	nvml_read(&nvml, device, scratch, &reading);
	for (uint32_t i = 0; i < reading.head.stored_count; i++)
		fill_name(&reading.processes[i]);
	bytes = (ssize_t)cuf_gpu_reading_bytes(&reading);
	_exit(write(to, &reading, (size_t)bytes) != bytes);
}

/* ---- the parent ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * The child's answer, which is one write and fits into the pipe. Returns 0 when the child exited
 * without one, and -1 when it takes too long.
 */
static ssize_t receive_answer(int from, struct cuf_gpu_reading *reading)
{
	struct pollfd poll_for = { .fd = from, .events = POLLIN };

	if (poll(&poll_for, 1, PATIENCE_MS) <= 0)
		return -1;
	return read(from, reading, sizeof *reading);
}

/* The child may have been killed while it wrote. Counts are checked before they are used. */
static bool is_complete(const struct cuf_gpu_reading *reading, ssize_t bytes)
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
	int ends[2];
	ssize_t bytes;
	pid_t child;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	child = fork();
	if (!child)
		query_and_exit(device, ends[1]);
	close(ends[1]);
	bytes = child > 0 ? receive_answer(ends[0], reading) : 0;
	close(ends[0]);
	if (bytes < 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, WNOHANG); /* it may not die while it is inside the driver */
		note_timeout(reading);
	} else {
		if (child > 0)
			waitpid(child, NULL, 0);
		if (!is_complete(reading, bytes))
			return false;
	}
	reading->head.meta.time_ns = now_ns();
	reading->head.device = device->ordinal;
	reading->head.flags |= CUF_GPU_PROCESSES_BY_RUN;
	return true;
}
