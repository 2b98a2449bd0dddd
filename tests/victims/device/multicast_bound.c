/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory bound to a multicast object by the functions of CUDA 13.1, as NCCL does, by handle and by
 * address. The handles are released and one mapping is gone; the memory stays until it is unbound.
 */
#include "tests/victims/vmm.h"

static CUresult (*multicast_create)(CUmemGenericAllocationHandle *, const CUmulticastObjectProp *);
static CUresult (*bind_handle)(CUmemGenericAllocationHandle, CUdevice, size_t,
			       CUmemGenericAllocationHandle, size_t, size_t, unsigned long long);
static CUresult (*bind_address)(CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t,
				unsigned long long);
static CUresult (*unbind)(CUmemGenericAllocationHandle, CUdevice, size_t, size_t);

#define FIND(pointer, name) (*(void **)&(pointer) = dlsym(cu.driver, name))

int main(int argc, char **argv)
{
	CUmulticastObjectProp prop = { .numDevices = 1 };
	CUmemGenericAllocationHandle multicast, handle;
	size_t piece;
	CUdeviceptr at;

	door_open(argc, argv);
	if (!FIND(multicast_create, "cuMulticastCreate") ||
	    !FIND(bind_handle, "cuMulticastBindMem_v2") ||
	    !FIND(bind_address, "cuMulticastBindAddr_v2") || !FIND(unbind, "cuMulticastUnbind"))
		skip("this driver has no cuMulticastBindMem_v2");
	piece = 4 * vmm_granule();
	prop.size = 3 * piece;
	if (multicast_create(&multicast, &prop))
		skip("this device has no multicast");
	for (unsigned i = 0; i < 2; i++) {
		MUST(cu.create(&handle, piece, &vmm_on_device, 0));
		MUST(bind_handle(multicast, 0, i * piece, handle, 0, piece, 0));
		MUST(cu.handle_release(handle));
	}
	at = vmm_reserve(piece);
	vmm_grow(at, piece);
	MUST(bind_address(multicast, 0, 2 * piece, at, piece, 0));
	MUST(cu.unmap(at, piece));
	MUST(unbind(multicast, 0, 0, piece));
	say("live kind vmm bytes %zu count 2", 2 * piece);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
