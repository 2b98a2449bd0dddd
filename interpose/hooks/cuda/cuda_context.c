/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulk frees: what dies with a context or a device's primary context. Memory of cuMemCreate and of pools belongs to no
 * context and survives; linear, managed, pinned, array and external memory is flagged CUF_EVENT_CONTEXT_BOUND at birth.
 */
#include "interpose/hooks/cuda/cuda.h"

#include <string.h>

struct reset { uint64_t seq; unsigned device; uint32_t context; };

static struct reset reset_begin(struct cuf_call *call, unsigned device, CUcontext context)
{
	struct reset reset = { .device = device, .context = cuf_context_fold(context) };
	if (call->thread)
		reset.seq = cuf_reset_begin(call, device, reset.context);
	return reset;
}

static CUresult reset_done(struct cuf_call *call, const struct reset *reset, bool died, CUresult result)
{
	if (call->thread && result == CUDA_SUCCESS && died) {
		cuf_reset_apply(call, CUF_EVENT_CONTEXT_BOUND, reset->device, reset->context, reset->seq);
		if (reset->device != CUF_DEVICE_NONE)
			cuf_brackets_forget((int)reset->device);
	}
	return cuf_done(call, result);
}

/* ---- contexts made by the program ---- */

CUresult cuf_hook_cuCtxDestroy_v2(CUcontext context)
{
	CUF_CALL(cuCtxDestroy_v2);
	struct reset reset = reset_begin(&call, CUF_DEVICE_NONE, context);
	CUresult result = cuf_real.cuCtxDestroy_v2(context);
	return reset_done(&call, &reset, context != NULL, result);
}

CUresult cuf_hook_cuCtxDestroy(CUcontext context)
{
	CUF_CALL(cuCtxDestroy);
	struct reset reset = reset_begin(&call, CUF_DEVICE_NONE, context);
	CUresult result = cuf_real.cuCtxDestroy(context);
	return reset_done(&call, &reset, context != NULL, result);
}

/* A detach destroys with the last of the counted users; a context that still answers is alive. */
CUresult cuf_hook_cuCtxDetach(CUcontext context)
{
	unsigned version;
	CUF_CALL(cuCtxDetach);
	struct reset reset = reset_begin(&call, CUF_DEVICE_NONE, context);
	CUresult result = cuf_real.cuCtxDetach(context);
	bool died = context && result == CUDA_SUCCESS && call.thread && cuf_query.cuCtxGetApiVersion &&
		    cuf_query.cuCtxGetApiVersion(context, &version) != CUDA_SUCCESS;
	return reset_done(&call, &reset, died, result);
}

/* A green context is a share of a device's units: the memory allocated while it was current belongs to its device's
 * primary context, and stays. */
CUresult cuf_hook_cuGreenCtxDestroy(CUgreenCtx context)
{
	CUF_CALL(cuGreenCtxDestroy);
	return cuf_done(&call, cuf_real.cuGreenCtxDestroy(context));
}

/* ---- primary contexts ---- */

static struct reset primary_begin(struct cuf_call *call, CUdevice device)
{
	int saved = errno;
	CUcontext context = call->thread ? cuf_context_primary(device) : NULL;
	errno = saved;
	return reset_begin(call, device >= 0 && device < (int)CUF_DEVICE_NONE ? (unsigned)device : CUF_DEVICE_NONE, context);
}

static bool primary_is_gone(CUdevice device)
{
	unsigned flags;
	int active = 1;
	return cuf_query.cuDevicePrimaryCtxGetState && cuf_query.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active;
}

CUresult cuf_hook_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxReset_v2);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxReset_v2(device);
	return reset_done(&call, &reset, true, result);
}

/* The runtime's cudaDeviceReset asks for this one, also in CUDA 13. */
CUresult cuf_hook_cuDevicePrimaryCtxReset(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxReset);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxReset(device);
	return reset_done(&call, &reset, true, result);
}

CUresult cuf_hook_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxRelease_v2);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxRelease_v2(device);
	bool gone = call.thread && result == CUDA_SUCCESS && primary_is_gone(device);
	return reset_done(&call, &reset, gone, result);
}

CUresult cuf_hook_cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUF_CALL(cuDevicePrimaryCtxRelease);
	struct reset reset = primary_begin(&call, device);
	CUresult result = cuf_real.cuDevicePrimaryCtxRelease(device);
	bool gone = call.thread && result == CUDA_SUCCESS && primary_is_gone(device);
	return reset_done(&call, &reset, gone, result);
}

/* ---- checkpoints: device memory leaves and comes back, nothing is freed ---- */

static CUresult checkpoint_done(struct cuf_call *call, const char *what, CUresult result)
{
	if (call->thread && result == CUDA_SUCCESS)
		cuf_meta_text(CUF_META_NOTE, CUF_NOTE_CHECKPOINT, what, strlen(what));
	return cuf_done(call, result);
}

CUresult cuf_hook_cuCheckpointProcessCheckpoint(int pid, void *args)
{
	CUF_CALL(cuCheckpointProcessCheckpoint);
	return checkpoint_done(&call, "checkpointed: device memory was moved to the host", cuf_real.cuCheckpointProcessCheckpoint(pid, args));
}

CUresult cuf_hook_cuCheckpointProcessRestore(int pid, void *args)
{
	CUF_CALL(cuCheckpointProcessRestore);
	return checkpoint_done(&call, "restored: device memory is back on the device", cuf_real.cuCheckpointProcessRestore(pid, args));
}
