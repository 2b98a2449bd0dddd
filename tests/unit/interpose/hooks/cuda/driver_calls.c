/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one driver call does to the ledger, refusals and absences included: rules that a
 * well-behaved device never tests.
 */
#include "tests/unit/fixtures/fake_driver.h"

#define MIB ((size_t)1 << 20)

static int before_each(void **state)
{
	fake_reset();
	return 0;
}

static void make(CUdeviceptr addr, size_t bytes)
{
	CUdeviceptr out = 0;
	fake.out = addr;
	assert_int_equal(cuf_hook_cuMemAlloc_v2(&out, bytes), CUDA_SUCCESS);
	assert_int_equal(out, addr);
}

/* ---- results, outputs, errno ---- */

static void test_call__outputs_are_not_read_after_a_failure(void **state)
{
	fake.result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(cuf_hook_cuMemAlloc_v2((CUdeviceptr *)8, 4096), CUDA_ERROR_INVALID_VALUE);
	fake.result = CUDA_SUCCESS;
	assert_int_equal(cuf_hook_cuMemAlloc_v2(NULL, 4096), CUDA_SUCCESS);
	assert_int_equal(cuf_hook_cuMemAllocPitch_v2(NULL, NULL, 100, 3, 4), CUDA_SUCCESS);
	assert_int_equal(live_bytes(CUF_KIND_DEVICE), 0);
}

