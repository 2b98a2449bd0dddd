/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the program's own NVML, asks it by nvml.h, and adds the names of processes. */
#include "interpose/hooks/cuda/gpu_processes.h"

#include <errno.h>
#include <link.h>
#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/incident/device.h"
#include "interpose/platform/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/hooks/cuda/nvml.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/signal_frame.h"

#define SPACING_NS 1000000000ull
#define COST_SHARE 50 /* at most a fiftieth of the time */

static uint32_t reading_by;   /* the process that is at it: a child forked meanwhile does not wait for its parent */
static uint64_t next_ns, spacing_ns;

/* What the reading needs, kept off the stack of whoever allocates; one reading at a time. */
static struct cuf_nvml nvml;
static struct cuf_gpu_reading reading;
static _Alignas(uint64_t) uint8_t room[CUF_NVML_ROOM_BYTES];

static void *find(const void *where, const char *name)
{
	const struct link_map *map = where;
	return cuf_elf_symbol(map->l_addr, map->l_ld, name);
}

static void name_process(struct cuf_gpu_process *process)
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

static void ask(struct link_map *library, unsigned device, uint64_t incident)
{
	if (!cuf_nvml_bind(&nvml, find, library))
		return;
	cuf_nvml_read(&nvml, &cuf_recording.devices[device], room, &reading);
	for (unsigned i = 0; i < reading.head.stored_count; i++)
		name_process(&reading.processes[i]);
	reading.head.meta.time_ns = cuf_now_ns();
	reading.head.meta.number = incident;
	reading.head.device = device;
	cuf_meta_record(&reading.head.meta, cuf_gpu_reading_bytes(&reading));
}

static void read_loaded(unsigned device, uint64_t incident, uint64_t began_ns)
{
	/* a reference for as long as we are inside: another thread may close it */
	struct link_map *library = cuf_real.dlopen(CUF_NVML_SONAME, RTLD_NOLOAD | RTLD_NOW);
	uint64_t ended_ns;
	if (!library) { /* the loader looked through its directories: not for each of a thousand failures */
		__atomic_store_n(&next_ns, began_ns + SPACING_NS, __ATOMIC_RELAXED);
		return;
	}
	ask(library, device, incident);
	cuf_real.dlclose(library);
	ended_ns = cuf_now_ns();
	spacing_ns = spacing_ns ? spacing_ns * 2 : SPACING_NS;
	if (spacing_ns < (ended_ns - began_ns) * COST_SHARE)
		spacing_ns = (ended_ns - began_ns) * COST_SHARE;
	__atomic_store_n(&next_ns, ended_ns + spacing_ns, __ATOMIC_RELAXED);
}

void cuf_gpu_processes_read(unsigned device, uint64_t incident, void *frame)
{
	uint32_t self = cuf_state_pid(), seen = __atomic_load_n(&reading_by, __ATOMIC_RELAXED);
	uint64_t now_ns = cuf_now_ns();
	int saved = errno;
	if (!cuf_options.nvml || !*cuf_recording.path || !cuf_state_is_on() || cuf_sandbox_entered() || !cuf_real.dlopen || !cuf_real.dlclose)
		return;
	if (!cuf_device_known(device) || device >= CUF_DEVICES_MAX || now_ns < __atomic_load_n(&next_ns, __ATOMIC_RELAXED))
		return;
	if (seen == self || !__atomic_compare_exchange_n(&reading_by, &seen, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (!cuf_signal_on_stack(frame))
		read_loaded(device, incident, now_ns);
	__atomic_store_n(&reading_by, 0, __ATOMIC_RELEASE);
	errno = saved;
}
