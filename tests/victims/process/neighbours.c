/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shares the device with other processes (SIMCUDA_TENANTS, or real ones), has NVML open as serving
 * processes do, and grows until a request fails. Then it queries NVML for the processes, by the
 * oldest function and its own declarations. Any other user of NVML in this process must leave it
 * exactly as open as it was, which is checked. With --without-nvml it opens none.
 */
#include "tests/victims/doors.h"

enum { TENANTS = 64, NVML_UNINITIALIZED = 1 };

static struct {
	int (*init)(void), (*shutdown)(void);
	int (*handle)(const char *bus, void **device);
	int (*processes)(void *device, unsigned *count, void *records);
	void *device;
} nvml;

static void nvml_open(void)
{
	char bus[32] = "";
	int (*bus_id)(char *, int, int);
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL),
	     *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library || !driver)
		skip("no libnvidia-ml.so.1 here");
	*(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
	*(void **)&nvml.shutdown = dlsym(library, "nvmlShutdown");
	*(void **)&nvml.handle = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&nvml.processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses");
	*(void **)&bus_id = dlsym(driver, "cuDeviceGetPCIBusId");
	MUST(bus_id(bus, sizeof bus, 0));
	if (nvml.init() || nvml.handle(bus, &nvml.device))
		skip("NVML does not know the device");
}

/* The other processes that it names; records as a driver of the first NVML writes them. */
static void tell_neighbours(void)
{
	struct { unsigned pid; unsigned long long bytes; } records[TENANTS];
	unsigned count = TENANTS;
	unsigned long long sum = 0, untold = 0, told = 0;
	must(nvml.processes(nvml.device, &count, records),
	     "NVML's list of processes, with NVML open since the start");
	for (unsigned i = 0; i < count; i++) {
		if (records[i].pid == (unsigned)getpid())
			continue;
		if (records[i].bytes == ~0ull) {
			untold++;
			continue;
		}
		say("tenant pid %u bytes %llu", records[i].pid, records[i].bytes);
		sum += records[i].bytes;
		told++;
	}
	say("tenants told %llu untold %llu bytes %llu", told, untold, sum);
	must(nvml.shutdown(), "nvmlShutdown");
	count = TENANTS;
	if (nvml.processes(nvml.device, &count, records) != NVML_UNINITIALIZED) {
		fprintf(stderr, "victim: NVML is still open after the program closed it\n");
		exit(BROKEN);
	}
}

static CUresult append_kv(CUdeviceptr *out, size_t bytes) { return cu.alloc(out, bytes); }

int main(int argc, char **argv)
{
	CUdeviceptr block;
	size_t held = 0, count = 0, free_then = 0, total = 0, step;
	bool with_nvml = argc < 2 || strcmp(argv[argc - 1], "--without-nvml") != 0;
	door_open(argc - !with_nvml, argv);
	if (with_nvml)
		nvml_open();
	step = free_now() / 4 / GPU_PAGE * GPU_PAGE + GPU_PAGE;
	while (append_kv(&block, step) == 0) {
		held += step;
		count++;
	}
	MUST(cu.memory(&free_then, &total));
	say("incident api %s requested %zu outcome fatal site append_kv attempts 1 free %zu total %zu",
	    api_of("cudaMalloc", "cuMemAlloc_v2"), step, free_then, total);
	say("live kind device bytes %zu count %zu", held, count);
	if (with_nvml)
		tell_neighbours();
	say("end state exit 1");
	say("device index 0 free %zu total %zu", free_then, total);
	return 1;
}