static void test_call__errno_and_capture_mode_stay(void **state)
{
	errno = 4711;
	make(0x1000000, MIB);
	fake.result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(cuf_hook_cuMemAlloc_v2(&(CUdeviceptr){ 0 }, MIB),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	fake.result = CUDA_SUCCESS;
	assert_int_equal(cuf_hook_cuMemFree_v2(0x1000000), CUDA_SUCCESS);
	assert_int_equal(errno, 4711);
	assert_int_equal(fake.mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

static void test_call__a_missing_function_is_said_to_be_missing(void **state)
{
	CUdeviceptr out = 5;
	assert_int_equal(cuf_hook_cuMemAllocManaged(&out, 4096, 1), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuf_hook_cuModuleLoad(NULL, ""), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuf_hook_cuStreamCreate(NULL, 0), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(out, 5);
}

/* ---- linear memory ---- */

static void test_linear__a_refused_free_is_undone(void **state)
{
	make(0x2000000, 3 * MIB);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(cuf_hook_cuMemFree_v2(0x2000000), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(block_at(CUF_SPACE_DEVICE, 0x2000000).bytes, 3 * MIB);
	assert_int_equal(live_bytes(CUF_KIND_DEVICE), 3 * MIB);
	fake.result = CUDA_SUCCESS;
	assert_int_equal(cuf_hook_cuMemFree_v2(0x2000000), CUDA_SUCCESS);
	assert_int_equal(live_bytes(CUF_KIND_DEVICE), 0);
}

static void test_linear__unknown_pointers_are_forwarded_and_null_is_no_unknown_free(void **state)
{
	uint64_t unknown = cuf_recording.header->unknown_frees;
	fake.calls = 0;
	cuf_hook_cuMemFree_v2(0);
	assert_int_equal(cuf_recording.header->unknown_frees, unknown);
	cuf_hook_cuMemFree_v2(0xabc000);
	assert_int_equal(cuf_recording.header->unknown_frees, unknown + 1);
	assert_int_equal(fake.calls, 2);
}

static void test_linear__pitch_counts_padded_rows(void **state)
{
	CUdeviceptr out;
	size_t pitch;
	fake.out = 0x3000000;
	assert_int_equal(cuf_hook_cuMemAllocPitch_v2(&out, &pitch, 1000, 7, 4), CUDA_SUCCESS);
	assert_int_equal(block_at(CUF_SPACE_DEVICE, 0x3000000).bytes, 1024 * 7);
	cuf_hook_cuMemFree_v2(0x3000000);
}

static void test_linear__a_failure_keeps_what_the_driver_said(void **state)
{
	uint64_t before = cuf_recording.header->incident_count;
	const struct cuf_incident *incident;
	fake.result = CUDA_ERROR_OUT_OF_MEMORY;
	fake.free_bytes = 77 * MIB;
	cuf_hook_cuMemAlloc_v2(&(CUdeviceptr){ 0 }, 100 * MIB);
	assert_int_equal(cuf_recording.header->incident_count, before + 1);
	incident = &cuf_recording.incidents[before];
	assert_int_equal(incident->requested_bytes, 100 * MIB);
	assert_int_equal(incident->free_bytes, 77 * MIB);
	assert_int_equal(incident->total_bytes, TOTAL_BYTES);
	assert_int_equal(incident->result, CUDA_ERROR_OUT_OF_MEMORY);
	assert_true(incident->is_request);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMemAlloc_v2(&(CUdeviceptr){ 0 }, 100 * MIB);
	assert_int_equal(cuf_recording.header->incident_count, before + 1);
}

static void test_linear__a_launch_that_found_no_memory_has_no_size(void **state)
{
	uint64_t before = cuf_recording.header->incident_count;
	fake.result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(cuf_hook_cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
	                 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cuf_recording.header->incident_count, before + 1);
	assert_false(cuf_recording.incidents[before].is_request);
}

/* ---- asking a device without a context ---- */

static void test_query__borrows_the_primary_context_and_gives_it_back(void **state)
{
	struct cuf_driver_view view;
	fake.device = -1;
	fake.context = NULL;
	cuf_view_read(0, false, &view);
	assert_int_equal(view.free_bytes, 1ull << 30);
	assert_int_equal(fake.device, -1);
	assert_int_equal(fake.pushed, 0);
	assert_int_equal(fake.retained, 0);
	fake.active = 0;
	cuf_view_read(0, false, &view);
	assert_true(view.free_bytes == CUF_UNKNOWN); /* no context is made for a question */
	assert_int_equal(fake.retained, 0);
}

static void test_query__the_probe_finds_the_largest_request(void **state)
{
	struct cuf_driver_view view;
	for (uint64_t units = 1; units < 512; units += 51) {
		fake.grants_bytes = units * UNIT_BYTES;
		cuf_view_read(0, true, &view);
		assert_int_equal(view.probed_bytes, units * UNIT_BYTES);
	}
}

/* ---- virtual memory ---- */

static void test_vmm__a_release_after_the_map_is_no_free(void **state)
{
	make_mapped(0x51, 0x10000000, 2 * MIB);
	assert_int_equal(cuf_hook_cuMemRelease(0x51), CUDA_SUCCESS);
	assert_int_equal(live_bytes(CUF_KIND_VMM), 2 * MIB);
	assert_int_equal(cuf_hook_cuMemUnmap(0x10000000, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(live_bytes(CUF_KIND_VMM), 0);
}

static void test_vmm__a_refused_release_leaves_the_counts(void **state)
{
	make_mapped(0x52, 0x10000000, 2 * MIB);
	cuf_hook_cuMemUnmap(0x10000000, 2 * MIB);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMemRelease(0x52);
	assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x52).references, 1);
	assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x52).maps, 0);
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMemRelease(0x52);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x52));
}

/* The driver refuses the second release. Our undo once added a reference that had never been taken. */
static void test_vmm__a_second_release_that_is_refused_adds_nothing(void **state)
{
	make_mapped(0x56, 0x10000000, 2 * MIB);
	cuf_hook_cuMemRelease(0x56);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMemRelease(0x56);
	assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x56).references, 0);
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMemUnmap(0x10000000, 2 * MIB);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x56));
	assert_int_equal(live_bytes(CUF_KIND_VMM), 0);
}

static void test_vmm__a_retain_needs_its_own_release(void **state)
{
	CUmemGenericAllocationHandle out;
	make_mapped(0x53, 0x10000000, 2 * MIB);
	fake.out = 0x53;
	cuf_hook_cuMemRetainAllocationHandle(&out, (void *)0x10000000);
	cuf_hook_cuMemUnmap(0x10000000, 2 * MIB);
	cuf_hook_cuMemRelease(0x53);
	assert_true(is_live(CUF_SPACE_HANDLE, 0x53));
	cuf_hook_cuMemRelease(0x53);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x53));
}

