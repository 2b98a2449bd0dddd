/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs and stream capture. An allocation in a graph is a node, no memory: a device's graph pool backs it at launch,
 * and only the driver knows how much. So nodes are events, and the pool's level is asked after what can change it,
 * in processes that have such nodes.
 */
#include "interpose/hooks/cuda/cuda.h"
#include "interpose/hooks/framework/framework.h"

/* ---- capture ---- */

bool cuf_stream_captures(CUstream stream, bool per_thread)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult (*ask)(CUstream, CUstreamCaptureStatus *) = per_thread ? cuf_query.cuStreamIsCapturing_ptsz : cuf_query.cuStreamIsCapturing;
	return cuf_capturing_somewhere() && ask && ask(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static CUresult capture_began(struct cuf_call *call, CUstream stream, CUresult result)
{
	struct cuf_request request = { .device = CUF_DEVICE_NONE };
	if (result == CUDA_SUCCESS) {
		__atomic_fetch_add(&cuf_captures_open, 1, __ATOMIC_RELAXED);
		cuf_framework_streams();
		cuf_event_note(call, CUF_OP_CAPTURE, &request, (uint64_t)(uintptr_t)stream, 1);
	}
	return cuf_done(call, result);
}

/* An invalidated capture ends too; other failures leave it open, or there was none. */
static CUresult capture_ended(struct cuf_call *call, CUstream stream, CUresult result)
{
	struct cuf_request request = { .device = CUF_DEVICE_NONE };
	if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
		if (__atomic_fetch_sub(&cuf_captures_open, 1, __ATOMIC_RELAXED) <= 0) /* began before us, or past a hook */
			__atomic_fetch_add(&cuf_captures_open, 1, __ATOMIC_RELAXED);
		cuf_event_note(call, CUF_OP_CAPTURE, &request, (uint64_t)(uintptr_t)stream, 0);
	}
	return cuf_done(call, result);
}

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

CUresult cuf_hook_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
					      size_t count, CUstreamCaptureMode mode)
{
	CUF_CALL(cuStreamBeginCaptureToGraph);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode));
}

CUresult cuf_hook_cuStreamBeginCaptureToGraph_ptsz(CUstream stream, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges,
						   size_t count, CUstreamCaptureMode mode)
{
	CUF_CALL(cuStreamBeginCaptureToGraph_ptsz);
	return capture_began(&call, stream, cuf_real.cuStreamBeginCaptureToGraph_ptsz(stream, graph, dependencies, edges, count, mode));
}

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

static uint32_t node_devices; /* bit per device whose graph pool is in use */

bool cuf_nodes_were_added(void) { return __atomic_load_n(&node_devices, __ATOMIC_RELAXED) != 0; }

void cuf_graphs_forget(void)
{
	__atomic_store_n(&node_devices, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&cuf_captures_open, 0, __ATOMIC_RELAXED);
}

void cuf_node_added(struct cuf_call *call, const struct cuf_request *request, uint64_t addr)
{
	struct cuf_request node = *request;
	node.kind = CUF_KIND_GRAPH;
	if (!call->thread)
		return;
	if (request->device < CUF_DEVICES_MAX) {
		cuf_device_introduce(request->device);
		__atomic_fetch_or(&node_devices, 1u << request->device, __ATOMIC_RELAXED);
	}
	cuf_event_note(call, CUF_OP_NODE, &node, addr, 0);
}

static uint64_t graph_attribute(int device, CUgraphMem_attribute attribute)
{
	uint64_t value = 0;
	if (!cuf_query.cuDeviceGetGraphMemAttribute || cuf_query.cuDeviceGetGraphMemAttribute(device, attribute, &value) != CUDA_SUCCESS)
		return CUF_UNKNOWN;
	return value;
}

void cuf_graph_levels(struct cuf_call *call)
{
	uint32_t devices = __atomic_load_n(&node_devices, __ATOMIC_RELAXED);
	int saved = errno;
	for (int device = 0; call->thread && devices >> device; device++) {
		if (!(devices >> device & 1))
			continue;
		struct cuf_request level = { .kind = CUF_KIND_GRAPH, .device = (uint8_t)device,
			.bytes = graph_attribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), .aux = graph_attribute(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT) };
		if (level.bytes != CUF_UNKNOWN)
			cuf_level_set(call, &level, (uint64_t)device + 1);
	}
	errno = saved;
}

