/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of its own inside the command (ask.h), which loads the libraries of this system:
 *   asker library SONAME   prints the path at which the loader finds it
 *   asker nothing          does nothing, under the recorder (doctor)
 *   asker nvml             reads a struct cuf_device, writes a struct cuf_gpu_reading
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/target/nvml_reader.h"

static int print_library(const char *soname)
{
	void *handle = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;

	if (!handle)
		return 1;
	puts(dlinfo(handle, RTLD_DI_LINKMAP, &map) ? soname : map->l_name);
	return fflush(stdout) != 0;
}

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

static int answer_nvml(void)
{
	static struct cuf_gpu_reading reading;
	static _Alignas(uint64_t) uint8_t scratch[CUF_NVML_ROOM_BYTES];
	struct cuf_nvml nvml;
	struct cuf_device device;
	void *library = dlopen(CUF_NVML_SONAME, RTLD_NOW | RTLD_LOCAL);
	ssize_t bytes;

	if (!library || !nvml_bind(&nvml, find_function, library) ||
	    read(STDIN_FILENO, &device, sizeof device) != (ssize_t)sizeof device)
		return 1;
	nvml_read(&nvml, &device, scratch, &reading);
	for (uint32_t i = 0; i < reading.head.stored_count; i++)
		fill_name(&reading.processes[i]);
	bytes = (ssize_t)cuf_gpu_reading_bytes(&reading);
	return write(STDOUT_FILENO, &reading, (size_t)bytes) != bytes;
}

/* _exit: the libraries' handlers may wait for a driver. */
int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "library"))
		_exit(print_library(argv[2]));
	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	if (argc == 2 && !strcmp(argv[1], "nvml"))
		_exit(answer_nvml());
	return 2;
}