static void test_vmm__one_unmap_over_many_maps_is_undone_as_a_whole(void **state)
{
	enum { MAPS = 40 }; /* more than an unmap keeps for its undoing */
	for (unsigned i = 0; i < MAPS; i++) {
		make_mapped(0x100 + i, 0x20000000 + i * 2 * MIB, 2 * MIB);
		cuf_hook_cuMemRelease(0x100 + i);
	}
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMemUnmap(0x20000000, MAPS * 2 * MIB);
	for (unsigned i = 0; i < MAPS; i++) {
		assert_int_equal(block_at(CUF_SPACE_MAPPING, 0x20000000 + i * 2 * MIB).aux,
		                 0x100 + i);
		assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x100 + i).maps, 1);
		assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x100 + i).references, 0);
	}
	assert_int_equal(live_bytes(CUF_KIND_VMM), MAPS * 2 * MIB);
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMemUnmap(0x20000000, MAPS * 2 * MIB);
	assert_int_equal(live_bytes(CUF_KIND_VMM), 0);
	assert_false(is_live(CUF_SPACE_MAPPING, 0x20000000 + (MAPS - 1) * 2 * MIB));
}

static void test_vmm__an_imported_handle_learns_its_size_from_its_map(void **state)
{
	CUmemGenericAllocationHandle out;
	fake.out = 0x7000;
	cuf_hook_cuMemImportFromShareableHandle(&out, NULL, 1);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 0);
	cuf_hook_cuMemMap(0x30000000, 6 * MIB, 0, 0x7000, 0);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 6 * MIB);
	assert_int_equal(live_bytes(CUF_KIND_VMM), 0);
	cuf_hook_cuMemRelease(0x7000);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 6 * MIB);
	cuf_hook_cuMemUnmap(0x30000000, 6 * MIB);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 0);
}

static void test_vmm__host_memory_is_no_device_memory(void **state)
{
	CUmemAllocationProp prop = { .location = { CU_MEM_LOCATION_TYPE_HOST_NUMA, 0 } };
	CUmemGenericAllocationHandle out;
	fake.out = 0x55;
	cuf_hook_cuMemCreate(&out, 2 * MIB, &prop, 0);
	assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x55).flags & CUF_EVENT_HOST_LOCATION,
	                 CUF_EVENT_HOST_LOCATION);
	assert_int_equal(block_at(CUF_SPACE_HANDLE, 0x55).device, CUF_DEVICE_NONE);
	cuf_hook_cuMemRelease(0x55);
}

/* ---- pools and graphs ---- */

static void test_pool__blocks_know_their_pool_and_survive_a_reset(void **state)
{
	CUdeviceptr out;
	fake.out = 0x40000000;
	fake.reserved = 32 * MIB;
	cuf_hook_cuMemAllocAsync(&out, 5 * MIB, NULL);
	assert_int_equal(block_at(CUF_SPACE_DEVICE, 0x40000000).aux, 0xd00);
	assert_int_equal(block_at(CUF_SPACE_DEVICE, 0x40000000).kind, CUF_KIND_ASYNC);
	assert_true(is_live(CUF_SPACE_POOL, 0xd00));
	cuf_hook_cuDevicePrimaryCtxReset_v2(0);
	assert_int_equal(live_bytes(CUF_KIND_ASYNC), 5 * MIB);
	struct cuf_driver_view view;
	cuf_view_read(0, false, &view);
	assert_int_equal(view.pool_count, 1);
	assert_int_equal(view.pools[0].reserved_bytes, 32 * MIB);
	cuf_hook_cuMemFree_v2(0x40000000); /* frees these too */
	assert_int_equal(live_bytes(CUF_KIND_ASYNC), 0);
}

static void test_pool__the_largest_pools_come_first(void **state)
{
	struct cuf_pool_level levels[CUF_POOLS_MAX];
	CUmemPoolProps props = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
	CUmemoryPool pool;
	for (uint64_t i = 0; i < CUF_POOLS_MAX + 4; i++) {
		fake.out = 0xe00 + i;
		cuf_hook_cuMemPoolCreate(&pool, &props);
	}
	fake.reserved = 3;
	assert_int_equal(cuf_pools_read(1, levels, CUF_POOLS_MAX), CUF_POOLS_MAX);
	for (uint64_t i = 0; i < CUF_POOLS_MAX + 4; i++)
		cuf_hook_cuMemPoolDestroy((CUmemoryPool)(0xe00 + i));
	assert_int_equal(cuf_pools_read(1, levels, CUF_POOLS_MAX), 0);
	assert_false(is_live(CUF_SPACE_POOL, 0xe00));
}

