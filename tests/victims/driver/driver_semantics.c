/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what the recorder relies on in the driver, one TAP line each: what takes memory, what
 * frees it, what survives. The same program runs on the simulated driver and on a real one. Where
 * they differ, the simulator is wrong.
 */
#include "tests/victims/vmm.h"

static int number, failed;

static void check(bool holds, const char *what)
{
	say("%sok %d - %s", holds ? "" : "not ", ++number, what);
	failed += !holds;
}

#define FIND(pointer, name) (*(void **)&(pointer) = dlsym(cu.driver, name))

static void linear(void)
{
	CUdeviceptr ptr, small[32], none = 42;
	size_t before = free_now(), pages = 0;
	check(cu.alloc(&ptr, 0) == 1, "an allocation of nothing is an invalid value");
	check(cu.alloc(&none, (size_t)1 << 50) == 2 && none == 42,
	      "too much is out of memory, and the result is left alone");
	ptr = take(5 * MiB);
	check(ptr % GPU_PAGE == 0, "blocks above 1 MiB begin at a 2 MiB page");
	check(before - free_now() == 6 * MiB, "5 MiB take three pages");
	MUST(cu.release(ptr));
	check(free_now() == before, "a freed large block returns its pages");
	for (int i = 0; i < 32; i++) {
		small[i] = take(128 * KiB);
		pages += small[i] % 512 != 0;
	}
	check(!pages, "small blocks are aligned at 512 bytes");
	check(before - free_now() == 4 * MiB, "32 blocks of 128 KiB share two pages");
	for (int i = 0; i < 32; i += 2)
		MUST(cu.release(small[i]));
	check(before - free_now() == 4 * MiB, "pages with a block left in them are not returned");
	ptr = take(128 * KiB);
	check(before - free_now() == 4 * MiB, "a hole in a page is used again");
	MUST(cu.release(ptr));
	for (int i = 1; i < 32; i += 2)
		MUST(cu.release(small[i]));
	check(free_now() == before, "empty pages are returned");
	check(cu.release(0) == 0, "freeing nothing is fine");
	check(cu.release(0x1000) != 0, "freeing what is no block is refused");
}

static void attributes(void)
{
	CUdeviceptr base = take(3 * MiB), start = 0;
	size_t bytes = 0;
	check(!cu.pointer_attribute(&start, 11, base + MiB) && start == base,
	      "a pointer into a block knows its start");
	check(!cu.pointer_attribute(&bytes, 12, base + MiB) && bytes == 3 * MiB,
	      "and its size as requested");
	MUST(cu.release(base));
}

static void vmm(void)
{
	size_t granule = vmm_granule(), before = free_now();
	CUmemGenericAllocationHandle handle = 0, again = 0;
	CUmemAllocationProp prop = vmm_on_device;
	CUresult (*retain)(CUmemGenericAllocationHandle *, void *);
	FIND(retain, "cuMemRetainAllocationHandle");
	check(cu.create(&handle, granule - 512, &prop, 0) == 1,
	      "physical memory comes in whole granules");
	CUdeviceptr space = vmm_reserve(64 * granule);
	check(free_now() == before, "a reservation takes no memory");
	MUST(cu.create(&handle, 4 * granule, &prop, 0));
	check(before - free_now() == 4 * granule, "a handle takes memory before it is mapped");
	MUST(cu.map(space, 4 * granule, 0, handle, 0));
	check(cu.map(space, 4 * granule, 0, handle, 0) != 0,
	      "what is mapped cannot be mapped over");
	MUST(cu.handle_release(handle));
	check(before - free_now() == 4 * granule, "a release of mapped memory frees nothing");
	check(!retain(&again, (void *)(uintptr_t)space) && again,
	      "a mapping gives its handle back");
	check(cu.reservation_free(space, 64 * granule) != 0,
	      "a reservation with mappings cannot be freed");
	MUST(cu.unmap(space, 4 * granule));
	check(before - free_now() == 4 * granule, "an unmap of memory with a handle frees nothing");
	MUST(cu.handle_release(again));
	check(free_now() == before, "the last of handle and mapping frees");
	check(!cu.reservation_free(space, 64 * granule), "an empty reservation can be freed");
}

