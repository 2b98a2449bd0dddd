/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a view, the pace of readings, and the probe for the largest block. */
#include "interpose/hooks/cuda/cuda_view.h"

#include <string.h>
#include <sys/resource.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/hooks/cuda/cuda_pool_table.h"
#include "interpose/hooks/cuda/cuda_query.h"
#include "interpose/hooks/loader/real.h"

/* The largest request that the driver grants now, to one unit of granularity. Intrusive: each step
 * of the binary search allocates, so it runs with probe=1 only. */
static uint64_t probe_largest(int device, uint64_t free_bytes)
{
	enum { STEPS_MAX = 20 };
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUmemGenericAllocationHandle handle;
	uint64_t unit = cuf_granularity_of(device), granted = 0, refused;
	if (unit == CUF_UNKNOWN || free_bytes == CUF_UNKNOWN || !cuf_real.cuMemCreate ||
	    !cuf_real.cuMemRelease)
		return CUF_UNKNOWN;
	refused = free_bytes / unit + 1;
	for (int step = 0; step < STEPS_MAX && refused - granted > 1; step++) {
		uint64_t middle = granted + (refused - granted) / 2;
		if (cuf_real.cuMemCreate(&handle, middle * unit, &prop, 0) == CUDA_SUCCESS) {
			cuf_real.cuMemRelease(handle);
			granted = middle;
		} else {
			refused = middle;
		}
	}
	return granted * unit;
}

/* Reads what is possible. Without a context, free memory is unknown, but the pools may be known. */
void cuf_view_read(int device, bool probe, struct cuf_driver_view *view)
{
	struct cuf_context_loan loan;
	*view = (struct cuf_driver_view){ .free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN,
					  .probed_bytes = CUF_UNKNOWN };
	if (cuf_context_borrow(device, &loan)) {
		cuf_memory_here(&view->free_bytes, &view->total_bytes);
		if (probe)
			view->probed_bytes = probe_largest(device, view->free_bytes);
	}
	/* pools need no context, but the relaxed capture mode */
	if (loan.relaxed)
		view->pool_count = cuf_pools_read(device, view->pools, CUF_POOLS_MAX);
	cuf_context_return(&loan);
}

/* ---- what is known at the end ---- */

/*
 * Readings may take a hundredth of the time, and two milliseconds at once. So a short program is
 * read after each of its calls.
 */
#define COST_SHARE 100ull
#define AT_ONCE_NS 2000000ull
#define EVENT_EVERY_NS 1000000000ull

static uint64_t paid_ns;      /* up to this time, readings have used their share */
static uint64_t event_ns[CUF_DEVICES_MAX]; /* when a reading was last logged */
static bool reading;          /* one thread at a time; the others go on */

static void forget_readings(void)
{
	memset(event_ns, 0, sizeof event_ns);
	__atomic_store_n(&reading, false, __ATOMIC_RELAXED);
}
CUF_AT_FORK_CHILD(forget_readings);

/* When a reading began, by the clock, and what the thread had used of a processor by then. */
struct start {
	uint64_t now_ns, cpu_ns;
	long preempted; /* how often another thread was put in its place; -1: unknown */
};

/* A sandbox may kill for the system call. Readings exclude each other: see `reading`. */
static struct start start_now(void)
{
	static struct rusage usage; /* the program's stack is not ours */
	struct start start = { cuf_now_ns(), 0, -1 };
	if (!cuf_sandbox_entered() &&
	    !cuf_sys(SYS_getrusage, RUSAGE_THREAD, (long)&usage, 0, 0, 0, 0)) {
		start.cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) *
				       1000000000 +
			       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
		start.preempted = usage.ru_nivcsw;
	}
	return start;
}

/*
 * What the driver made the thread wait for counts; what others computed meanwhile on a busy machine
 * does not. A single such delay would leave a short program without a reading until its end.
 */
static uint64_t took_ns(const struct start *start)
{
	struct start end = start_now();
	bool was_preempted = start->preempted >= 0 && end.preempted > start->preempted;
	return was_preempted ? end.cpu_ns - start->cpu_ns : end.now_ns - start->now_ns;
}

/* The share of idle time is lost, except for what may be spent at once. */
static void pay(const struct start *start)
{
	uint64_t paid = __atomic_load_n(&paid_ns, __ATOMIC_RELAXED);
	if (paid + AT_ONCE_NS * COST_SHARE < start->now_ns)
		paid = start->now_ns - AT_ONCE_NS * COST_SHARE;
	__atomic_store_n(&paid_ns, paid + took_ns(start) * COST_SHARE, __ATOMIC_RELAXED);
}

static void read_now(struct cuf_call *call, unsigned device, uint64_t now_ns)
{
	static struct cuf_driver_view view; /* readings exclude each other: see `reading` */
	bool logged = now_ns - event_ns[device] >= EVENT_EVERY_NS;
	cuf_view_read((int)device, false, &view);
	if (view.free_bytes == CUF_UNKNOWN)
		return;
	if (logged) {
		event_ns[device] = now_ns;
		cuf_device_seen(call, device, &view);
	}
	cuf_device_seen(NULL, device, &view);
}

/* A handler of signals may have interrupted the driver in a call that is not hooked. */
void cuf_free_memory_refresh(struct cuf_call *call, unsigned device)
{
	struct start start;
	if (cuf_now_ns() < __atomic_load_n(&paid_ns, __ATOMIC_RELAXED) || !call->thread ||
	    !cuf_device_find(device))
		return;
	if (__atomic_exchange_n(&reading, true, __ATOMIC_ACQUIRE))
		return;
	start = start_now();
	if (!cuf_signal_on_stack((void *)call->frame))
		read_now(call, device, start.now_ns);
	pay(&start);
	__atomic_store_n(&reading, false, __ATOMIC_RELEASE);
}
