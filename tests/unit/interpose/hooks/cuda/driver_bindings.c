/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is bound to multicast objects and endpoints, or exported: who keeps it alive. */
#include "tests/unit/fixtures/fake_driver.h"

#define MIB ((size_t)1 << 20)

static int before_each(void **state)
{
	fake_reset();
	return 0;
}

static void test_binding__multicast_keeps_what_is_bound(void **state)
{
	make_mapped(0x54, 0x10000000, 2 * MIB);
	cuf_hook_cuMulticastBindMem(0x999, 4 * MIB, 0x54, 0, 2 * MIB, 0);
	cuf_hook_cuMemUnmap(0x10000000, 2 * MIB);
	cuf_hook_cuMemRelease(0x54);
	assert_true(is_live(CUF_SPACE_HANDLE, 0x54));
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMulticastUnbind(0x999, 0, 4 * MIB, 2 * MIB);
	assert_true(is_live(CUF_SPACE_HANDLE, 0x54));
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMulticastUnbind(0x999, 0, 0, 2 * MIB); /* another place */
	assert_true(is_live(CUF_SPACE_HANDLE, 0x54));
	cuf_hook_cuMulticastUnbind(0x999, 0, 4 * MIB, 2 * MIB);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x54));
}

/* Two devices' memory at one place of the object; one unbinding covers two places of a device. */
static void test_binding__an_unbinding_is_of_its_device_and_of_all_its_range(void **state)
{
	const CUdevice devices[] = { 0, 1, 0 };
	for (unsigned i = 0; i < 3; i++) {
		make_mapped(0x71 + i, 0x20000000 + i * 4 * MIB, 2 * MIB);
		cuf_hook_cuMulticastBindMem_v2(0x998, devices[i], i / 2 * 2 * MIB, 0x71 + i, 0,
					       2 * MIB, 0);
		cuf_hook_cuMemUnmap(0x20000000 + i * 4 * MIB, 2 * MIB);
		cuf_hook_cuMemRelease(0x71 + i);
	}
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuMulticastUnbind(0x998, 0, 0, 4 * MIB);
	for (unsigned i = 0; i < 3; i++)
		assert_true(is_live(CUF_SPACE_HANDLE, 0x71 + i));
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMulticastUnbind(0x998, 0, 0, 4 * MIB);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x71));
	assert_true(is_live(CUF_SPACE_HANDLE, 0x72));
	assert_false(is_live(CUF_SPACE_HANDLE, 0x73));
	cuf_hook_cuMulticastUnbind(0x998, 1, 0, 4 * MIB);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x72));
}

static void test_binding__an_endpoint_keeps_what_is_bound_until_it_is_destroyed(void **state)
{
	for (unsigned i = 0; i < 3; i++)
		make_mapped(0x81 + i, 0x30000000 + i * 4 * MIB, 2 * MIB);
	cuf_hook_cuLogicalEndpointBindMem(7, 0, 0, 0x81, 0, 2 * MIB, 0);
	cuf_hook_cuLogicalEndpointBindAddr(7, 0, 2 * MIB, (void *)(0x30000000 + 4 * MIB), 2 * MIB,
					   0);
	cuf_hook_cuLogicalEndpointBindMem(8, 0, 0, 0x83, 0, 2 * MIB, 0);
	for (unsigned i = 0; i < 3; i++) {
		cuf_hook_cuMemUnmap(0x30000000 + i * 4 * MIB, 2 * MIB);
		cuf_hook_cuMemRelease(0x81 + i);
		assert_true(is_live(CUF_SPACE_HANDLE, 0x81 + i));
	}
	cuf_hook_cuLogicalEndpointUnbind(8, 0, 0, 2 * MIB);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x83));
	cuf_hook_cuMulticastUnbind(7, 0, 0, 4 * MIB); /* a handle of the same number */
	fake.result = CUDA_ERROR_INVALID_VALUE;
	cuf_hook_cuLogicalEndpointDestroy(7);
	assert_true(is_live(CUF_SPACE_HANDLE, 0x81) && is_live(CUF_SPACE_HANDLE, 0x82));
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuLogicalEndpointDestroy(7);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x81) || is_live(CUF_SPACE_HANDLE, 0x82));
}

static void test_binding__one_without_a_place_is_counted(void **state)
{
	enum { PLACES = 256, BEYOND = 3 };
	const uint64_t *lost = &cuf_recording.header->lost[CUF_LOST_SMALL], before = *lost;
	make_mapped(0x61, 0x50000000, 2 * MIB);
	for (size_t i = 0; i < PLACES + BEYOND; i++)
		cuf_hook_cuMulticastBindMem(0x997, i * 2 * MIB, 0x61, 0, 2 * MIB, 0);
	assert_int_equal(*lost - before, BEYOND);
	cuf_hook_cuMulticastUnbind(0x997, 0, 0, (PLACES + BEYOND) * 2 * MIB);
	cuf_hook_cuMemUnmap(0x50000000, 2 * MIB);
	cuf_hook_cuMemRelease(0x61);
	assert_false(is_live(CUF_SPACE_HANDLE, 0x61));
}

/* GPUDirect RDMA: of a block, and of memory behind a mapping. */
static void test_export__a_dma_buf_is_another_holder(void **state)
{
	int descriptor;
	CUdeviceptr out;
	fake.out = 0x4000000;
	cuf_hook_cuMemAlloc_v2(&out, 4 * MIB);
	make_mapped(0x91, 0x40000000, 2 * MIB);
	fake.result = CUDA_ERROR_NOT_SUPPORTED;
	cuf_hook_cuMemGetHandleForAddressRange(&descriptor, 0x4000000, 4 * MIB, 1, 0);
	assert_false(block_at(CUF_SPACE_DEVICE, 0x4000000).flags & CUF_EVENT_EXPORTED);
	fake.result = CUDA_SUCCESS;
	cuf_hook_cuMemGetHandleForAddressRange(&descriptor, 0x4000000, 4 * MIB, 1, 0);
	cuf_hook_cuMemGetHandleForAddressRange(&descriptor, 0x40000000, 2 * MIB, 1, 0);
	assert_true(block_at(CUF_SPACE_DEVICE, 0x4000000).flags & CUF_EVENT_EXPORTED);
	assert_true(block_at(CUF_SPACE_HANDLE, 0x91).flags & CUF_EVENT_EXPORTED);
	cuf_hook_cuMemFree_v2(0x4000000);
	cuf_hook_cuMemUnmap(0x40000000, 2 * MIB);
	cuf_hook_cuMemRelease(0x91);
}

#define TEST(name) cmocka_unit_test_setup(name, before_each)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_binding__multicast_keeps_what_is_bound),
		TEST(test_binding__an_unbinding_is_of_its_device_and_of_all_its_range),
		TEST(test_binding__an_endpoint_keeps_what_is_bound_until_it_is_destroyed),
		TEST(test_binding__one_without_a_place_is_counted),
		TEST(test_export__a_dma_buf_is_another_holder),
	};
	fake_start("size=16MiB");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
