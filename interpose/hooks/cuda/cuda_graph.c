/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs and stream capture. An allocation in a graph is a node, not memory: a pool of the device
 * provides the memory at launch, and only the driver knows how much. So nodes are recorded as
 * events. The size of the pool is queried after each call that can change it, but only in processes
 * that have such nodes.
 *
 * Events of this file: CAPTURE at both ends of a capture, NODE for an allocation in a graph, LAUNCH
 * for a graph with nodes, and the level of a device's pool (kind GRAPH) when it changed.
 *
 * Memory nodes exist since CUDA 11.4. The pages of the pool are attached at launch and stay with it
 * until a trim, so the pool may be larger than what any graph uses now.
 */
#include "interpose/hooks/cuda/cuda.h"

#include "interpose/platform/at_fork_child.h"
#include "interpose/hooks/framework/framework.h"

/* ---- capture ---- */

/* One load in processes that capture nothing. The query itself is legal during a capture.
 * per_thread: stream 0 is the thread's default stream, so the _ptsz query must be used. */
bool cuf_stream_captures(CUstream stream, bool per_thread)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult (*query)(CUstream, CUstreamCaptureStatus *) = cuf_query.cuStreamIsCapturing;
	if (per_thread)
		query = cuf_query.cuStreamIsCapturing_ptsz;
	return cuf_is_capturing() && query && query(stream, &status) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* During a capture our own queries would be captured or would invalidate it, so they are avoided
 * while any is open. The capture is an event, too: PyTorch gives each captured graph a pool. */
static CUresult capture_began(struct cuf_call *call, CUstream stream, CUresult result)
{
	struct cuf_request request = { .device = CUF_DEVICE_NONE };
	if (result == CUDA_SUCCESS) {
		__atomic_fetch_add(&cuf_captures_open, 1, __ATOMIC_RELAXED);
		cuf_framework_note_streams();
		cuf_event_note(call, CUF_OP_CAPTURE, &request, (uint64_t)(uintptr_t)stream, 1);
	}
	return cuf_done(call, result);
}

/* An invalidated capture ends too. After other failures it is still open, or there was none. */
static CUresult capture_ended(struct cuf_call *call, CUstream stream, CUresult result)
{
	struct cuf_request request = { .device = CUF_DEVICE_NONE };
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
		/* a capture that began before us, or past a hook, must not make the count
		 * negative */
		if (__atomic_fetch_sub(&cuf_captures_open, 1, __ATOMIC_RELAXED) <= 0)
			__atomic_fetch_add(&cuf_captures_open, 1, __ATOMIC_RELAXED);
		cuf_event_note(call, CUF_OP_CAPTURE, &request, (uint64_t)(uintptr_t)stream, 0);
	}
	return cuf_done(call, result);
}

/* The forms of CUDA 10.0 (no mode), 10.1 (_v2), 12.3 (into an existing graph), 13.1 (into a command
 * list of a graphics API) and 13.3 (the same graph once more), each also for per-thread default
 * streams. All of them open one capture. */
CUresult cuf_hook_cuStreamBeginCapture(CUstream stream)
{
	CUF_CALL(cuStreamBeginCapture);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCapture(stream));
}

CUresult cuf_hook_cuStreamBeginCapture_ptsz(CUstream stream)
{
	CUF_CALL(cuStreamBeginCapture_ptsz);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCapture_ptsz(stream));
}

CUresult cuf_hook_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
	CUF_CALL(cuStreamBeginCapture_v2);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCapture_v2(stream, mode));
}

CUresult cuf_hook_cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode)
{
	CUF_CALL(cuStreamBeginCapture_v2_ptsz);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCapture_v2_ptsz(stream, mode));
}

CUresult cuf_hook_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph,
					      const CUgraphNode *dependencies,
					      const CUgraphEdgeData *edges, size_t count,
					      CUstreamCaptureMode mode)
{
	CUF_CALL(cuStreamBeginCaptureToGraph);
	CUresult result = cuf_real.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges,
							       count, mode);
	return capture_began(&call, stream, result);
}

CUresult cuf_hook_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph,
						   const CUgraphNode *dependencies,
						   const CUgraphEdgeData *edges, size_t count,
						   CUstreamCaptureMode mode)
{
	CUF_CALL(cuStreamBeginCaptureToGraph_ptsz);
	CUresult result = cuf_real.cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies,
								    edges, count, mode);
	return capture_began(&call, stream, result);
}

CUresult cuf_hook_cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode,
						CUgraph graph, CUgraphRecaptureCallback callback,
						void *data)
{
	CUF_CALL(cuStreamBeginRecaptureToGraph);
	CUresult result =
		cuf_real.cuStreamBeginRecaptureToGraph(stream, mode, graph, callback, data);
	return capture_began(&call, stream, result);
}

CUresult cuf_hook_cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode,
						     CUgraph graph,
						     CUgraphRecaptureCallback callback, void *data)
{
	CUF_CALL(cuStreamBeginRecaptureToGraph_ptsz);
	CUresult result =
		cuf_real.cuStreamBeginRecaptureToGraph_ptsz(stream, mode, graph, callback, data);
	return capture_began(&call, stream, result);
}

