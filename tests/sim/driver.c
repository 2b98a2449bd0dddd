/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated libcuda.so.1: settings, start, the entry and exit of every call, and what a driver
 * reports about itself. README.md lists what is modelled. Memory is in the other driver_*.c.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/sim/driver.h"

#define FAILS_MAX 16

static struct fail { char name[48]; unsigned long nth, seen; bool onwards; } fails[FAILS_MAX];
static int fail_count;
static bool initialised, forked;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* "name:n" fails the n-th call of that base name, "name:n+" every call from the n-th */
static void fails_read(const char *text)
{
	while (text && *text && fail_count < FAILS_MAX) {
		struct fail *f = &fails[fail_count];
		char plus = 0;
		if (sscanf(text, "%47[^:]:%lu%c", f->name, &f->nth, &plus) < 2)
			fprintf(stderr, "simcuda: SIMCUDA_FAIL: cannot read \"%s\"\n", text);
		else
			fail_count++;
		f->onwards = plus == '+';
		text = strchr(text, ',');
		text += text != NULL;
	}
}

__attribute__((constructor)) static void fails_prepare(void) { fails_read(getenv("SIMCUDA_FAIL")); }

static bool fail_due(const char *base)
{
	bool due = false;
	for (int i = 0; i < fail_count; i++)
		if (!strcmp(base, fails[i].name)) {
			unsigned long n = ++fails[i].seen;
			due |= n == fails[i].nth || (fails[i].onwards && n > fails[i].nth);
		}
	return due;
}

CUresult call_begin(const char *base, enum call_how how)
{
	CUresult refused = 0;
	if (!initialised || forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (settings.delay_us)
		usleep(settings.delay_us);
	pthread_mutex_lock(&lock);
	if (how == CALL_UNSAFE && capture_prohibits())
		refused = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	else if (fail_count && fail_due(base))
		refused = CUDA_ERROR_OUT_OF_MEMORY;
	if (refused)
		pthread_mutex_unlock(&lock);
	return refused;
}

void call_end(void) { pthread_mutex_unlock(&lock); }

bool device_valid(CUdevice device) { return device >= 0 && device < settings.devices; }

static void in_child(void) { forked = true; }

/*
 * The real driver looks its own exports up in cuInit, by dlsym and through the PLT. An interposer
 * that answers those with its hooks sends the driver round in circles (nvshare issue 27), so
 * getting back anything but our own code is an error.
 */
static bool answers_itself(void)
{
	void *by_name = self_symbol("cuInit"), *by_table = NULL, *again = NULL;
	CUresult four = cuGetProcAddress("cuInit", &by_table, 2000, 0);
	CUresult five = cuGetProcAddress_v2("cuInit", &again, 2000, 0, NULL);
	if (!four && !five && by_name && by_name == by_table && by_name == again)
		return true;
	fprintf(stderr, "simcuda: cuInit asked for itself and got dlsym %p, cuGetProcAddress %p and %p: the driver's own "
	        "look-ups must not be interposed\n", by_name, by_table, again);
	return false;
}

CUresult cuInit(unsigned int flags)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (settings.lookups_only || settings.devices <= 0)
		return CUDA_ERROR_NO_DEVICE;
	if (forked)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (initialised)
		return 0;
	if (!answers_itself())
		return CUDA_ERROR_UNKNOWN;
	pthread_mutex_lock(&once);
	if (!initialised && device_join()) {
		pthread_atfork(NULL, NULL, in_child);
		initialised = true;
	}
	pthread_mutex_unlock(&once);
	return initialised ? 0 : CUDA_ERROR_UNKNOWN;
}

EXPORT(cuDriverGetVersion, (int *version))
{
	*version = settings.version;
	return 0;
}

