/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a process that uses no CUDA deserves a file: when it holds 64 MiB, or half of the limit of
 * its control group if that is less. What counts is anonymous resident memory, as the kernel
 * reports it, or what was recorded as live. A forked child begins with its parent's pages, so a
 * quarter of that, in memory of its own, is enough.
 *
 * The group may be full without it: of other processes, or of files of tmpfs. Then its processes
 * are about to be killed, and each that still allocates gets a file.
 */
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/options.h"
#include "interpose/process/cgroup.h"
#include "interpose/process/handover.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/laws.h"

enum {
	FILE_AT_BYTES = 64 << 20,
	CHILD_SHARE = 4,
	/* a reading costs some 10 us; no sooner than after this much new memory */
	STEP_BYTES_MIN = 1 << 20,
	STEPS = 4
};

static uint64_t grown_bytes; /* since the last reading */
static uint64_t step_bytes = 4 << 20; /* how much of it makes the next one due */
static uint64_t inherited_bytes;
static bool is_child, is_inheritance_known;

static void begin_in_child(void)
{
	grown_bytes = step_bytes = inherited_bytes = 0;
	is_child = true;
	is_inheritance_known = false;
}
CUF_AT_FORK_CHILD(begin_in_child);

static uint64_t threshold_of(const struct cuf_process_memory *memory)
{
	uint64_t bytes = FILE_AT_BYTES;

	if (memory->cgroup_max_bytes != CUF_UNKNOWN && memory->cgroup_max_bytes / 2 < bytes)
		bytes = memory->cgroup_max_bytes / 2;
	return is_child ? bytes / CHILD_SHARE : bytes;
}

static uint64_t own_resident_bytes(const struct cuf_process_memory *memory)
{
	uint64_t bytes;

	if (memory->rss_bytes == CUF_UNKNOWN || memory->rss_bytes < memory->rss_shared_bytes)
		return 0;
	bytes = memory->rss_bytes - memory->rss_shared_bytes;
	if (is_child && !is_inheritance_known) {
		inherited_bytes = bytes;
		is_inheritance_known = true;
	}
	return bytes > inherited_bytes ? bytes - inherited_bytes : 0;
}

/* Files are known near the limit only; pages of those on a disk can be dropped. */
static bool is_group_full(const struct cuf_process_memory *memory)
{
	return memory->cgroup_file_bytes != CUF_UNKNOWN &&
	       memory->cgroup_bytes > memory->cgroup_file_bytes &&
	       memory->cgroup_bytes - memory->cgroup_file_bytes >=
		       memory->cgroup_max_bytes - memory->cgroup_max_bytes / STEPS;
}

/* How much the process and its group may grow before they are large, or full. */
static uint64_t room_of(const struct cuf_process_memory *memory, uint64_t until_large)
{
	uint64_t until_full = UINT64_MAX;

	if (memory->cgroup_bytes != CUF_UNKNOWN && memory->cgroup_max_bytes != CUF_UNKNOWN)
		until_full = memory->cgroup_max_bytes > memory->cgroup_bytes
				     ? memory->cgroup_max_bytes - memory->cgroup_bytes
				     : 0;
	return until_large < until_full ? until_large : until_full;
}

/* Reads what is resident, and sets when to look again. */
static bool is_large(void)
{
	struct cuf_process_memory memory;
	uint64_t threshold, resident, left, live = cuf_host_live_bytes();

	cuf_process_memory(&memory);
	threshold = threshold_of(&memory);
	resident = own_resident_bytes(&memory);
	if (resident >= threshold || (live != CUF_UNKNOWN && live >= threshold) ||
	    is_group_full(&memory))
		return true;
	left = room_of(&memory, threshold - resident) / STEPS;
	__atomic_store_n(&step_bytes, left < STEP_BYTES_MIN ? STEP_BYTES_MIN : left,
			 __ATOMIC_RELAXED);
	return false;
}

void cuf_host_has_grown(uint64_t bytes)
{
	uint64_t grown;

	if (__builtin_expect(!cuf_handover_is_pending(), 1))
		return;
	/* a small block is a sample, and stands for many */
	if (bytes < CUF_SAMPLE_EXACT_BYTES)
		bytes = cuf_options.sample;
	grown = __atomic_add_fetch(&grown_bytes, bytes, __ATOMIC_RELAXED);
	if (grown < __atomic_load_n(&step_bytes, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&grown_bytes, 0, __ATOMIC_RELAXED);
	if (is_large())
		cuf_handover_to_file();
}
