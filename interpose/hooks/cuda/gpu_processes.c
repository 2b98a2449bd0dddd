/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pace of readings. Finds the program's NVML, and adds the names of processes. */
#include "interpose/hooks/cuda/gpu_processes.h"

#include <errno.h>
#include <link.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/cuda/nvml.h"
#include "interpose/hooks/loader/real.h"

/* ---- one reading ---- */

/* Kept off the stack of the thread that allocates. One reading at a time: see is_reading. */
static struct cuf_nvml nvml;
static struct cuf_gpu_reading reading;
static _Alignas(uint64_t) uint8_t room[CUF_NVML_ROOM_BYTES];

/* Reads the symbol table of the library itself, so no hook of dlsym is involved. */
static void *find_in_library(const void *library, const char *name)
{
	const struct link_map *map = library;
	return cuf_elf_symbol(map->l_addr, map->l_ld, name);
}

/* NVML's process ids may be those of another namespace. Then there is no such file here, or it is
 * that of another process; the flag only states that it exists. */
static void add_name(struct cuf_gpu_process *process)
{
	CUF_TEXT(path, 32);
	long fd, bytes = 0;
	cuf_text_add(&path, "/proc/");
	cuf_text_number(&path, process->pid);
	cuf_text_add(&path, "/comm");
	fd = cuf_open(path.at, O_RDONLY, 0);
	if (fd >= 0) {
		process->flags |= CUF_GPU_PROCESS_SEEN;
		bytes = cuf_sys_read((int)fd, process->name, sizeof process->name - 1);
		cuf_sys_close((int)fd);
	}
	if (bytes > 0 && process->name[bytes - 1] == '\n')
		process->name[bytes - 1] = 0;
}

/* The record is written even when NVML refused: the report states what it returned. */
static void read_library(struct link_map *library, const struct cuf_device *device,
			 uint64_t incident)
{
	if (!cuf_nvml_bind(&nvml, find_in_library, library))
		return;
	cuf_nvml_read(&nvml, device, room, &reading);
	for (unsigned i = 0; i < reading.head.stored_count; i++)
		add_name(&reading.processes[i]);
	cuf_note(CUF_META_GPU_PROCESSES, incident, &reading.head.meta + 1,
		 cuf_gpu_reading_bytes(&reading) - sizeof reading.head.meta);
}

/* ---- when ---- */

#define SPACING_NS 1000000000ull
#define COST_SHARE 50 /* at most a fiftieth of the time goes into readings */

static bool is_reading;       /* one thread at a time */
static uint64_t next_ns, spacing_ns;

/* A child forked during a reading must not wait for its parent's. */
static void forget_reading(void) { __atomic_store_n(&is_reading, false, __ATOMIC_RELAXED); }
CUF_AT_FORK_CHILD(forget_reading);

/* Spacing doubles with each reading. */
static void schedule_next(uint64_t began_ns)
{
	uint64_t ended_ns = cuf_now_ns(), spacing_min_ns = (ended_ns - began_ns) * COST_SHARE;
	spacing_ns = spacing_ns ? spacing_ns * 2 : SPACING_NS;
	if (spacing_ns < spacing_min_ns)
		spacing_ns = spacing_min_ns;
	__atomic_store_n(&next_ns, ended_ns + spacing_ns, __ATOMIC_RELAXED);
}

/* The library is never loaded by us. A program without NVML gets no reading. */
static void read_if_loaded(const struct cuf_device *device, uint64_t incident, uint64_t began_ns)
{
	/* keeps the library loaded while we are inside: another thread may close it */
	struct link_map *library = cuf_real.dlopen(CUF_NVML_SONAME, RTLD_NOLOAD | RTLD_NOW);
	if (!library) {
		/* the loader searched its directories: not again for each of a thousand failures */
		__atomic_store_n(&next_ns, began_ns + SPACING_NS, __ATOMIC_RELAXED);
		return;
	}
	read_library(library, device, incident);
	cuf_real.dlclose(library);
	schedule_next(began_ns);
}

/* Without a file nobody reads the record. After a seccomp filter, opening /proc may be fatal. */
static bool may_read(uint64_t now_ns)
{
	const struct cuf_recorder_status status = cuf_recorder_status();
	if (!cuf_options.nvml || !status.is_on_disk || !status.is_on || cuf_sandbox_entered())
		return false;
	if (!cuf_real.dlopen || !cuf_real.dlclose)
		return false;
	return now_ns >= __atomic_load_n(&next_ns, __ATOMIC_RELAXED);
}

/* Skipped in a signal handler, since NVML may take locks that the interrupted thread may hold. A
 * reading that comes while another one runs is dropped, not delayed. */
void cuf_gpu_processes_read(unsigned device, uint64_t incident, void *frame)
{
	const struct cuf_device *known = cuf_device_find(device);
	uint64_t now_ns = cuf_now_ns();
	int saved = errno;
	if (!known || !may_read(now_ns) || __atomic_exchange_n(&is_reading, true, __ATOMIC_ACQUIRE))
		return;
	if (!cuf_signal_on_stack(frame))
		read_if_loaded(known, incident, now_ns);
	__atomic_store_n(&is_reading, false, __ATOMIC_RELEASE);
	errno = saved;
}