static void test_pool__one_without_a_place_is_counted(void **state)
{
	enum { PLACES = 64, BEYOND = 3 };
	const uint64_t *lost = &cuf_recording.header->lost[CUF_LOST_SMALL], before = *lost;
	CUmemPoolProps props = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 } };
	CUmemoryPool pool;
	uint64_t known = 0;
	for (uint64_t i = 0; i < PLACES + BEYOND; i++) {
		fake.out = 0xe00 + i;
		cuf_hook_cuMemPoolCreate(&pool, &props);
		known += cuf_pool_find(0xe00 + i) != NULL;
	}
	assert_int_equal(known + (*lost - before), PLACES + BEYOND);
	assert_in_range(*lost - before, BEYOND, PLACES); /* other tests' pools have places, too */
	for (uint64_t i = 0; i < PLACES + BEYOND; i++)
		cuf_hook_cuMemPoolDestroy((CUmemoryPool)(0xe00 + i));
}

static void test_pool__a_threshold_of_zero_does_not_end_the_pool(void **state)
{
	CUmemPoolProps props = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool;
	uint64_t threshold = 9 * MIB;
	fake.out = 0xf00;
	cuf_hook_cuMemPoolCreate(&pool, &props);
	cuf_hook_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	assert_int_equal(block_at(CUF_SPACE_POOL, 0xf00).bytes, 9 * MIB);
	threshold = 0;
	cuf_hook_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
	assert_int_equal(block_at(CUF_SPACE_POOL, 0xf00).bytes, 0);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMemPoolDestroy(pool);
	assert_true(is_live(CUF_SPACE_POOL, 0xf00));
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMemPoolDestroy(pool);
	assert_false(is_live(CUF_SPACE_POOL, 0xf00));
}

static void test_graph__a_captured_allocation_is_a_node_until_launched(void **state)
{
	CUdeviceptr out;
	uint64_t unknown = cuf_recording.header->unknown_frees;
	cuf_hook_cuStreamBeginCapture_v2((CUstream)0x10, CU_STREAM_CAPTURE_MODE_GLOBAL);
	fake.capturing = true;
	fake.out = 0x50000000;
	cuf_hook_cuMemAllocAsync(&out, 4 * MIB, (CUstream)0x10);
	cuf_hook_cuMemFreeAsync(0x50000000, (CUstream)0x10);
	fake.capturing = false;
	cuf_hook_cuStreamEndCapture((CUstream)0x10, NULL);
	assert_false(cuf_is_capturing());
	assert_false(is_live(CUF_SPACE_DEVICE, 0x50000000));
	assert_int_equal(cuf_recording.header->unknown_frees, unknown);
	fake.graph_reserved = 6 * MIB;
	fake.graph_used = 4 * MIB;
	cuf_hook_cuGraphLaunch(NULL, NULL);
	assert_int_equal(live_bytes(CUF_KIND_GRAPH), 6 * MIB);
	assert_int_equal(block_at(CUF_SPACE_GRAPH, 1).aux, 4 * MIB);
	fake.graph_reserved = fake.graph_used = 0;
	/* left over by the graph: its pool shrinks, nothing unknown was freed */
	cuf_hook_cuMemFree_v2(0x50000000);
	assert_int_equal(live_bytes(CUF_KIND_GRAPH), 0);
	assert_int_equal(cuf_recording.header->unknown_frees, unknown);
}

/* ---- arrays, imports ---- */

static void test_array__sizes_are_asked_or_estimated_and_said_so(void **state)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 100, 10, 0, 0x20, 4, 0 };
	CUarray out;
	fake.out = 0x61;
	cuf_hook_cuArray3DCreate_v2(&out, &desc);
	assert_int_equal(block_at(CUF_SPACE_ARRAY, 0x61).bytes, 100 * 10 * 4 * 4);
	assert_true(block_at(CUF_SPACE_ARRAY, 0x61).flags & CUF_EVENT_ESTIMATED);
	cuf_hook_cuArrayDestroy(out);
	fake.array_bytes = 65536;
	cuf_hook_cuArray3DCreate_v2(&out, &desc);
	assert_int_equal(block_at(CUF_SPACE_ARRAY, 0x61).bytes, 65536);
	assert_false(block_at(CUF_SPACE_ARRAY, 0x61).flags & CUF_EVENT_ESTIMATED);
	cuf_hook_cuArrayDestroy(out);
	desc.Flags = 0x40; /* sparse: its memory is mapped in from handles, and counted there */
	cuf_hook_cuArray3DCreate_v2(&out, &desc);
	assert_int_equal(block_at(CUF_SPACE_ARRAY, 0x61).bytes, 0);
	cuf_hook_cuArrayDestroy(out);
}