static cuuint64_t pool_level(CUmemoryPool pool, int attribute)
{
	cuuint64_t value = UINT64_MAX;
	MUST(cu.pool_get(pool, attribute, &value));
	return value;
}

static void pools(void)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	cuuint64_t keep = UINT64_MAX;
	size_t before = free_now();
	CUmemoryPool pool;
	CUstream stream;
	CUdeviceptr a, b;
	MUST(cu.stream_create(&stream, 1));
	MUST(cu.pool_create(&pool, &props));
	MUST(cu.alloc_pool(&a, 10 * MiB, pool, stream));
	check(pool_level(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 10 * MiB,
	      "used is what blocks take");
	check(pool_level(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 10 * MiB,
	      "reserved covers it");
	MUST(cu.free_async(a, stream));
	MUST(cu.stream_synchronize(stream));
	check(pool_level(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0,
	      "without a threshold a synchronize releases everything");
	MUST(cu.pool_set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
	MUST(cu.alloc_pool(&a, 10 * MiB, pool, stream));
	MUST(cu.free_async(a, stream));
	MUST(cu.stream_synchronize(stream));
	check(pool_level(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 10 * MiB,
	      "below its threshold a pool keeps what it has");
	check(pool_level(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 0, "though nothing is used");
	MUST(cu.pool_trim(pool, 0));
	check(pool_level(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 0, "a trim releases it");
	MUST(cu.alloc_pool(&b, 6 * MiB, pool, stream));
	MUST(cu.pool_destroy(pool));
	check(before - free_now() >= 6 * MiB, "a destroyed pool lives as long as its blocks");
	check(cu.release(b) == 0, "a block of a pool can be freed by cuMemFree");
	MUST(cu.synchronize());
	check(free_now() == before, "the last block takes a destroyed pool with it");
}

static void capture(void)
{
	CUresult (*exchange)(int *);
	CUstream stream;
	CUgraph graph = NULL;
	CUdeviceptr ptr;
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	FIND(exchange, "cuThreadExchangeStreamCaptureMode");
	MUST(cu.stream_create(&stream, 1));
	MUST(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	check(cu.alloc(&ptr, 4 * MiB) == 900, "a plain allocation during a capture is refused");
	check(cu.capture_end(stream, &graph) == 901, "and the capture is invalid");
	MUST(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(exchange(&mode));
	check(cu.alloc(&ptr, 4 * MiB) == 0, "a thread in relaxed mode may allocate");
	MUST(exchange(&mode));
	check(cu.capture_end(stream, &graph) == 0, "and does no harm to the capture");
	MUST(cu.graph_destroy(graph));
	MUST(cu.release(ptr));
}

static cuuint64_t graph_level(int attribute)
{
	cuuint64_t value = UINT64_MAX;
	MUST(cu.graph_attribute(0, attribute, &value));
	return value;
}

static void graphs(void)
{
	CUresult (*trim)(CUdevice);
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUdeviceptr kept, scratch;
	size_t before = free_now();
	FIND(trim, "cuDeviceGraphMemTrim");
	MUST(cu.stream_create(&stream, 1));
	MUST(cu.capture_begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	MUST(cu.alloc_async(&kept, 8 * MiB, stream));
	MUST(cu.alloc_async(&scratch, 4 * MiB, stream));
	MUST(cu.free_async(scratch, stream));
	MUST(cu.capture_end(stream, &graph));
	check(free_now() == before, "a captured allocation takes no memory");
	MUST(cu.graph_instantiate(&exec, graph, 0));
	MUST(cu.graph_launch(exec, stream));
	MUST(cu.stream_synchronize(stream));
	check(graph_level(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 12 * MiB,
	      "a launch takes what its nodes need at once");
	check(before - free_now() == graph_level(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT),
	      "from the device");
	check(cu.graph_launch(exec, stream) == 1,
	      "a second launch with memory left over is refused");
	check(cu.release(kept) == 0, "memory left over can be freed outside");
	check(cu.graph_launch(exec, stream) == 0, "and then it can be launched again");
	MUST(cu.stream_synchronize(stream));
	MUST(cu.release(kept));
	MUST(cu.graph_exec_destroy(exec));
	MUST(cu.graph_destroy(graph));
	check(graph_level(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= 12 * MiB,
	      "the graph pool keeps its memory");
	MUST(trim(0));
	check(free_now() == before, "until it is trimmed");
}

static void host(void)
{
	void *buffer = NULL;
	CUipcMemHandle handle;
	CUdeviceptr ptr, block = take(4 * MiB);
	if (posix_memalign(&buffer, 4096, MiB))
		exit(BROKEN);
	MUST(cu.host_register(buffer, MiB, 0));
	check(cu.host_register(buffer, MiB, 0) == 712, "memory can be registered once");
	MUST(cu.host_unregister(buffer));
	check(cu.host_unregister(buffer) == 713, "and unregistered once");
	size_t before = free_now();
	MUST(cu.managed(&ptr, 64 * MiB, 1));
	check(free_now() == before, "untouched managed memory takes none of the device");
	MUST(cu.release(ptr));
	MUST(cu.ipc_get(&handle, block));
	check(cu.ipc_open(&ptr, handle, 1) != 0,
	      "a block cannot be imported by the process that exported it");
	MUST(cu.release(block));
}

static void resolver(void)
{
	CUresult (*ask)(const char *, void **, int, cuuint64_t, int *);
	void *answer = NULL;
	int status = -1, version = 0;
	CUresult (*driver_version)(int *);
	FIND(ask, "cuGetProcAddress_v2");
	FIND(driver_version, "cuDriverGetVersion");
	MUST(driver_version(&version));
	ask("cuMemAlloc", &answer, 3020, 0, &status);
	check(answer == dlsym(cu.driver, "cuMemAlloc_v2") && status == 0,
	      "cuMemAlloc at 3020 is cuMemAlloc_v2");
	ask("cuMemAllocAsync", &answer, 11020, 2, &status);
	check(answer == dlsym(cu.driver, "cuMemAllocAsync_ptsz"),
	      "per-thread streams get the _ptsz form");
	ask("cuMemAlloc", &answer, 3020, 2, &status);
	check(answer == dlsym(cu.driver, "cuMemAlloc_v2"), "where there is one");
	answer = &answer;
	ask("cuNoSuchFunction", &answer, 12000, 0, &status);
	check(!answer && status == 1, "an unknown name has no address");
	answer = &answer;
	ask("cuMemAllocAsync", &answer, 10000, 0, &status);
	check(!answer && status == 2, "nor has one asked at a version before its time");
	check(ask("cuMemAlloc", &answer, version + 1000, 0, &status) == 1,
	      "a version newer than the driver is an invalid value");
}

static void reset(void)
{
	size_t granule = vmm_granule();
	CUdeviceptr block = take(4 * MiB), space = vmm_reserve(2 * granule), async;
	vmm_grow(space, 2 * granule);
	MUST(cu.alloc_async(&async, 4 * MiB, NULL));
	door_reset();
	check(cu.release(block) != 0, "a reset frees linear memory");
	check(!cu.unmap(space, 2 * granule), "and leaves mapped memory");
	check(!cu.free_async(async, NULL), "and blocks of pools");
}

int main(int argc, char **argv)
{
	static void (*const parts[])(void) = { linear, attributes, vmm,      pools, capture,
		                               graphs, host,       resolver, reset };
	char *door[] = {argv[0], "--door=gpa5", NULL};
	cu.driver = open_driver();
	if (!cu.driver) {
		say("1..0 # SKIP no libcuda.so.1 here");
		return 0;
	}
	door_open(argc > 1 ? argc : 2, argc > 1 ? argv : door);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		parts[i]();
	say("1..%d", number);
	return failed != 0;
}
