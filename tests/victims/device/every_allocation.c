/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls each allocating function of the driver by its exact name, in each form that this driver has
 * (legacy, _v2, _ptsz). It calls each twice, and frees one of the two by the matching function. A
 * form that fails here allocated nothing and is not counted. Only with --door=dlsym.
 */
#include <sys/mman.h>

#include "tests/victims/vmm.h"

static struct {
	const char *kind;
	size_t bytes;
	int count;
} live[] = {
	{ "device", 0, 0 }, { "managed", 0, 0 },    { "async", 0, 0 },    { "array", 0, 0 },
	{ "pinned", 0, 0 }, { "registered", 0, 0 }, { "imported", 0, 0 }, { "vmm", 0, 0 },
};

static void count(const char *kind, size_t bytes)
{
	for (size_t i = 0; i < sizeof live / sizeof *live; i++)
		if (!strcmp(live[i].kind, kind)) {
			live[i].bytes += bytes;
			live[i].count++;
		}
}

/* calls the function of this name with up to five arguments: enough for all that are asked here, in
 * the C ABI */
static CUresult call(const char *name, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,
                     uintptr_t e)
{
	CUresult (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
	*(void **)&function = dlsym(cu.driver, name);
	return function ? function(a, b, c, d, e) : CUDA_ERROR_NOT_FOUND;
}
#define AT(variable) ((uintptr_t)&(variable))

static void linear(void)
{
	static const struct {
		const char *alloc, *release;
	} forms[] = { { "cuMemAlloc_v2", "cuMemFree_v2" }, { "cuMemAlloc", "cuMemFree" } };
	for (size_t f = 0; f < 2; f++) {
		CUdeviceptr kept = 0, gone = 0;
		if (call(forms[f].alloc, AT(kept), 3 * MiB, 0, 0, 0))
			continue;
		MUST(call(forms[f].alloc, AT(gone), 200 * KiB, 0, 0, 0));
		MUST(call(forms[f].release, gone, 0, 0, 0, 0));
		count("device", 3 * MiB);
	}
}

static void pitched(void)
{
	static const char *const forms[] = {"cuMemAllocPitch_v2", "cuMemAllocPitch"};
	for (size_t f = 0; f < 2; f++) {
		CUdeviceptr kept = 0, gone = 0;
		size_t pitch = 0;
		if (call(forms[f], AT(kept), AT(pitch), 1000, 300, 4))
			continue;
		count("device", pitch * 300);
		MUST(call(forms[f], AT(gone), AT(pitch), 5000, 100, 4));
		MUST(cu.release(gone));
	}
}

static void stream_ordered(const char *suffix, CUmemoryPool pool)
{
	char alloc[64], from_pool[64], release[64];
	CUdeviceptr kept = 0, gone = 0;
	snprintf(alloc, sizeof alloc, "cuMemAllocAsync%s", suffix);
	snprintf(from_pool, sizeof from_pool, "cuMemAllocFromPoolAsync%s", suffix);
	snprintf(release, sizeof release, "cuMemFreeAsync%s", suffix);
	MUST(call(alloc, AT(kept), 2 * MiB, 0, 0, 0));
	MUST(call(alloc, AT(gone), 1 * MiB, 0, 0, 0));
	MUST(call(release, gone, 0, 0, 0, 0));
	count("async", 2 * MiB);
	MUST(call(from_pool, AT(kept), 4 * MiB, (uintptr_t)pool, 0, 0));
	MUST(call(from_pool, AT(gone), 3 * MiB, (uintptr_t)pool, 0, 0));
	MUST(call(release, gone, 0, 0, 0, 0));
	count("async", 4 * MiB);
}

static void arrays(void)
{
	CUDA_ARRAY_DESCRIPTOR flat = {256, 128, 0x20, 1};
	CUDA_ARRAY_DESCRIPTOR_v1 flat_old = {256, 128, 0x20, 1};
	CUDA_ARRAY3D_DESCRIPTOR deep = {128, 64, 16, 0x20, 1, 0};
	CUDA_ARRAY3D_DESCRIPTOR_v1 deep_old = {128, 64, 16, 0x20, 1, 0};
	const struct {
		const char *create;
		uintptr_t desc;
		size_t bytes;
	} forms[] = {
		{ "cuArrayCreate_v2", AT(flat), 256 * 128 * 4 },
		{ "cuArrayCreate", AT(flat_old), 256 * 128 * 4 },
		{ "cuArray3DCreate_v2", AT(deep), 128 * 64 * 16 * 4 },
		{ "cuArray3DCreate", AT(deep_old), 128 * 64 * 16 * 4 },
	};
	for (size_t f = 0; f < 4; f++) {
		CUarray kept = NULL, gone = NULL;
		if (call(forms[f].create, AT(kept), forms[f].desc, 0, 0, 0))
			continue;
		MUST(call(forms[f].create, AT(gone), forms[f].desc, 0, 0, 0));
		MUST(cu.array_destroy(gone));
		count("array", forms[f].bytes);
	}
	CUmipmappedArray levels = NULL;
	MUST(call("cuMipmappedArrayCreate", AT(levels), AT(deep), 3, 0, 0));
	MUST(call("cuMipmappedArrayDestroy", (uintptr_t)levels, 0, 0, 0, 0));
}

static void host(void)
{
	static const char *const alloc[] = { "cuMemHostAlloc", "cuMemAllocHost_v2",
		                             "cuMemAllocHost" };
	static const char *const pin[] = {"cuMemHostRegister_v2", "cuMemHostRegister"};
	for (size_t f = 0; f < 3; f++) {
		void *kept = NULL, *gone = NULL;
		if (call(alloc[f], AT(kept), 2 * MiB, 0, 0, 0))
			continue;
		MUST(call(alloc[f], AT(gone), 1 * MiB, 0, 0, 0));
		MUST(cu.pinned_free(gone));
		count("pinned", 2 * MiB);
	}
	for (size_t f = 0; f < 2; f++) {
		void *kept = mmap(NULL, 2 * MiB, PROT_READ | PROT_WRITE,
		                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (kept == MAP_FAILED || call(pin[f], (uintptr_t)kept, 1 * MiB, 0, 0, 0))
			continue;
		MUST(call(pin[f], (uintptr_t)kept + 1 * MiB, 1 * MiB, 0, 0, 0));
		MUST(cu.host_unregister((char *)kept + 1 * MiB));
		count("registered", 1 * MiB);
	}
}

/* a descriptor that no driver but the simulated one takes for external memory */
static void external(void)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = {.type = 1, .size = 8 * MiB};
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC whole = { .size = 8 * MiB },
					 part = { .offset = 4 * MiB, .size = 2 * MiB };
	CUexternalMemory memory = NULL;
	CUdeviceptr kept = 0, gone = 0;
	desc.handle.fd = memfd_create("external", 0);
	if (call("cuImportExternalMemory", AT(memory), AT(desc), 0, 0, 0))
		return;
	MUST(call("cuExternalMemoryGetMappedBuffer", AT(kept), (uintptr_t)memory, AT(whole), 0, 0));
	MUST(call("cuExternalMemoryGetMappedBuffer", AT(gone), (uintptr_t)memory, AT(part), 0, 0));
	MUST(cu.release(gone));
	MUST(call("cuDestroyExternalMemory", (uintptr_t)memory, 0, 0, 0, 0)); /* frees no buffer */
	count("imported", 8 * MiB);
}

static void physical(void)
{
	size_t granule = vmm_granule();
	CUmemGenericAllocationHandle kept = 0, gone = 0;
	MUST(cu.create(&kept, 2 * granule, &vmm_on_device, 0));
	MUST(cu.create(&gone, granule, &vmm_on_device, 0));
	MUST(cu.handle_release(gone));
	count("vmm", 2 * granule); /* held, never mapped */
}

int main(int argc, char **argv)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemoryPool pool;
	CUdeviceptr managed;
	door_open(argc, argv);
	if (cu.kind != DOOR_DLSYM)
		skip("only with --door=dlsym");
	linear();
	pitched();
	MUST(cu.managed(&managed, 2 * MiB, 1));
	count("managed", 2 * MiB);
	MUST(cu.pool_create(&pool, &props));
	stream_ordered("", pool);
	stream_ordered("_ptsz", pool);
	arrays();
	host();
	external();
	physical();
	for (size_t i = 0; i < sizeof live / sizeof *live; i++)
		say("live kind %s bytes %zu count %d", live[i].kind, live[i].bytes, live[i].count);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
