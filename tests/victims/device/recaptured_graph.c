/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures the same graph a second time, and a stream into a command list (CUDA 13.3, 13.1). What
 * is allocated in a capture is a node: it takes no memory before the launch. Then a node is added
 * by the newest form (13.4) to a second graph.
 */
#include "tests/victims/doors.h"

static CUresult (*recapture)(CUstream, CUstreamCaptureMode, CUgraph, void *, void *);
static CUresult (*begin_cig)(CUstream, void *);
static CUresult (*end_cig)(CUstream);
static CUresult (*graph_create)(CUgraph *, unsigned);
static CUresult (*add_node)(CUgraphNode *, CUgraph, const CUgraphNode *, const CUgraphEdgeData *, size_t,
			    CUgraphNodeParams *);

#define FIND(pointer, name) (*(void **)&(pointer) = dlsym(cu.driver, name))

static void launch(CUgraph graph, CUstream stream)
{
	CUgraphExec exec;

	MUST(cu.graph_instantiate(&exec, graph, 0));
	MUST(cu.graph_launch(exec, stream));
	MUST(cu.stream_synchronize(stream));
}

/* the first node of the process: only this function says that there is one */
static void add_and_launch(CUstream stream)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	CUgraph graph;
	CUgraphNode node;

	params.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
	params.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	params.alloc.bytesize = 12 * MiB;
	MUST(graph_create(&graph, 0));
	MUST(add_node(&node, graph, NULL, NULL, 0, &params));
	launch(graph, stream);
}

int main(int argc, char **argv)
{
	CUstream stream;
	CUgraph graph;
	CUdeviceptr kept;
	cuuint64_t reserved = 0;

	door_open(argc, argv);
	if (!FIND(recapture, "cuStreamBeginRecaptureToGraph") ||
	    !FIND(begin_cig, "cuStreamBeginCaptureToCig") ||
	    !FIND(end_cig, "cuStreamEndCaptureToCig") || !FIND(graph_create, "cuGraphCreate") ||
	    !FIND(add_node, "cuGraphAddNode_v3"))
		skip("cuGraphAddNode_v3 (CUDA 13.4) is not found here");
	MUST(cu.stream_create(&stream, 1));
	add_and_launch(stream);
	MUST(cu.graph_attribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
	MUST(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(cu.alloc_async(&kept, 20 * MiB, stream));
	MUST(cu.capture_end(stream, &graph));
	MUST(recapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL, graph, NULL, NULL));
	MUST(cu.alloc_async(&kept, 20 * MiB, stream));
	MUST(cu.capture_end(stream, &graph));
	if (!begin_cig(stream, NULL)) /* a real driver needs a command list */
		MUST(end_cig(stream));
	take(1 * MiB);
	say("live kind graph bytes %llu count 1", (unsigned long long)reserved);
	say("live kind device bytes %zu count 1", 1 * MiB);
	say("live kind async bytes 0 count 0");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