static void test_array__mip_levels_halve_but_layers_stay(void **state)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { 8, 4, 2, 0x01, 1, 0 };
	CUmipmappedArray out;
	fake.out = 0x62;
	cuf_hook_cuMipmappedArrayCreate(&out, &desc, 3);
	assert_int_equal(block_at(CUF_SPACE_ARRAY, 0x62).bytes, 8 * 4 * 2 + 4 * 2 * 1 + 2 * 1 * 1);
	fake.out = 0x63;
	desc.Flags = 0x01;
	cuf_hook_cuMipmappedArrayCreate(&out, &desc, 3);
	assert_int_equal(block_at(CUF_SPACE_ARRAY, 0x63).bytes, 2 * (8 * 4 + 4 * 2 + 2 * 1));
}

static void test_ipc__a_handle_opened_twice_is_closed_twice(void **state)
{
	CUipcMemHandle handle = { { 0 } };
	CUdeviceptr out;
	fake.out = 0x70000000;
	fake.range_bytes = 20 * MIB;
	cuf_hook_cuIpcOpenMemHandle_v2(&out, handle, 1);
	cuf_hook_cuIpcOpenMemHandle_v2(&out, handle, 1);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 20 * MIB);
	cuf_hook_cuIpcCloseMemHandle(out);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 20 * MIB);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuIpcCloseMemHandle(out);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 20 * MIB);
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuIpcCloseMemHandle(out);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 0);
}

static void test_external__the_object_lives_as_long_as_its_buffers(void **state)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = { .size = 12 * MIB };
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = { .size = 8 * MIB };
	CUexternalMemory object;
	CUdeviceptr buffer;
	fake.out = 0x8000;
	cuf_hook_cuImportExternalMemory(&object, &desc);
	fake.out = 0x80000000;
	cuf_hook_cuExternalMemoryGetMappedBuffer(&buffer, object, &part);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 12 * MIB); /* counted once */
	cuf_hook_cuDestroyExternalMemory(object);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 12 * MIB);
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMemFree_v2(buffer);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 12 * MIB);
	assert_true(is_live(CUF_SPACE_MAPPING, 0x80000000));
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMemFree_v2(buffer);
	assert_int_equal(live_bytes(CUF_KIND_IMPORTED), 0);
	assert_false(is_live(CUF_SPACE_MAPPING, 0x80000000));
}

/* ---- contexts ---- */

static void test_context__frees_its_own_blocks_alone(void **state)
{
	fake.context = (CUcontext)0xaaa0;
	make(0x4000000, MIB);
	fake.context = (CUcontext)0xbbb0;
	make(0x5000000, MIB);
	fake.result = CUDA_ERROR_INVALID_CONTEXT;
	cuf_hook_cuCtxDestroy_v2((CUcontext)0xaaa0);
	assert_true(is_live(CUF_SPACE_DEVICE, 0x4000000));
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuCtxDestroy_v2((CUcontext)0xaaa0);
	assert_false(is_live(CUF_SPACE_DEVICE, 0x4000000));
	cuf_hook_cuCtxDetach((CUcontext)0xbbb0); /* not the last user */
	assert_true(is_live(CUF_SPACE_DEVICE, 0x5000000));
	fake.context_dead = true;
	cuf_hook_cuCtxDetach((CUcontext)0xbbb0);
	assert_false(is_live(CUF_SPACE_DEVICE, 0x5000000));
}

static void test_context__the_last_release_frees_what_the_primary_context_held(void **state)
{
	make(0x6000000, MIB);
	fake.context = (CUcontext)0xccc0; /* one of the program's own, on the same device */
	make(0x7000000, MIB);
	cuf_hook_cuDevicePrimaryCtxRelease_v2(0);
	assert_true(is_live(CUF_SPACE_DEVICE, 0x6000000));
	fake.retained = 0;
	fake.last_user = true;
	cuf_hook_cuDevicePrimaryCtxRelease_v2(0);
	assert_int_equal(fake.active, 0);
	assert_false(is_live(CUF_SPACE_DEVICE, 0x6000000));
	assert_true(is_live(CUF_SPACE_DEVICE, 0x7000000));
	cuf_hook_cuMemFree_v2(0x7000000);
}

/* ---- what the driver takes for itself ---- */

