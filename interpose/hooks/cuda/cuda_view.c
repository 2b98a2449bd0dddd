/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of a view, and the probe for the largest block. */
#include "interpose/hooks/cuda/cuda_view.h"

#include <errno.h>
#include "interpose/hooks/cuda/cuda_pool_table.h"
#include "interpose/hooks/cuda/cuda_query.h"
#include "interpose/hooks/framework/framework.h"
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

/* The framework is described here for the last time, too: a short program may end before its
 * version was read. */
void cuf_devices_end(unsigned hook, void *frame)
{
	struct cuf_driver_view view;
	struct cuf_call call;
	int saved = errno;
	if (!cuf_real.cuMemGetInfo_v2) /* no driver was attached */
		return;
	/* a forked child that did not use CUDA knows no device: a driver that the fork broke is not
	 * queried */
	if (cuf_call_begin(&call, hook, frame)) {
		for (int device = 0; device < (int)CUF_DEVICES_MAX; device++) {
			if (!cuf_device_find((unsigned)device))
				continue;
			cuf_view_read(device, false, &view);
			cuf_device_seen(NULL, (unsigned)device, &view);
		}
	}
	cuf_call_end();
	cuf_framework_read_version();
	cuf_framework_check_unseen();
	errno = saved;
}
