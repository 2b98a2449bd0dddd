/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain libcudart: how it finds its driver, devices and errors. The look-ups repeat what NVIDIA's
 * runtime was observed to do, in its order and before cuInit: dlopen of libcuda.so.1, one dlsym of
 * cuGetProcAddress_v2, a probe with an empty name, the resolver itself at 11030 and 12000, then
 * everything through the resolver without requesting a status. Without the resolver it uses plain
 * dlsym.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/sim/runtime/runtime.h"

#define DEVICES_MAX 16

typedef CUresult (*ask_old)(const char *, void **, int, cuuint64_t);
typedef CUresult (*ask_new)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

struct driver driver;
static const struct { const char *base, *exact; int version; cuuint64_t flags; size_t offset; } asked[] = {
#define ASK(field, base, version, flags, exact, params) {#base, #exact, version, flags, offsetof(struct driver, field)},
#include "tests/sim/runtime/runtime_driver.def"
};
#define ASKED (sizeof asked / sizeof *asked)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cudaError_t load_result = cudaErrorInsufficientDriver;
static CUcontext contexts[DEVICES_MAX];
static _Atomic unsigned resets;
static __thread int device;
static __thread unsigned resets_seen;
static __thread cudaError_t last_error;

int this_device(void) { return device; }

static void look_up(void *handle, ask_new resolve)
{
	void *probe = NULL;
	ask_old old_form = NULL;
	if (resolve) {
		resolve("", &probe, 0, 0, NULL);
		resolve("cuGetProcAddress", (void **)&old_form, 11030, 0, NULL);
		resolve("cuGetProcAddress", (void **)&driver.get_proc, 12000, 0, NULL);
	}
	for (size_t i = 0; i < ASKED; i++) {
		void **cell = (void **)((char *)&driver + asked[i].offset);
		if (resolve)
			resolve(asked[i].base, cell, asked[i].version, asked[i].flags, NULL);
		else
			*cell = dlsym(handle, asked[i].exact);
	}
}

/* The real one leaves its contexts to the driver's own end; the effect is this. */
static void at_end(void)
{
	for (int i = 0; i < DEVICES_MAX; i++)
		if (contexts[i])
			driver.ctx_release(i);
}

static void load(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);
	int version;
	if (!handle)
		return;
	look_up(handle, (ask_new)dlsym(handle, "cuGetProcAddress_v2"));
	if (!driver.driver_version || !driver.init || driver.driver_version(&version) || version < 11020)
		return;
	load_result = driver.init(0);
	if (!load_result)
		atexit(at_end);
}

static cudaError_t context_of(int index, CUcontext *out)
{
	cudaError_t result = 0;
	pthread_mutex_lock(&lock);
	if (!contexts[index])
		result = driver.ctx_retain(&contexts[index], index);
	*out = contexts[index];
	pthread_mutex_unlock(&lock);
	return result;
}

static cudaError_t make_current(void)
{
	CUcontext current = NULL, own;
	cudaError_t result;
	if (resets_seen == resets && !driver.ctx_get(&current) && current)
		return 0; /* the program's own context, or ours */
	result = context_of(device, &own);
	if (!result)
		result = driver.ctx_set(own);
	if (!result)
		resets_seen = resets;
	return result;
}

cudaError_t enter(void)
{
	pthread_once(&once, load);
	return load_result ? load_result : make_current();
}

cudaError_t leave(cudaError_t result)
{
	if (result)
		last_error = result;
	return result;
}

EXPORT(cudaSetDevice, (int index))
{
	int count = 0;
	pthread_once(&once, load);
	if (load_result || driver.device_count(&count) || index < 0 || index >= count)
		return leave(load_result ? load_result : cudaErrorInvalidDevice);
	CUcontext own;
	device = index;
	cudaError_t result = context_of(index, &own);
	return leave(result ? result : driver.ctx_set(own));
}

EXPORT(cudaGetDevice, (int *out))
{
	*out = device;
	return 0;
}

EXPORT(cudaGetDeviceCount, (int *out))
{
	pthread_once(&once, load);
	*out = 0;
	return leave(load_result ? load_result : driver.device_count(out));
}

/* every thread's context is gone; each begins it anew at its next call */
API cudaError_t cudaDeviceReset(void)
{
	cudaError_t result = enter();
	if (!result)
		result = driver.ctx_reset(device);
	resets++;
	return leave(result);
}

EXPORT(cudaDeviceSynchronize, (void)) FORWARD(ctx_sync, ())
EXPORT(cudaMemGetInfo, (size_t *free_bytes, size_t *total_bytes)) FORWARD(mem_info, (free_bytes, total_bytes))

EXPORT(cudaRuntimeGetVersion, (int *out))
{
	*out = CUDART_MAJOR >= 13 ? 13000 : 12090;
	return 0;
}

EXPORT(cudaDriverGetVersion, (int *out))
{
	pthread_once(&once, load);
	*out = 0;
	return driver.driver_version ? driver.driver_version(out) : 0;
}

EXPORT(cudaGetLastError, (void))
{
	cudaError_t result = last_error;
	last_error = 0;
	return result;
}

EXPORT(cudaPeekAtLastError, (void)) { return last_error; }

static const struct { int code; const char *name, *text; } errors[] = {
	{0, "cudaSuccess", "no error"},
	{1, "cudaErrorInvalidValue", "invalid argument"},
	{2, "cudaErrorMemoryAllocation", "out of memory"},
	{3, "cudaErrorInitializationError", "initialization error"},
	{35, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"},
	{100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{101, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
};

static const char *error_text(cudaError_t code, bool name)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			return name ? errors[i].name : errors[i].text;
	return "unrecognized error code";
}

API const char *cudaGetErrorName(cudaError_t code);
API const char *cudaGetErrorName(cudaError_t code) { return error_text(code, true); }
API const char *cudaGetErrorString(cudaError_t code);
API const char *cudaGetErrorString(cudaError_t code) { return error_text(code, false); }

static cudaError_t entry_point(const char *symbol, void **out, int version, cuuint64_t flags, int *status)
{
	CUdriverProcAddressQueryResult found = 1;
	pthread_once(&once, load);
	if (load_result || !driver.get_proc)
		return leave(load_result ? load_result : cudaErrorInsufficientDriver);
	cudaError_t result = driver.get_proc(symbol, out, version, flags, &found);
	if (status)
		*status = found;
	return leave(result);
}

#define ENTRY_POINTS(suffix, by_default) \
	EXPORT(cudaGetDriverEntryPoint##suffix, (const char *symbol, void **out, unsigned long long flags, int *status)) \
	{ \
		int version = 0; \
		cudaRuntimeGetVersion(&version); \
		return entry_point(symbol, out, version, flags ? flags : by_default, status); \
	} \
	EXPORT(cudaGetDriverEntryPointByVersion##suffix, (const char *symbol, void **out, unsigned version, unsigned long long flags, int *status)) \
	{ \
		return entry_point(symbol, out, (int)version, flags ? flags : by_default, status); \
	}
ENTRY_POINTS(, 1)
ENTRY_POINTS(_ptsz, 2)
