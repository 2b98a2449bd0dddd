/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals that a report needs at incidents and over time, and that are cheaper to keep than to sum
 * up.
 */
#include "interpose/incident/totals.h"

#include <string.h>
#include "interpose/abi/format.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/options.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* By device. `seen` is stored last: before it the other fields mean nothing. */
static struct {
	uint64_t allocated_bytes, reserved_bytes;
	uint64_t alloc_seq;
	uint32_t seen;
} levels[CUF_DEVICES_MAX];

int64_t cuf_host_live_estimate;

static void forget_totals(void)
{
	memset(levels, 0, sizeof levels);
	cuf_host_live_estimate = 0;
}
CUF_AT_FORK_CHILD(forget_totals);

/* ---- frameworks ---- */

struct cuf_framework_level cuf_framework_level(unsigned device)
{
	struct cuf_framework_level level = { CUF_UNKNOWN, CUF_UNKNOWN };
	if (device < CUF_DEVICES_MAX && __atomic_load_n(&levels[device].seen, __ATOMIC_ACQUIRE)) {
		level.allocated_bytes = __atomic_load_n(&levels[device].allocated_bytes,
							__ATOMIC_RELAXED);
		level.reserved_bytes = __atomic_load_n(&levels[device].reserved_bytes,
						       __ATOMIC_RELAXED);
	}
	return level;
}

/*
 * The caller looks at where the new segment is when this is true, so that the fast case costs three
 * stores and a comparison.
 */
bool cuf_framework_level_set(unsigned device, struct cuf_framework_level level)
{
	uint64_t before;
	if (device >= CUF_DEVICES_MAX)
		return false;
	before = __atomic_load_n(&levels[device].reserved_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&levels[device].allocated_bytes, level.allocated_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&levels[device].reserved_bytes, level.reserved_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&levels[device].seen, 1, __ATOMIC_RELEASE);
	return level.reserved_bytes > before;
}

uint64_t cuf_framework_alloc_seq(unsigned device)
{
	if (device >= CUF_DEVICES_MAX)
		return 0;
	return __atomic_load_n(&levels[device].alloc_seq, __ATOMIC_RELAXED);
}

void cuf_framework_alloc_seq_set(unsigned device, uint64_t seq)
{
	if (device < CUF_DEVICES_MAX)
		__atomic_store_n(&levels[device].alloc_seq, seq, __ATOMIC_RELAXED);
}

/* ---- malloc ---- */

/*
 * Full mode: each thread counts for itself. Slots are assigned in order, so the first unused one
 * ends the sum.
 */
static uint64_t exact_live_bytes(void)
{
	uint64_t allocated_bytes = 0, freed_bytes = 0;
	for (unsigned i = 0; i < cuf_recording.thread_count; i++) {
		const struct cuf_thread *slot = &cuf_recording.threads[i];
		if (!__atomic_load_n(&slot->generation, __ATOMIC_RELAXED))
			break;
		allocated_bytes += slot->host_alloc_bytes;
		freed_bytes += slot->host_free_bytes;
	}
	return allocated_bytes > freed_bytes ? allocated_bytes - freed_bytes : 0;
}

uint64_t cuf_host_live_bytes(void)
{
	int64_t live_bytes;
	if (cuf_options.host == CUF_HOST_OFF)
		return CUF_UNKNOWN;
	if (cuf_options.host != CUF_HOST_SAMPLED)
		return exact_live_bytes();
	/* a free may be counted before the allocation of another thread that it outran */
	live_bytes = __atomic_load_n(&cuf_host_live_estimate, __ATOMIC_RELAXED);
	return live_bytes > 0 ? (uint64_t)live_bytes : 0;
}
