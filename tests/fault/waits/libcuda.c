/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver of a dozen functions with one lock, as a context has, and nothing in destructors. So a
 * call that waits for the lock is a call that the recorder made.
 */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

enum { TOTAL_GIB = 16, OUT_OF_MEMORY = 2 };
typedef unsigned long long device_pointer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const size_t total_bytes = (size_t)TOTAL_GIB << 30;
static size_t used_bytes;
static device_pointer next = 0x700000000000;

int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *version) { *version = 12040; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuCtxGetCurrent(void **context) { *context = (void *)0x1000; return 0; }
int cuCtxCreate_v2(void **context, unsigned flags, int device) { return cuCtxGetCurrent(context); }
int cuThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cuMemFree_v2(device_pointer block) { return 0; }

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	pthread_mutex_lock(&lock);
	*total = total_bytes;
	*free_bytes = total_bytes - used_bytes;
	pthread_mutex_unlock(&lock);
	return 0;
}

int cuMemAlloc_v2(device_pointer *out, size_t bytes)
{
	int refused;
	pthread_mutex_lock(&lock);
	refused = bytes > total_bytes - used_bytes;
	if (!refused) {
		*out = next;
		next += bytes;
		used_bytes += bytes;
	}
	pthread_mutex_unlock(&lock);
	return refused ? OUT_OF_MEMORY : 0;
}

/* Never returns for a size of 0: the device hangs. */
int cuMemcpyHtoD_v2(device_pointer to, const void *from, size_t bytes)
{
	pthread_mutex_lock(&lock);
	for (volatile size_t i = 0; !bytes || i < bytes; i++)
		if (!bytes)
			usleep(1000);
	pthread_mutex_unlock(&lock);
	return 0;
}
