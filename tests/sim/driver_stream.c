/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, events, capture, and the calls that do nothing here: copies, fills, launches. A stream
 * is never behind, so a synchronize only lets pools settle. Capture modes follow
 * cuThreadExchangeStreamCaptureMode of cuda.h.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/driver.h"

enum { CUDA_ERROR_ILLEGAL_STATE = 401, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908 };

static __thread int thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static unsigned captures; /* streams that capture now */

static bool is_default(CUstream stream) { return (uintptr_t)stream <= 2; } /* 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */

static struct object *stream_of(CUstream stream) { return object_find(KIND_STREAM, (uint64_t)(uintptr_t)stream); }

struct object *capture_of(CUstream stream)
{
	struct object *object = captures && !is_default(stream) ? stream_of(stream) : NULL;
	return object && object->stream.graph ? object : NULL;
}

bool capture_prohibits(void)
{
	bool prohibited = false;
	if (!captures || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	pid_t self = (pid_t)syscall(SYS_gettid);
	for (struct object *s = object_next(NULL, false); s; s = object_next(s, false)) {
		if (s->kind != KIND_STREAM || !s->stream.graph || s->stream.mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		bool here = s->stream.thread == self;
		bool everywhere = thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL && s->stream.mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
		if (here || everywhere)
			prohibited = s->stream.broken = true;
	}
	return prohibited;
}

static CUresult handle_new(enum kind kind, uint64_t *out)
{
	struct object *context;
	CUresult result = context_current(&context);
	if (result)
		return result;
	struct object *object = object_new(kind, 0);
	object->device = context->device;
	object->context = context;
	*out = object->addr;
	return 0;
}

static CUresult handle_delete(enum kind kind, const void *handle)
{
	struct object *object = object_find(kind, (uint64_t)(uintptr_t)handle);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	if (kind == KIND_STREAM && object->stream.graph)
		captures--;
	if (kind == KIND_MODULE)
		device_give(object->device, settings.module_bytes);
	object_delete(object);
	return 0;
}

/* A module's code lies on the device. */
static CUresult module_new(uint64_t *out)
{
	int device = current_device();
	if (device >= 0 && !device_take(device, settings.module_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return handle_new(KIND_MODULE, out);
}

static CUresult begin_capture(CUstream stream, int mode, CUgraph into)
{
	struct object *s = is_default(stream) ? NULL : stream_of(stream);
	CUgraph graph = into;
	if (!s)
		return is_default(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_INVALID_HANDLE;
	if (s->stream.graph || mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return s->stream.graph ? CUDA_ERROR_ILLEGAL_STATE : CUDA_ERROR_INVALID_VALUE;
	if (!graph) {
		struct object *fresh = object_new(KIND_GRAPH, 0);
		fresh->refs = 1;
		graph = (CUgraph)(uintptr_t)fresh->addr;
	}
	static uint64_t last_id;
	s->stream.graph = object_find(KIND_GRAPH, (uint64_t)(uintptr_t)graph);
	if (!s->stream.graph)
		return CUDA_ERROR_INVALID_VALUE;
	s->stream.id = ++last_id;
	s->stream.mode = mode;
	s->stream.thread = (pid_t)syscall(SYS_gettid);
	s->stream.broken = false;
	captures++;
	return 0;
}

static CUresult end_capture(CUstream stream, CUgraph *out)
{
	struct object *s = capture_of(stream);
	if (!s)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (s->stream.mode != CU_STREAM_CAPTURE_MODE_RELAXED && s->stream.thread != (pid_t)syscall(SYS_gettid))
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	*out = s->stream.broken ? NULL : (CUgraph)(uintptr_t)s->stream.graph->addr;
	if (s->stream.broken)
		graph_drop(s->stream.graph);
	s->stream.graph = NULL;
	captures--;
	return s->stream.broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0;
}

/*
 * A recapture needs a graph, and must not change it: the nodes that it makes are those that are
 * there. This driver does not compare them, and lets the old ones go.
 */
static CUresult begin_recapture(CUstream stream, int mode, CUgraph graph)
{
	struct object *into = object_find(KIND_GRAPH, (uint64_t)(uintptr_t)graph);
	CUresult result = into ? begin_capture(stream, mode, graph) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		into->graph.first = into->graph.last = NULL;
	return result;
}

/* A capture into a command list of a graphics API makes no graph that a program sees. */
static CUresult end_cig(CUstream stream)
{
	CUgraph graph = NULL;
	CUresult result = end_capture(stream, &graph);
	if (graph)
		graph_drop(object_find(KIND_GRAPH, (uint64_t)(uintptr_t)graph));
	return result;
}

static CUresult capture_info(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, size_t *count)
{
	struct object *s = capture_of(stream);
	*status = CU_STREAM_CAPTURE_STATUS_NONE;
	if (s)
		*status = s->stream.broken ? 2 /* INVALIDATED */ : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (s && id)
		*id = s->stream.id;
	if (s && graph)
		*graph = (CUgraph)(uintptr_t)s->stream.graph->addr;
	if (count)
		*count = 0;
	return 0;
}

static CUresult exchange_mode(CUstreamCaptureMode *mode)
{
	int before = thread_mode;
	if (!mode || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return 0;
}

static CUresult stream_synchronize(CUstream stream)
{
	struct object *s = is_default(stream) ? NULL : stream_of(stream);
	if (!s && !is_default(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	if (s && s->stream.graph) {
		s->stream.broken = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	int device = s ? s->device : current_device();
	if (device < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	pools_settle(device);
	return 0;
}

static CUresult event_synchronize(CUevent handle)
{
	struct object *event = object_find(KIND_EVENT, (uint64_t)(uintptr_t)handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	pools_settle(event->device);
	return 0;
}

static CUresult stream_context(CUstream stream, CUcontext *out)
{
	struct object *context = NULL, *s = is_default(stream) ? NULL : stream_of(stream);
	CUresult result = s ? 0 : context_current(&context);
	if (!result)
		*out = (CUcontext)(uintptr_t)(s ? s->context : context)->addr;
	return result;
}

#define NEW(kind, type, out) ({ uint64_t handle_; CUresult made_ = handle_new(kind, &handle_); if (!made_) *(out) = (type)(uintptr_t)handle_; made_; })

CUresult cuStreamCreate(CUstream *out, unsigned int flags) CALL("cuStreamCreate", CALL_PLAIN, NEW(KIND_STREAM, CUstream, out))
CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
	CALL("cuStreamCreateWithPriority", CALL_PLAIN, NEW(KIND_STREAM, CUstream, out))
EXPORT(cuStreamDestroy, (CUstream stream)) CALL("cuStreamDestroy", CALL_PLAIN, handle_delete(KIND_STREAM, stream))
EXPORT(cuStreamDestroy_v2, (CUstream stream)) CALL("cuStreamDestroy", CALL_PLAIN, handle_delete(KIND_STREAM, stream))
EXPORT(cuEventCreate, (CUevent *out, unsigned int flags)) CALL("cuEventCreate", CALL_PLAIN, NEW(KIND_EVENT, CUevent, out))
EXPORT(cuEventDestroy_v2, (CUevent event)) CALL("cuEventDestroy", CALL_PLAIN, handle_delete(KIND_EVENT, event))
EXPORT(cuEventSynchronize, (CUevent event)) CALL("cuEventSynchronize", CALL_PLAIN, event_synchronize(event))
EXPORT(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode))
	CALL("cuThreadExchangeStreamCaptureMode", CALL_PLAIN, exchange_mode(mode))

#define BOTH_STREAMS(suffix) \
	EXPORT(cuStreamSynchronize##suffix, (CUstream stream)) CALL("cuStreamSynchronize", CALL_PLAIN, stream_synchronize(stream)) \
	EXPORT(cuStreamGetCtx##suffix, (CUstream stream, CUcontext *out)) CALL("cuStreamGetCtx", CALL_PLAIN, stream_context(stream, out)) \
	EXPORT(cuStreamIsCapturing##suffix, (CUstream stream, CUstreamCaptureStatus *status)) \
		CALL("cuStreamIsCapturing", CALL_PLAIN, capture_info(stream, status, NULL, NULL, NULL)) \
	EXPORT(cuStreamGetCaptureInfo##suffix, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id)) \
		CALL("cuStreamGetCaptureInfo", CALL_PLAIN, capture_info(stream, status, id, NULL, NULL)) \
	EXPORT(cuStreamGetCaptureInfo_v2##suffix, (CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph, \
	                                           const CUgraphNode **dependencies, size_t *count)) \
		CALL("cuStreamGetCaptureInfo", CALL_PLAIN, capture_info(stream, status, id, graph, count)) \
	CUresult cuStreamBeginCapture##suffix(CUstream stream) CALL("cuStreamBeginCapture", CALL_PLAIN, begin_capture(stream, 0, NULL)) \
	CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, CUstreamCaptureMode mode) \
		CALL("cuStreamBeginCapture", CALL_PLAIN, begin_capture(stream, mode, NULL)) \
	CUresult cuStreamBeginCaptureToGraph##suffix(CUstream stream, CUgraph graph, const CUgraphNode *dependencies, \
	                                             const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode) \
		CALL("cuStreamBeginCaptureToGraph", CALL_PLAIN, begin_capture(stream, mode, graph)) \
	CUresult cuStreamBeginRecaptureToGraph##suffix(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, \
	                                               CUgraphRecaptureCallback callback, void *data) \
		CALL("cuStreamBeginRecaptureToGraph", CALL_PLAIN, begin_recapture(stream, mode, graph)) \
	CUresult cuStreamBeginCaptureToCig##suffix(CUstream stream, CUstreamCigCaptureParams *params) \
		CALL("cuStreamBeginCaptureToCig", CALL_PLAIN, begin_capture(stream, CU_STREAM_CAPTURE_MODE_RELAXED, NULL)) \
	CUresult cuStreamEndCaptureToCig##suffix(CUstream stream) CALL("cuStreamEndCaptureToCig", CALL_PLAIN, end_cig(stream)) \
	CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph *out) CALL("cuStreamEndCapture", CALL_PLAIN, end_capture(stream, out)) \
	CUresult cuLaunchKernel##suffix(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
	                                unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, CUstream stream, void **params, \
	                                void **extra) CALL("cuLaunchKernel", CALL_PLAIN, 0) \
	CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) \
		CALL("cuLaunchKernelEx", CALL_PLAIN, 0)
BOTH_STREAMS()
BOTH_STREAMS(_ptsz)

/* In a thread of the driver's own, as there: callers hold locks that the function takes. Nobody
 * waits for it. */
struct host_call { void (*function)(void *); void *data; };

static void *host_main(void *call)
{
	struct host_call mine = *(struct host_call *)call;
	free(call);
	mine.function(mine.data);
	return NULL;
}

static CUresult host_launch(CUstream stream, void (*function)(void *), void *data)
{
	struct host_call *call = is_default(stream) || stream_of(stream) ? malloc(sizeof *call) : NULL;
	pthread_t thread;
	if (!call)
		return CUDA_ERROR_INVALID_HANDLE;
	*call = (struct host_call){function, data};
	if (pthread_create(&thread, NULL, host_main, call)) {
		free(call);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_detach(thread);
	return 0;
}

#define HOST_FUNCTION(suffix) \
	EXPORT(cuLaunchHostFunc##suffix, (CUstream stream, void (*function)(void *), void *data)) \
		CALL("cuLaunchHostFunc", CALL_PLAIN, host_launch(stream, function, data))
HOST_FUNCTION()
HOST_FUNCTION(_ptsz)

CUresult cuModuleLoad(CUmodule *out, const char *path) CALL("cuModuleLoad", CALL_PLAIN, module_new((uint64_t *)out))
CUresult cuModuleLoadData(CUmodule *out, const void *image) CALL("cuModuleLoadData", CALL_PLAIN, module_new((uint64_t *)out))
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options, void **values)
	CALL("cuModuleLoadData", CALL_PLAIN, module_new((uint64_t *)out))
EXPORT(cuModuleUnload, (CUmodule module)) CALL("cuModuleUnload", CALL_PLAIN, handle_delete(KIND_MODULE, module))
EXPORT(cuModuleGetFunction, (CUfunction *out, CUmodule module, const char *name))
	CALL("cuModuleGetFunction", CALL_PLAIN, (*out = (CUfunction)(uintptr_t)module, 0))

/* Accepted, without effect. */
#define NOTHING(name) EXPORT(name, (void)) CALL(#name, CALL_PLAIN, 0)
NOTHING(cuEventRecord) NOTHING(cuEventRecord_ptsz) NOTHING(cuEventRecordWithFlags) NOTHING(cuEventRecordWithFlags_ptsz)
NOTHING(cuEventQuery) NOTHING(cuStreamQuery) NOTHING(cuStreamQuery_ptsz) NOTHING(cuStreamWaitEvent) NOTHING(cuStreamWaitEvent_ptsz)
NOTHING(cuMemcpy) NOTHING(cuMemcpy_ptds) NOTHING(cuMemcpyAsync) NOTHING(cuMemcpyAsync_ptsz)
NOTHING(cuMemcpyHtoD_v2) NOTHING(cuMemcpyHtoD_v2_ptds) NOTHING(cuMemcpyHtoDAsync_v2) NOTHING(cuMemcpyHtoDAsync_v2_ptsz)
NOTHING(cuMemcpyDtoH_v2) NOTHING(cuMemcpyDtoH_v2_ptds) NOTHING(cuMemcpyDtoHAsync_v2) NOTHING(cuMemcpyDtoHAsync_v2_ptsz)
NOTHING(cuMemcpyDtoD_v2) NOTHING(cuMemcpyDtoD_v2_ptds) NOTHING(cuMemcpyDtoDAsync_v2) NOTHING(cuMemcpyDtoDAsync_v2_ptsz)
NOTHING(cuMemsetD8_v2) NOTHING(cuMemsetD8_v2_ptds) NOTHING(cuMemsetD8Async) NOTHING(cuMemsetD8Async_ptsz)
NOTHING(cuMemsetD32_v2) NOTHING(cuMemsetD32_v2_ptds) NOTHING(cuMemsetD32Async) NOTHING(cuMemsetD32Async_ptsz)