CUresult cuf_hook_cuStreamBeginCaptureToCig(CUstream stream, CUstreamCigCaptureParams *params)
{
	CUF_CALL(cuStreamBeginCaptureToCig);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCaptureToCig(stream, params));
}

CUresult cuf_hook_cuStreamBeginCaptureToCig_ptsz(CUstream stream, CUstreamCigCaptureParams *params)
{
	CUF_CALL(cuStreamBeginCaptureToCig_ptsz);
	return capture_began(&call, stream,
			     cuf_real.cuStreamBeginCaptureToCig_ptsz(stream, params));
}

CUresult cuf_hook_cuStreamEndCaptureToCig(CUstream stream)
{
	CUF_CALL(cuStreamEndCaptureToCig);
	return capture_ended(&call, stream, cuf_real.cuStreamEndCaptureToCig(stream));
}

CUresult cuf_hook_cuStreamEndCaptureToCig_ptsz(CUstream stream)
{
	CUF_CALL(cuStreamEndCaptureToCig_ptsz);
	return capture_ended(&call, stream, cuf_real.cuStreamEndCaptureToCig_ptsz(stream));
}

/* Ending is accepted only on the stream that began the capture. */
CUresult cuf_hook_cuStreamEndCapture(CUstream stream, CUgraph *out)
{
	CUF_CALL(cuStreamEndCapture);
	return capture_ended(&call, stream, cuf_real.cuStreamEndCapture(stream, out));
}

CUresult cuf_hook_cuStreamEndCapture_ptsz(CUstream stream, CUgraph *out)
{
	CUF_CALL(cuStreamEndCapture_ptsz);
	return capture_ended(&call, stream, cuf_real.cuStreamEndCapture_ptsz(stream, out));
}

/* ---- memory nodes ---- */

static uint32_t node_devices; /* one bit for each device whose graph pool is in use */

bool cuf_nodes_were_added(void) { return __atomic_load_n(&node_devices, __ATOMIC_RELAXED) != 0; }

/* A forked child cannot use CUDA objects of its parent, so its counts start at 0. */
static void forget_graphs(void)
{
	__atomic_store_n(&node_devices, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&cuf_captures_open, 0, __ATOMIC_RELAXED);
}
CUF_AT_FORK_CHILD(forget_graphs);

/* The address that the driver returns is valid only in the graph. So no block is stored for it. */
void cuf_node_added(struct cuf_call *call, const struct cuf_request *request, uint64_t addr)
{
	struct cuf_request node = *request;
	node.kind = CUF_KIND_GRAPH;
	if (!call->thread)
		return;
	if (request->device < CUF_DEVICES_MAX) {
		cuf_device_announce(request->device);
		__atomic_fetch_or(&node_devices, 1u << request->device, __ATOMIC_RELAXED);
	}
	cuf_event_note(call, CUF_OP_NODE, &node, addr, 0);
}

/* CUF_UNKNOWN where the driver has no such attribute (before CUDA 11.4). */
static uint64_t graph_attribute(int device, CUgraphMem_attribute attribute)
{
	uint64_t value = 0;
	if (CUF_QUERY(cuDeviceGetGraphMemAttribute, device, attribute, &value) != CUDA_SUCCESS)
		return CUF_UNKNOWN;
	return value;
}

/* One pseudo-block for each device: its bytes are the reserved ones, aux those in use. */
void cuf_graph_levels(struct cuf_call *call)
{
	uint32_t devices = __atomic_load_n(&node_devices, __ATOMIC_RELAXED);
	int saved = errno;
	for (int device = 0; call->thread && devices >> device; device++) {
		struct cuf_request level = { .kind = CUF_KIND_GRAPH, .device = (uint8_t)device };
		if (!(devices >> device & 1))
			continue;
		level.bytes = graph_attribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
		level.aux = graph_attribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
		if (level.bytes != CUF_UNKNOWN)
			cuf_level_set(call, &level, (uint64_t)device + 1);
	}
	errno = saved;
}

/* Adding a node can fail for lack of memory, too. */
static CUresult alloc_node_done(struct cuf_call *call, const CUDA_MEM_ALLOC_NODE_PARAMS *params,
				CUresult result)
{
	struct cuf_request request;
	if (!call->thread || !params ||
	    (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY))
		return cuf_done(call, result);
	request = cuf_request_at(call, CUF_KIND_GRAPH, params->bytesize,
				 params->poolProps.location.type, params->poolProps.location.id);
	if (result == CUDA_SUCCESS)
		cuf_node_added(call, &request, params->dptr);
	else
		cuf_alloc_record(call, &request, result, 0);
	return cuf_done(call, result);
}