/* private tables: never offered, so that nobody is led to call into them */
EXPORT(cuGetExportTable, (const void **table, const CUuuid *id))
{
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

static const struct { int code; const char *name, *text; } errors[] = {
	{0, "CUDA_SUCCESS", "no error"},
	{1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
	{100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{208, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
	{400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	{712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"},
	{713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
	{800, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
	{801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	{903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not ended in the same stream as it began"},
	{999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static CUresult error_text(CUresult code, const char **out, bool name)
{
	*out = NULL;
	for (unsigned i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code)
			*out = name ? errors[i].name : errors[i].text;
	return *out ? 0 : CUDA_ERROR_INVALID_VALUE;
}

EXPORT(cuGetErrorName, (CUresult code, const char **out)) { return error_text(code, out, true); }
EXPORT(cuGetErrorString, (CUresult code, const char **out)) { return error_text(code, out, false); }

static CUresult need_device(CUdevice device) { return device_valid(device) ? 0 : CUDA_ERROR_INVALID_DEVICE; }

static CUresult uuid_fill(CUuuid *out, CUdevice device)
{
	if (need_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	memcpy(out->bytes, SIM_UUID_STEM, 15); /* the last byte tells devices apart */
	out->bytes[15] = (char)device;
	return 0;
}

static CUresult name_fill(char *out, int size, CUdevice device, const char *format)
{
	if (need_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!out || size <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	snprintf(out, (size_t)size, format, device + 1);
	return 0;
}

/* what cuflight, frameworks and the victims ask: compute capability, memory pools, VMM, unified
 * addressing; rest 0 */
static CUresult attribute_fill(int *out, CUdevice_attribute attribute, CUdevice device)
{
	static const struct { int attribute, value; } known[] = {
		{1, 1024}, {10, 32}, {16, 132}, {33, 1} /* PCI bus: set below */, {41, 1}, {75, 9}, {76, 0}, {83, 1}, {102, 1},
		{103, 1}, {115, 1},
	};
	if (need_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*out = 0;
	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].attribute == attribute)
			*out = attribute == 33 ? device + 1 : known[i].value;
	if (attribute == 102 && settings.no_vmm)
		*out = 0;
	return 0;
}

EXPORT(cuDeviceGetCount, (int *out)) CALL("cuDeviceGetCount", CALL_PLAIN, (*out = settings.devices, 0))
EXPORT(cuDeviceGet, (CUdevice *out, int ordinal))
	CALL("cuDeviceGet", CALL_PLAIN, need_device(ordinal) ? CUDA_ERROR_INVALID_DEVICE : (*out = ordinal, 0))
EXPORT(cuDeviceGetName, (char *out, int size, CUdevice device))
	CALL("cuDeviceGetName", CALL_PLAIN, name_fill(out, size, device, "Simulated GPU %d"))
EXPORT(cuDeviceGetPCIBusId, (char *out, int size, CUdevice device))
	CALL("cuDeviceGetPCIBusId", CALL_PLAIN, name_fill(out, size, device, SIM_PCI_FORMAT))
EXPORT(cuDeviceGetUuid, (CUuuid *out, CUdevice device)) CALL("cuDeviceGetUuid", CALL_PLAIN, uuid_fill(out, device))
EXPORT(cuDeviceGetUuid_v2, (CUuuid *out, CUdevice device)) CALL("cuDeviceGetUuid", CALL_PLAIN, uuid_fill(out, device))
EXPORT(cuDeviceTotalMem_v2, (size_t *out, CUdevice device))
	CALL("cuDeviceTotalMem", CALL_PLAIN, need_device(device) ? CUDA_ERROR_INVALID_DEVICE : (*out = settings.total_bytes, 0))
EXPORT(cuDeviceGetAttribute, (int *out, CUdevice_attribute attribute, CUdevice device))
	CALL("cuDeviceGetAttribute", CALL_PLAIN, attribute_fill(out, attribute, device))

static CUresult memory_info(size_t *free_bytes, size_t *total_bytes)
{
	struct object *context;
	CUresult result = context_current(&context);
	if (result)
		return result;
	if (free_bytes)
		*free_bytes = device_free_bytes(context->device);
	if (total_bytes)
		*total_bytes = settings.total_bytes;
	return 0;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) CALL("cuMemGetInfo", CALL_PLAIN, memory_info(free_bytes, total_bytes))

CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total_bytes)
{
	size_t wide_free = 0, wide_total = 0;
	CUresult result = call_begin("cuMemGetInfo", CALL_PLAIN);
	if (result)
		return result;
	result = memory_info(&wide_free, &wide_total);
	call_end();
	if (!result && free_bytes)
		*free_bytes = wide_free > UINT32_MAX ? UINT32_MAX : (unsigned int)wide_free;
	if (!result && total_bytes)
		*total_bytes = wide_total > UINT32_MAX ? UINT32_MAX : (unsigned int)wide_total;
	return result;
}