static void test_bracket__lost_free_memory_becomes_one_growing_entry(void **state)
{
	uint64_t addr = (uint64_t)1 << 16 | CUF_HOOK_cuCtxSetLimit;
	cuf_hook_cuCtxSetLimit(0, 10 * MIB);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 10 * MIB);
	cuf_hook_cuCtxSetLimit(0, 5 * MIB);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 15 * MIB);
	cuf_hook_cuCtxSetLimit(0, 0);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 15 * MIB);
	cuf_hook_cuDevicePrimaryCtxReset_v2(0);
	assert_false(is_live(CUF_SPACE_CONTEXT, addr));
	cuf_hook_cuCtxSetLimit(0, MIB);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, MIB);
}

static void test_bracket__an_unload_takes_from_the_loads(void **state)
{
	uint64_t addr = (uint64_t)1 << 16 | CUF_HOOK_cuModuleLoadData;
	fake.range_bytes = 6 * MIB;
	cuf_hook_cuModuleLoadData(NULL, NULL);
	cuf_hook_cuModuleLoadData(NULL, NULL);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 12 * MIB);
	cuf_hook_cuModuleUnload(NULL);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 6 * MIB);
	fake.range_bytes = 9 * MIB; /* with code that came at its first launch */
	cuf_hook_cuModuleUnload(NULL);
	assert_false(is_live(CUF_SPACE_CONTEXT, addr));
	cuf_hook_cuModuleLoadData(NULL, NULL);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 9 * MIB);
	fake.range_bytes = (size_t)-MIB; /* an unload that lost memory: others took it */
	cuf_hook_cuModuleUnload(NULL);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, 9 * MIB);
}

static void test_bracket__asks_nothing_during_a_capture(void **state)
{
	uint64_t addr = (uint64_t)1 << 16 | CUF_HOOK_cuCtxSetLimit,
		 before = block_at(CUF_SPACE_CONTEXT, addr).bytes;
	cuf_hook_cuStreamBeginCapture_v2((CUstream)0x10, CU_STREAM_CAPTURE_MODE_GLOBAL);
	cuf_hook_cuCtxSetLimit(0, MIB);
	cuf_hook_cuStreamEndCapture((CUstream)0x10, NULL);
	assert_int_equal(block_at(CUF_SPACE_CONTEXT, addr).bytes, before);
}

#define TEST(name) cmocka_unit_test_setup(name, before_each)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_call__outputs_are_not_read_after_a_failure),
		TEST(test_call__errno_and_capture_mode_stay),
		TEST(test_call__a_missing_function_is_said_to_be_missing),
		TEST(test_linear__a_refused_free_is_undone),
		TEST(test_linear__unknown_pointers_are_forwarded_and_null_is_no_unknown_free),
		TEST(test_linear__pitch_counts_padded_rows),
		TEST(test_linear__a_failure_keeps_what_the_driver_said),
		TEST(test_linear__a_launch_that_found_no_memory_has_no_size),
		TEST(test_query__borrows_the_primary_context_and_gives_it_back),
		TEST(test_query__the_probe_finds_the_largest_request),
		TEST(test_vmm__a_release_after_the_map_is_no_free),
		TEST(test_vmm__a_refused_release_leaves_the_counts),
		TEST(test_vmm__a_retain_needs_its_own_release),
		TEST(test_vmm__a_second_release_that_is_refused_adds_nothing),
		TEST(test_vmm__one_unmap_over_many_maps_is_undone_as_a_whole),
		TEST(test_vmm__an_imported_handle_learns_its_size_from_its_map),
		TEST(test_vmm__host_memory_is_no_device_memory),
		TEST(test_pool__blocks_know_their_pool_and_survive_a_reset),
		TEST(test_pool__the_largest_pools_come_first),
		TEST(test_pool__one_without_a_place_is_counted),
		TEST(test_pool__a_threshold_of_zero_does_not_end_the_pool),
		TEST(test_graph__a_captured_allocation_is_a_node_until_launched),
		TEST(test_array__sizes_are_asked_or_estimated_and_said_so),
		TEST(test_array__mip_levels_halve_but_layers_stay),
		TEST(test_ipc__a_handle_opened_twice_is_closed_twice),
		TEST(test_external__the_object_lives_as_long_as_its_buffers),
		TEST(test_context__frees_its_own_blocks_alone),
		TEST(test_context__the_last_release_frees_what_the_primary_context_held),
		TEST(test_bracket__lost_free_memory_becomes_one_growing_entry),
		TEST(test_bracket__an_unload_takes_from_the_loads),
		TEST(test_bracket__asks_nothing_during_a_capture),
	};
	fake_start("size=16MiB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
