/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with memory nodes. An allocation node is only an address until its graph is launched or
 * uploaded. Then the exec's peak, in whole pages, is attached from the device's graph pool. What
 * the graph does not free itself stays allocated as node memory. A trim releases what no live node
 * memory needs. Destroying an exec returns its share to the pool. Nodes run in the order in which
 * they were added.
 */
#include "tests/sim/driver.h"

enum { TYPE_EMPTY = 5, FLAG_AUTO_FREE = 1 };

static struct { uint64_t used, used_high, reserved, reserved_high; } pools[DEVICES_MAX];

struct params_head { cuuint64_t flags; }; /* of CUDA_GRAPH_INSTANTIATE_PARAMS */

static struct object *graph_of(CUgraph graph) { return object_find(KIND_GRAPH, (uint64_t)(uintptr_t)graph); }

static CUresult graph_create(CUgraph *out)
{
	struct object *graph = object_new(KIND_GRAPH, 0);
	graph->refs = 1;
	*out = (CUgraph)(uintptr_t)graph->addr;
	return 0;
}

/* The graph's addresses stay taken while an exec or live memory needs them. */
void graph_drop(struct object *graph)
{
	if (--graph->refs)
		return;
	for (struct object *node = graph->graph.first, *following; node; node = following) {
		following = node->next;
		if (node->node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			address_give(node->node.ptr, round_up(node->node.alloc.bytesize, PAGE_BYTES));
		object_delete(node);
	}
	object_delete(graph);
}

static struct object *node_add(struct object *graph, int type, CUdeviceptr ptr)
{
	struct object *node = object_new(KIND_NODE, 0);
	node->owner = graph;
	node->node.type = type;
	node->node.ptr = ptr;
	if (graph->graph.last)
		graph->graph.last->next = node;
	else
		graph->graph.first = node;
	graph->graph.last = node;
	return node;
}

static CUresult node_out(CUgraphNode *out, const struct object *node)
{
	if (out)
		*out = (CUgraphNode)(uintptr_t)node->addr;
	return 0;
}

static CUresult alloc_node(CUgraphNode *out, struct object *graph, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	if (!graph || !params || !params->bytesize || params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    !device_valid(params->poolProps.location.id))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t addr = address_take(round_up(params->bytesize, PAGE_BYTES), PAGE_BYTES);
	if (!addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	params->dptr = addr;
	struct object *node = node_add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, addr);
	node->node.alloc = *params;
	return node_out(out, node);
}

static CUresult free_node(CUgraphNode *out, struct object *graph, CUdeviceptr ptr)
{
	if (!graph || !ptr)
		return CUDA_ERROR_INVALID_VALUE;
	return node_out(out, node_add(graph, CU_GRAPH_NODE_TYPE_MEM_FREE, ptr));
}

static CUresult any_node(CUgraphNode *out, struct object *graph, CUgraphNodeParams *params)
{
	if (!graph || !params)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return alloc_node(out, graph, &params->alloc);
	if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return free_node(out, graph, params->free.dptr);
	return node_out(out, node_add(graph, params->type, 0));
}

CUresult capture_alloc(struct object *stream, CUdeviceptr *out, uint64_t bytes, const CUmemPoolProps *props)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = *props, .bytesize = bytes};
	CUresult result = alloc_node(NULL, stream->stream.graph, &params);
	if (!result)
		*out = params.dptr;
	return result;
}

CUresult capture_free(struct object *stream, CUdeviceptr ptr) { return free_node(NULL, stream->stream.graph, ptr); }

static bool freed_inside(const struct object *graph, CUdeviceptr ptr)
{
	for (const struct object *node = graph->graph.first; node; node = node->next)
		if (node->node.type == CU_GRAPH_NODE_TYPE_MEM_FREE && node->node.ptr == ptr)
			return true;
	return false;
}

static const struct object *alloc_of(const struct object *graph, CUdeviceptr ptr)
{
	for (const struct object *node = graph->graph.first; node; node = node->next)
		if (node->node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && node->node.ptr == ptr)
			return node;
	return NULL;
}

/* the most that is live at once when the graph runs */
static uint64_t peak_of(const struct object *graph, int *device)
{
	uint64_t now = 0, peak = 0;
	for (const struct object *node = graph->graph.first; node; node = node->next) {
		const struct object *owner = node->node.type == CU_GRAPH_NODE_TYPE_MEM_FREE ? alloc_of(graph, node->node.ptr) : NULL;
		if (node->node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			now += round_up(node->node.alloc.bytesize, SLOT_BYTES);
			*device = node->node.alloc.poolProps.location.id;
		} else if (owner) {
			now -= round_up(owner->node.alloc.bytesize, SLOT_BYTES);
		}
		peak = now > peak ? now : peak;
	}
	return round_up(peak, PAGE_BYTES);
}

