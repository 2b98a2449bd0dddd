/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures two allocations into a graph, one of them freed inside, and launches it. It takes no
 * memory before the launch. Afterwards it has the graph pool's memory, whose size the driver
 * reports.
 */
#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUdeviceptr kept, scratch;
	cuuint64_t reserved = 0, used = 0;
	door_open(argc, argv);
	MUST(cu.stream_create(&stream, 1));
	MUST(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(cu.alloc_async(&kept, 12 * MiB, stream));
	MUST(cu.alloc_async(&scratch, 20 * MiB, stream));
	MUST(cu.free_async(scratch, stream));
	MUST(cu.capture_end(stream, &graph));
	MUST(cu.graph_instantiate(&exec, graph, 0));
	MUST(cu.graph_launch(exec, stream));
	MUST(cu.stream_synchronize(stream));
	MUST(cu.graph_attribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
	MUST(cu.graph_attribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
	take(1 * MiB);
	say("live kind graph bytes %llu count 1", (unsigned long long)reserved);
	say("live kind device bytes %zu count 1", 1 * MiB);
	say("live kind async bytes 0 count 0");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
