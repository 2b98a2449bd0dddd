/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees in bulk: what is released with a context, or with a device's primary context. Linear,
 * managed, pinned, array and external memory carries CUF_EVENT_CONTEXT_BOUND from its allocation.
 * Memory of cuMemCreate and of pools belongs to no context and survives.
 *
 * Order around a call: a RESET event before it, the real call, then one FREE with CUF_EVENT_BULK
 * for each block that went. When the driver refuses the call, nothing follows the RESET event.
 *
 * cuda.h states that a destroyed context keeps memory of cuMemCreate, cuMemAllocAsync and
 * cuMemAllocFromPoolAsync, because these are not associated with a context.
 */
#include "interpose/hooks/cuda/cuda.h"

#include <string.h>

struct reset {
	uint64_t seq;            /* blocks up to this event are freed */
	unsigned device;         /* CUF_DEVICE_NONE: any */
	uint32_t context;        /* 0: any */
};

/* The reset event comes before the real call, so that its sequence number separates older blocks
 * from those that another thread allocates meanwhile. */
static struct reset reset_begin(struct cuf_call *call, unsigned device, CUcontext context)
{
	struct reset reset = { .device = device, .context = cuf_context_fold(context) };
	const struct cuf_request none = { .device = (uint8_t)device };
	if (call->thread)
		reset.seq = cuf_event_note(call, CUF_OP_RESET, &none, 0, reset.context);
	return reset;
}

/* The bulk frees come after the real call, when the driver has accepted it. */
static CUresult reset_done(struct cuf_call *call, const struct reset *reset, bool died,
			   CUresult result)
{
	if (call->thread && result == CUDA_SUCCESS && died) {
		const struct cuf_request scope = {
			.flags = CUF_EVENT_CONTEXT_BOUND,
			.device = (uint8_t)reset->device,
			.context = reset->context,
		};
		cuf_reset_apply(call, &scope, reset->seq);
		if (reset->device != CUF_DEVICE_NONE)
			cuf_usage_deltas_forget((int)reset->device);
	}
	return cuf_done(call, result);
}

/* ---- contexts that the program created ---- */

/* A context that the program created ends with this call, whatever still refers to it. */
CUresult cuf_hook_cuCtxDestroy_v2(CUcontext context)
{
	CUF_CALL(cuCtxDestroy_v2);
	struct reset reset = reset_begin(&call, CUF_DEVICE_NONE, context);
	CUresult result = cuf_real.cuCtxDestroy_v2(context);
	return reset_done(&call, &reset, context != NULL, result);
}

/* The name without _v2 is the interface of CUDA 2 and 3, still exported. */
CUresult cuf_hook_cuCtxDestroy(CUcontext context)
{
	CUF_CALL(cuCtxDestroy);
	struct reset reset = reset_begin(&call, CUF_DEVICE_NONE, context);
	CUresult result = cuf_real.cuCtxDestroy(context);
	return reset_done(&call, &reset, context != NULL, result);
}

/* A detach destroys the context with the last of its counted users. A context that still answers is
 * alive. */
static bool context_is_gone(CUcontext context)
{
	unsigned version;
	return cuf_query.cuCtxGetApiVersion &&
	       cuf_query.cuCtxGetApiVersion(context, &version) != CUDA_SUCCESS;
}

/* The state can be queried only after the call, when the last user is gone. */
CUresult cuf_hook_cuCtxDetach(CUcontext context)
{
	CUF_CALL(cuCtxDetach);
	struct reset reset = reset_begin(&call, CUF_DEVICE_NONE, context);
	CUresult result = cuf_real.cuCtxDetach(context);
	bool died = context && result == CUDA_SUCCESS && call.thread && context_is_gone(context);
	return reset_done(&call, &reset, died, result);
}

/* A green context is a share of a device's units. Memory allocated while it was current belongs to
 * the primary context of its device, and stays. */
CUresult cuf_hook_cuGreenCtxDestroy(CUgreenCtx context)
{
	CUF_CALL(cuGreenCtxDestroy);
	return cuf_done(&call, cuf_real.cuGreenCtxDestroy(context));
}

/* ---- primary contexts ---- */

/* A reset needs the address of the primary context, because blocks carry it. It is read before the
 * call: afterwards the context is gone. */
static struct reset primary_begin(struct cuf_call *call, CUdevice device)
{
	unsigned ordinal = CUF_DEVICE_NONE;
	CUcontext context = NULL;
	int saved = errno;
	if (call->thread)
		context = cuf_context_primary(device);
	errno = saved;
	if (device >= 0 && device < (int)CUF_DEVICE_NONE)
		ordinal = (unsigned)device;
	return reset_begin(call, ordinal, context);
}

/* Releases are counted. Only the last one ends the context. */
static bool primary_is_gone(CUdevice device)
{
	unsigned flags;
	int active = 1;
	if (CUF_QUERY(cuDevicePrimaryCtxGetState, device, &flags, &active) != CUDA_SUCCESS)
		return false;
	return !active;
}

/* A reset ends the context whatever its count is. */
CUresult cuf_hook_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxReset_v2);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxReset_v2(device);
	return reset_done(&call, &reset, true, result);
}

/* cudaDeviceReset calls this one, in CUDA 13 too. */
CUresult cuf_hook_cuDevicePrimaryCtxReset(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxReset);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxReset(device);
	return reset_done(&call, &reset, true, result);
}

/* Frees the blocks of the context only when this release was the last one. */
CUresult cuf_hook_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxRelease_v2);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxRelease_v2(device);
	bool gone = call.thread && result == CUDA_SUCCESS && primary_is_gone(device);
	return reset_done(&call, &reset, gone, result);
}

/* The runtime looks up the names without _v2 of both the reset and the release. */
CUresult cuf_hook_cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxRelease);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxRelease(device);
	bool gone = call.thread && result == CUDA_SUCCESS && primary_is_gone(device);
	return reset_done(&call, &reset, gone, result);
}

/* ---- checkpoints: device memory is moved away and back, nothing is freed ---- */

/* A note is enough: the blocks stay live, and free memory is read again at the next allocation. */
static CUresult checkpoint_done(struct cuf_call *call, const char *what, CUresult result)
{
	if (call->thread && result == CUDA_SUCCESS)
		cuf_note(CUF_META_NOTE, CUF_NOTE_CHECKPOINT, what, strlen(what));
	return cuf_done(call, result);
}

CUresult cuf_hook_cuCheckpointProcessCheckpoint(int pid, void *args)
{
	CUF_CALL(cuCheckpointProcessCheckpoint);
	return checkpoint_done(&call, "checkpointed: device memory was moved to the host",
			       cuf_real.cuCheckpointProcessCheckpoint(pid, args));
}

CUresult cuf_hook_cuCheckpointProcessRestore(int pid, void *args)
{
	CUF_CALL(cuCheckpointProcessRestore);
	return checkpoint_done(&call, "restored: device memory is back on the device",
			       cuf_real.cuCheckpointProcessRestore(pid, args));
}