static CUresult instantiate(CUgraphExec *out, CUgraph handle, uint64_t flags)
{
	struct object *graph = graph_of(handle);
	int device = current_device();
	if (!graph || !out)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t peak = peak_of(graph, &device);
	if (peak && graph->graph.instantiated)
		/* one exec at a time for a graph with memory nodes */
		return CUDA_ERROR_INVALID_VALUE;
	struct object *exec = object_new(KIND_EXEC, 0);
	exec->owner = graph;
	exec->device = device;
	exec->refs = 1;
	exec->exec.peak_bytes = peak;
	exec->exec.auto_free = flags & FLAG_AUTO_FREE;
	graph->refs++;
	graph->graph.instantiated = true;
	*out = (CUgraphExec)(uintptr_t)exec->addr;
	return 0;
}

static CUresult attach(struct object *exec)
{
	uint64_t bytes = exec->exec.peak_bytes;
	if (!bytes || exec->exec.attached_bytes)
		return 0;
	uint64_t used = pools[exec->device].used + bytes, reserved = pools[exec->device].reserved;
	if (used > reserved && !device_take(exec->device, used - reserved))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pools[exec->device].used = used;
	if (used > reserved)
		pools[exec->device].reserved = used;
	if (used > pools[exec->device].used_high)
		pools[exec->device].used_high = used;
	if (pools[exec->device].reserved > pools[exec->device].reserved_high)
		pools[exec->device].reserved_high = pools[exec->device].reserved;
	exec->exec.attached_bytes = bytes;
	return 0;
}

static void detach(struct object *exec)
{
	if (exec->exec.attached_bytes)
		pools[exec->device].used -= exec->exec.attached_bytes;
	exec->exec.attached_bytes = 0;
}

static void exec_settle(struct object *exec)
{
	struct object *graph = exec->owner;
	if (exec->refs || exec->exec.live)
		return;
	detach(exec);
	graph->graph.instantiated = false;
	object_delete(exec);
	graph_drop(graph);
}

void node_memory_free(struct object *block)
{
	struct object *exec = block->owner;
	object_delete(block);
	exec->exec.live--;
	exec_settle(exec);
}

static void free_unfreed(struct object *exec)
{
	for (struct object *block = object_next(NULL, true), *following; block; block = following) {
		following = object_next(block, true);
		if (block->kind == KIND_NODE_MEMORY && block->owner == exec)
			node_memory_free(block);
	}
}

static CUresult launch(CUgraphExec handle, CUstream stream)
{
	struct object *exec = object_find(KIND_EXEC, (uint64_t)(uintptr_t)handle);
	if (!exec || !exec->refs)
		return CUDA_ERROR_INVALID_VALUE;
	if (capture_of(stream))
		return node_out(NULL, node_add(capture_of(stream)->stream.graph, 4 /* child graph */, 0));
	if (exec->exec.live && !exec->exec.auto_free)
		return CUDA_ERROR_INVALID_VALUE;
	free_unfreed(exec);
	CUresult result = attach(exec);
	for (struct object *node = exec->owner->graph.first; node && !result; node = node->next) {
		CUdeviceptr ptr = node->node.ptr;
		struct object *block = node->node.type == CU_GRAPH_NODE_TYPE_MEM_FREE ? object_find(KIND_NODE_MEMORY, ptr) : NULL;
		if (block) {
			node_memory_free(block);
		} else if (node->node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && !freed_inside(exec->owner, ptr)) {
			block = object_new(KIND_NODE_MEMORY, ptr);
			block->bytes = round_up(node->node.alloc.bytesize, SLOT_BYTES);
			block->requested = node->node.alloc.bytesize;
			block->device = exec->device;
			block->owner = exec;
			exec->exec.live++;
		}
	}
	return result;
}

