/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvidia-ml.so.1 as PyTorch queries it before it maps memory: there is a device, and it supports
 * none of what is queried.
 */
enum { SUCCESS = 0, NOT_SUPPORTED = 3 };

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *processes);
int nothing(void);

int nvmlInit_v2(void) { return SUCCESS; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
	*device = device;
	return SUCCESS;
}

/* PyTorch 2.8 insists on an answer when memory ran out. */
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *processes)
{
	*count = 0;
	return SUCCESS;
}

int nothing(void) { return NOT_SUPPORTED; }

#define NOTHING(name) __asm__(".globl " #name "\n.set " #name ", nothing")
NOTHING(nvmlDeviceGetNvLinkRemoteDeviceType);
NOTHING(nvmlDeviceGetNvLinkRemotePciInfo_v2);
NOTHING(nvmlSystemGetCudaDriverVersion_v2);
NOTHING(nvmlDeviceGetGpuFabricInfoV);