static CUresult alloc_node_done(struct cuf_call *call, const CUDA_MEM_ALLOC_NODE_PARAMS *params, CUresult result)
{
	struct cuf_request request;
	if (call->thread && params && (result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY)) {
		request = cuf_request_at(call, CUF_KIND_GRAPH, params->bytesize, params->poolProps.location.type, params->poolProps.location.id);
		if (result == CUDA_SUCCESS)
			cuf_node_added(call, &request, params->dptr);
		else
			cuf_alloc_record(call, &request, result, 0);
	}
	return cuf_done(call, result);
}

CUresult cuf_hook_cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	CUF_CALL(cuGraphAddMemAllocNode);
	return alloc_node_done(&call, params, cuf_real.cuGraphAddMemAllocNode(out, graph, dependencies, count, params));
}

/* The free of a node's memory happens at launch, inside the pool: nothing to record. */
CUresult cuf_hook_cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUdeviceptr ptr)
{
	CUF_CALL(cuGraphAddMemFreeNode);
	return cuf_done(&call, cuf_real.cuGraphAddMemFreeNode(out, graph, dependencies, count, ptr));
}

static const CUDA_MEM_ALLOC_NODE_PARAMS *alloc_params(const CUgraphNodeParams *params)
{
	return params && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ? &params->alloc : NULL;
}

CUresult cuf_hook_cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params)
{
	CUF_CALL(cuGraphAddNode);
	CUresult result = cuf_real.cuGraphAddNode(out, graph, dependencies, count, params);
	return alloc_node_done(&call, alloc_params(params), result);
}

CUresult cuf_hook_cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
				    CUgraphNodeParams *params)
{
	CUF_CALL(cuGraphAddNode_v2);
	CUresult result = cuf_real.cuGraphAddNode_v2(out, graph, dependencies, edges, count, params);
	return alloc_node_done(&call, alloc_params(params), result);
}

/* ---- what can change a graph pool ---- */

/* Launching and uploading take memory when the graph has nodes; all can fail for want of it. */
static CUresult pool_may_change(struct cuf_call *call, unsigned op, uint64_t addr, CUresult result)
{
	struct cuf_request request = { .kind = CUF_KIND_GRAPH, .device = CUF_DEVICE_NONE };
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		request = cuf_request_here(call, CUF_KIND_GRAPH, 0, 0);
		request.unsized = true;
		cuf_alloc_record(call, &request, result, 0);
	} else if (result == CUDA_SUCCESS && cuf_nodes_were_added()) {
		if (op)
			cuf_event_note(call, op, &request, addr, 0);
		cuf_graph_levels(call);
	}
	return cuf_done(call, result);
}

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

CUresult cuf_hook_cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	CUF_CALL(cuGraphLaunch);
	return pool_may_change(&call, CUF_OP_LAUNCH, (uint64_t)(uintptr_t)exec, cuf_real.cuGraphLaunch(exec, stream));
}

CUresult cuf_hook_cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	CUF_CALL(cuGraphLaunch_ptsz);
	return pool_may_change(&call, CUF_OP_LAUNCH, (uint64_t)(uintptr_t)exec, cuf_real.cuGraphLaunch_ptsz(exec, stream));
}

CUresult cuf_hook_cuGraphExecDestroy(CUgraphExec exec)
{
	CUF_CALL(cuGraphExecDestroy);
	return pool_may_change(&call, 0, 0, cuf_real.cuGraphExecDestroy(exec));
}

CUresult cuf_hook_cuGraphDestroy(CUgraph graph)
{
	CUF_CALL(cuGraphDestroy);
	return pool_may_change(&call, 0, 0, cuf_real.cuGraphDestroy(graph));
}

CUresult cuf_hook_cuDeviceGraphMemTrim(CUdevice device)
{
	CUF_CALL(cuDeviceGraphMemTrim);
	return pool_may_change(&call, 0, 0, cuf_real.cuDeviceGraphMemTrim(device));
}