static CUresult upload(CUgraphExec handle)
{
	struct object *exec = object_find(KIND_EXEC, (uint64_t)(uintptr_t)handle);
	return exec && exec->refs ? attach(exec) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult exec_destroy(CUgraphExec handle)
{
	struct object *exec = object_find(KIND_EXEC, (uint64_t)(uintptr_t)handle);
	if (!exec || !exec->refs)
		return CUDA_ERROR_INVALID_VALUE;
	exec->refs = 0;
	exec_settle(exec);
	return 0;
}

static CUresult graph_destroy(CUgraph handle)
{
	struct object *graph = graph_of(handle);
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	graph_drop(graph);
	return 0;
}

static CUresult trim(CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	for (struct object *exec = object_next(NULL, false); exec; exec = object_next(exec, false))
		if (exec->kind == KIND_EXEC && exec->device == device && !exec->exec.live)
			detach(exec);
	device_give(device, pools[device].reserved - pools[device].used);
	pools[device].reserved = pools[device].used;
	return 0;
}

static CUresult attribute_get(CUdevice device, CUgraphMem_attribute attribute, uint64_t *out)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	const uint64_t values[] = {pools[device].used, pools[device].used_high, pools[device].reserved, pools[device].reserved_high};
	if (attribute < 0 || attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	*out = values[attribute];
	return 0;
}

static CUresult attribute_set(CUdevice device, CUgraphMem_attribute attribute, const uint64_t *value)
{
	if (!device_valid(device) || *value)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
		pools[device].used_high = pools[device].used;
	else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		pools[device].reserved_high = pools[device].reserved;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return 0;
}

static CUresult nodes_list(CUgraph handle, CUgraphNode *out, size_t *count)
{
	struct object *graph = graph_of(handle);
	size_t n = 0;
	if (!graph || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct object *node = graph->graph.first; node; node = node->next, n++)
		if (out && n < *count)
			node_out(&out[n], node);
	if (!out || n < *count)
		*count = n;
	return 0;
}

static CUresult node_type(CUgraphNode handle, int *out)
{
	struct object *node = object_find(KIND_NODE, (uint64_t)(uintptr_t)handle);
	if (!node)
		return CUDA_ERROR_INVALID_VALUE;
	*out = node->node.type;
	return 0;
}

static CUresult alloc_params(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
	struct object *node = object_find(KIND_NODE, (uint64_t)(uintptr_t)handle);
	if (!node || node->node.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		return CUDA_ERROR_INVALID_VALUE;
	*out = node->node.alloc;
	return 0;
}

static CUresult free_params(CUgraphNode handle, CUdeviceptr *out)
{
	struct object *node = object_find(KIND_NODE, (uint64_t)(uintptr_t)handle);
	if (!node || node->node.type != CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_INVALID_VALUE;
	*out = node->node.ptr;
	return 0;
}

EXPORT(cuGraphCreate, (CUgraph *out, unsigned int flags)) CALL("cuGraphCreate", CALL_PLAIN, graph_create(out))
EXPORT(cuGraphAddEmptyNode, (CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count))
	CALL("cuGraphAddEmptyNode", CALL_PLAIN, graph_of(graph) ? node_out(out, node_add(graph_of(graph), TYPE_EMPTY, 0)) : CUDA_ERROR_INVALID_VALUE)
CUresult cuGraphAddMemAllocNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
	CALL("cuGraphAddMemAllocNode", CALL_PLAIN, alloc_node(out, graph_of(graph), params))
CUresult cuGraphAddMemFreeNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUdeviceptr ptr)
	CALL("cuGraphAddMemFreeNode", CALL_PLAIN, free_node(out, graph_of(graph), ptr))
CUresult cuGraphAddNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *params)
	CALL("cuGraphAddNode", CALL_PLAIN, any_node(out, graph_of(graph), params))
CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
                           CUgraphNodeParams *params)
	CALL("cuGraphAddNode", CALL_PLAIN, any_node(out, graph_of(graph), params))
CUresult cuGraphAddNode_v3(CUgraphNode *out, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *edges, size_t count,
                           CUgraphNodeParams *params)
	CALL("cuGraphAddNode", CALL_PLAIN, any_node(out, graph_of(graph), params))
EXPORT(cuGraphGetNodes, (CUgraph graph, CUgraphNode *out, size_t *count)) CALL("cuGraphGetNodes", CALL_PLAIN, nodes_list(graph, out, count))
EXPORT(cuGraphNodeGetType, (CUgraphNode node, int *out)) CALL("cuGraphNodeGetType", CALL_PLAIN, node_type(node, out))
EXPORT(cuGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out))
	CALL("cuGraphMemAllocNodeGetParams", CALL_PLAIN, alloc_params(node, out))
EXPORT(cuGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *out))
	CALL("cuGraphMemFreeNodeGetParams", CALL_PLAIN, free_params(node, out))
CUresult cuGraphInstantiate(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
	CALL("cuGraphInstantiate", CALL_PLAIN, instantiate(out, graph, 0))
CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes)
	CALL("cuGraphInstantiate", CALL_PLAIN, instantiate(out, graph, 0))
CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
	CALL("cuGraphInstantiateWithFlags", CALL_PLAIN, instantiate(out, graph, flags))
#define BOTH_STREAMS(suffix) \
	CUresult cuGraphInstantiateWithParams##suffix(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) \
		CALL("cuGraphInstantiateWithParams", CALL_PLAIN, instantiate(out, graph, ((struct params_head *)params)->flags)) \
	CUresult cuGraphUpload##suffix(CUgraphExec exec, CUstream stream) CALL("cuGraphUpload", CALL_PLAIN, upload(exec)) \
	CUresult cuGraphLaunch##suffix(CUgraphExec exec, CUstream stream) CALL("cuGraphLaunch", CALL_PLAIN, launch(exec, stream))
BOTH_STREAMS()
BOTH_STREAMS(_ptsz)
CUresult cuGraphExecDestroy(CUgraphExec exec) CALL("cuGraphExecDestroy", CALL_PLAIN, exec_destroy(exec))
CUresult cuGraphDestroy(CUgraph graph) CALL("cuGraphDestroy", CALL_PLAIN, graph_destroy(graph))
CUresult cuDeviceGraphMemTrim(CUdevice device) CALL("cuDeviceGraphMemTrim", CALL_PLAIN, trim(device))
EXPORT(cuDeviceGetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attribute, void *value))
	CALL("cuDeviceGetGraphMemAttribute", CALL_PLAIN, attribute_get(device, attribute, value))
EXPORT(cuDeviceSetGraphMemAttribute, (CUdevice device, CUgraphMem_attribute attribute, void *value))
	CALL("cuDeviceSetGraphMemAttribute", CALL_PLAIN, attribute_set(device, attribute, value))