/* The driver stores the address in params->dptr, so params is read after the call. */
CUresult cuf_hook_cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph,
					 const CUgraphNode *dependencies, size_t count,
					 CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	CUF_CALL(cuGraphAddMemAllocNode);
	CUresult result = cuf_real.cuGraphAddMemAllocNode(out, graph, dependencies, count, params);
	return alloc_node_done(&call, params, result);
}

/* A node's memory is freed at launch, inside the pool. There is nothing to record here. The hook
 * exists so that the function counts as covered. */
CUresult cuf_hook_cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph,
					const CUgraphNode *dependencies, size_t count,
					CUdeviceptr ptr)
{
	CUF_CALL(cuGraphAddMemFreeNode);
	CUresult result = cuf_real.cuGraphAddMemFreeNode(out, graph, dependencies, count, ptr);
	return cuf_done(&call, result);
}

/* NULL: a node of another type. */
static const CUDA_MEM_ALLOC_NODE_PARAMS *alloc_params(const CUgraphNodeParams *params)
{
	if (!params || params->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return NULL;
	return &params->alloc;
}

/* The general form (CUDA 12.2). Its type decides whether it allocates. */
CUresult cuf_hook_cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies,
				 size_t count, CUgraphNodeParams *params)
{
	CUF_CALL(cuGraphAddNode);
	CUresult result = cuf_real.cuGraphAddNode(out, graph, dependencies, count, params);
	return alloc_node_done(&call, alloc_params(params), result);
}

CUresult cuf_hook_cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph,
				    const CUgraphNode *dependencies,
				    const CUgraphEdgeData *edges, size_t count,
				    CUgraphNodeParams *params)
{
	CUF_CALL(cuGraphAddNode_v2);
	CUresult result =
		cuf_real.cuGraphAddNode_v2(out, graph, dependencies, edges, count, params);
	return alloc_node_done(&call, alloc_params(params), result);
}

CUresult cuf_hook_cuGraphAddNode_v3(CUgraphNode *out, CUgraph graph,
				    const CUgraphNode *dependencies,
				    const CUgraphEdgeData *edges, size_t count,
				    CUgraphNodeParams *params)
{
	CUF_CALL(cuGraphAddNode_v3);
	CUresult result =
		cuf_real.cuGraphAddNode_v3(out, graph, dependencies, edges, count, params);
	return alloc_node_done(&call, alloc_params(params), result);
}

/* ---- calls that can change a graph pool ---- */

/* Launching and uploading allocate when the graph has memory nodes. Every call here can run out of
 * memory. op: the event to record, 0 for none. */
static CUresult pool_may_change(struct cuf_call *call, unsigned op, uint64_t addr, CUresult result)
{
	struct cuf_request request = { .kind = CUF_KIND_GRAPH, .device = CUF_DEVICE_NONE };
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		cuf_unsized_failure(call, CUF_KIND_GRAPH, result);
	} else if (result == CUDA_SUCCESS && cuf_nodes_were_added()) {
		if (op)
			cuf_event_note(call, op, &request, addr, 0);
		cuf_graph_levels(call);
	}
	return cuf_done(call, result);
}

/* The driver may attach the pages of the graph here, before its first launch. */
CUresult cuf_hook_cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	CUF_CALL(cuGraphUpload);
	return pool_may_change(&call, 0, 0, cuf_real.cuGraphUpload(exec, stream));
}

CUresult cuf_hook_cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	CUF_CALL(cuGraphUpload_ptsz);
	return pool_may_change(&call, 0, 0, cuf_real.cuGraphUpload_ptsz(exec, stream));
}

/* A graph without memory nodes changes no pool. Such launches are frequent, and pool_may_change
 * returns after two comparisons unless the process has added nodes. */
CUresult cuf_hook_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	CUF_CALL(cuGraphLaunch);
	return pool_may_change(&call, CUF_OP_LAUNCH, (uint64_t)(uintptr_t)exec,
			       cuf_real.cuGraphLaunch(exec, stream));
}

CUresult cuf_hook_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	CUF_CALL(cuGraphLaunch_ptsz);
	return pool_may_change(&call, CUF_OP_LAUNCH, (uint64_t)(uintptr_t)exec,
			       cuf_real.cuGraphLaunch_ptsz(exec, stream));
}

/* May return memory to the pool. */
CUresult cuf_hook_cuGraphExecDestroy(CUgraphExec exec)
{
	CUF_CALL(cuGraphExecDestroy);
	return pool_may_change(&call, 0, 0, cuf_real.cuGraphExecDestroy(exec));
}

/* Destroys the template. Executable graphs made from it stay. */
CUresult cuf_hook_cuGraphDestroy(CUgraph graph)
{
	CUF_CALL(cuGraphDestroy);
	return pool_may_change(&call, 0, 0, cuf_real.cuGraphDestroy(graph));
}

/* Returns unused memory of the pool to the device. */
CUresult cuf_hook_cuDeviceGraphMemTrim(CUdevice device)
{
	CUF_CALL(cuDeviceGraphMemTrim);
	return pool_may_change(&call, 0, 0, cuf_real.cuDeviceGraphMemTrim(device));
}
