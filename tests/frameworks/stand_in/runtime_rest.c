/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PyTorch and ggml need of the CUDA runtime except memory: devices, and events and launches
 * that do nothing. Memory comes from the simulated runtime. ../stand_in.py generates the names that
 * are in neither.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
	SUCCESS = 0,
	ATTRIBUTE_INTEGRATED = 18,
	ATTRIBUTE_MAJOR = 75,
	ATTRIBUTE_MINOR = 76,
	MEMORY_OF_DEVICE = 2,
	CAPTURE_NONE = 0
};
enum { MULTIPROCESSORS = 132 };

static char thing; /* handles point here: nobody looks behind them */

/* The head of struct cudaDeviceProp, which CUDA 12 and 13 have in common, except one int before the
 * last that CUDA 13 removed. */
struct properties {
	char name[256], uuid[16], luid[8];
	unsigned luid_mask;
	size_t total_bytes, shared_bytes;
	int registers, warp;
	size_t pitch;
	int threads, thread_dim[3], grid_dim[3];
	size_t constant_bytes;
	int major, minor;
	size_t texture_alignment, texture_pitch;
	int multiprocessors_13, multiprocessors_12;
	char rest[560];
};

int cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes);
int cudaGetDeviceProperties(struct properties *p, int device);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaDeviceGetPCIBusId(char *text, int bytes, int device);
int cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
int cudaEventCreate(void **event);
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventElapsedTime(float *ms, void *start, void *end);
int cudaPointerGetAttributes(void *attributes, const void *ptr);
int cudaStreamGetCaptureInfo(void *stream, int *status, uint64_t *id);
void **__cudaRegisterFatBinary(void *image);

int cudaGetDeviceProperties(struct properties *p, int device)
{
	size_t unused;
	memset(p, 0, sizeof *p);
	strcpy(p->name, "simulated");
	p->major = 9;
	p->multiprocessors_12 = p->multiprocessors_13 = MULTIPROCESSORS;
	p->warp = 32;
	p->threads = 1024;
	p->shared_bytes = 48 << 10;
	p->registers = 65536;
	return cudaMemGetInfo(&unused, &p->total_bytes);
}

int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == ATTRIBUTE_MAJOR
	                 ? 9
	                 : attribute != ATTRIBUTE_MINOR && attribute != ATTRIBUTE_INTEGRATED;
	return SUCCESS;
}

int cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:00:00.0");
	return SUCCESS;
}

int cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	*least = *greatest = 0;
	return SUCCESS;
}

int cudaEventCreate(void **event)
{
	*event = &thing;
	return SUCCESS;
}

int cudaEventCreateWithFlags(void **event, unsigned flags) { return cudaEventCreate(event); }

int cudaEventElapsedTime(float *ms, void *start, void *end)
{
	*ms = 0;
	return SUCCESS;
}

int cudaPointerGetAttributes(void *attributes, const void *ptr)
{
	struct { int type, device; const void *device_ptr; void *host_ptr; } *a = attributes;
	a->type = MEMORY_OF_DEVICE;
	a->device = 0;
	a->device_ptr = ptr;
	a->host_ptr = NULL;
	return SUCCESS;
}

/* All shapes of it begin with these. */
int cudaStreamGetCaptureInfo(void *stream, int *status, uint64_t *id)
{
	*status = CAPTURE_NONE;
	if (id)
		*id = 0;
	return SUCCESS;
}

void **__cudaRegisterFatBinary(void *image)
{
	static void *handle;
	return &handle;
}

/* CUDA 12's names of the same. */
__asm__(".globl cudaStreamGetCaptureInfo_v2\n.set cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo\n"
        ".globl cudaGetDeviceProperties_v2\n.set cudaGetDeviceProperties_v2, cudaGetDeviceProperties");
