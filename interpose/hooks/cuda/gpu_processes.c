/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the pace of readings. Finds the program's NVML, and adds the names of processes. */
#include "interpose/hooks/cuda/gpu_processes.h"

#include <errno.h>
#include <link.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/cuda/bounded_thread.h"
#include "interpose/hooks/cuda/nvml.h"
#include "interpose/hooks/loader/dso.h"

/* ---- one reading ---- */

/* Too large for a stack. One reading at a time: see `reader`. */
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
		cuf_close((int)fd);
	}
	if (bytes > 0 && process->name[bytes - 1] == '\n')
		process->name[bytes - 1] = 0;
}

/* ---- the thread that asks ---- */

/*
 * NVML asks a driver that may hang, under locks of its own. So a thread of ours asks it, and the
 * thread of the failure waits only this long. An answer takes a millisecond.
 */
#define LIMIT_NS 100000000ull

static struct cuf_device asked; /* a copy: the recording may be cut meanwhile */
static uint32_t reader;         /* the thread that reads; 0: none. One at a time */

static uint32_t this_thread(void) { return (uint32_t)cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0); }

static void ask(void)
{
	__atomic_store_n(&reader, this_thread(), __ATOMIC_SEQ_CST);
	cuf_nvml_read(&nvml, &asked, room, &reading);
	for (unsigned i = 0; i < reading.head.stored_count; i++)
		add_name(&reading.processes[i]);
}

static void end_reading(void) { __atomic_store_n(&reader, 0, __ATOMIC_RELEASE); }

static void note(const struct cuf_gpu_reading *answer, uint64_t incident)
{
	cuf_note(CUF_META_GPU_PROCESSES, incident, &answer->head.meta + 1,
		 cuf_gpu_reading_bytes(answer) - sizeof answer->head.meta);
}

/* `reading` is the thread's that was left behind. */
static void note_timeout(unsigned device, uint64_t incident)
{
	static struct cuf_gpu_reading nothing;
	nothing.head = cuf_nvml_nothing(device);
	nothing.head.failed = CUF_NVML_nvmlInit_v2;
	nothing.head.result = CUF_NVML_TIMEOUT;
	note(&nothing, incident);
}

/* The record is written even when NVML refused: the report states what it returned. False: a thread
 * was left behind, and is the reader until it returns. */
static bool read_library(struct link_map *library, const struct cuf_device *device,
			 uint64_t incident)
{
	static struct cuf_bounded_work work = { ask, end_reading, 0 };
	if (!cuf_nvml_bind(&nvml, find_in_library, library))
		return true;
	asked = *device;
	switch (cuf_bounded_run(&work, LIMIT_NS)) {
	case CUF_BOUNDED_NO_THREAD: return true;
	case CUF_BOUNDED_LEFT: note_timeout(asked.ordinal, incident); return false;
	case CUF_BOUNDED_DONE: break;
	}
	note(&reading, incident);
	return true;
}

/* ---- when ---- */

#define SPACING_NS 1000000000ull
#define COST_SHARE 50 /* at most a fiftieth of the time goes into readings */

static unsigned unloads;      /* calls of dlclose that go on */
static uint64_t next_ns, spacing_ns;

/* A child forked during a reading must not wait for its parent's. */
static void forget_reading(void)
{
	__atomic_store_n(&reader, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&unloads, 0, __ATOMIC_RELAXED);
}
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

/* The library is never loaded by us. A program without NVML gets no reading. False: as
 * read_library. */
static bool read_if_loaded(const struct cuf_device *device, uint64_t incident, uint64_t began_ns)
{
	struct link_map *library;
	/* `reader` is set: a dlclose that begins now waits, and one that has begun is seen here */
	bool is_over;
	if (__atomic_load_n(&unloads, __ATOMIC_SEQ_CST))
		return true;
	library = cuf_dso_find_loaded("libnvidia-ml.so");
	if (!library) {
		/* all objects were looked at: not again for each of a thousand failures */
		__atomic_store_n(&next_ns, began_ns + SPACING_NS, __ATOMIC_RELAXED);
		return true;
	}
	is_over = read_library(library, device, incident);
	schedule_next(began_ns);
	return is_over;
}

/* A reading ends in a millisecond. One that hangs in NVML delays the program by a second, once. */
void cuf_gpu_processes_unload_begin(void)
{
	enum { WAIT_NS = 1000000000 };
	static bool gave_up;
	struct timespec pause = { 0, 100000 };
	uint32_t thread;
	__atomic_add_fetch(&unloads, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&reader, __ATOMIC_SEQ_CST) ||
	    __atomic_load_n(&gave_up, __ATOMIC_RELAXED))
		return;
	const uint64_t until_ns = cuf_now_ns() + WAIT_NS;
	/* NVML itself may close libraries while we ask it */
	while ((thread = __atomic_load_n(&reader, __ATOMIC_SEQ_CST)) && thread != this_thread()) {
		if (cuf_now_ns() > until_ns) {
			__atomic_store_n(&gave_up, true, __ATOMIC_RELAXED);
			return;
		}
		cuf_sys(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
}

void cuf_gpu_processes_unload_end(void) { __atomic_sub_fetch(&unloads, 1, __ATOMIC_SEQ_CST); }

/* Without a file nobody reads the record. After a seccomp filter, opening /proc may be fatal. */
static bool may_read(uint64_t now_ns)
{
	const struct cuf_recorder_status status = cuf_recorder_status();
	if (!cuf_options.nvml || !status.is_on_disk || !status.is_on || cuf_sandbox_entered())
		return false;
	return now_ns >= __atomic_load_n(&next_ns, __ATOMIC_RELAXED);
}

/* Skipped in a signal handler, since NVML may take locks that the interrupted thread may hold. A
 * reading that comes while another one runs is dropped, not delayed. */
void cuf_gpu_processes_read(unsigned device, uint64_t incident, void *frame)
{
	const struct cuf_device *known = cuf_device_find(device);
	uint64_t now_ns = cuf_now_ns();
	uint32_t nobody = 0;
	int saved = errno;
	if (!known || !may_read(now_ns) ||
	    !__atomic_compare_exchange_n(&reader, &nobody, this_thread(), false, __ATOMIC_SEQ_CST,
					 __ATOMIC_RELAXED))
		return;
	if (cuf_signal_on_stack(frame) || read_if_loaded(known, incident, now_ns))
		end_reading();
	errno = saved;
}
