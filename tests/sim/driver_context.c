/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: primary ones with their reference counts, created ones, the current stack of each
 * thread, and what ends with a context. Blocks of cuMemCreate, cuMemAllocAsync and graphs belong to
 * no context and survive (cuda.h, cuCtxDestroy).
 */
#include "tests/sim/driver.h"

#define STACK_MAX 32

struct seat { struct object *context; uint64_t id; };
static __thread struct seat stack[STACK_MAX];
static __thread int depth;

static struct object *primaries[DEVICES_MAX];
static int alive[DEVICES_MAX]; /* contexts on the device; the first takes the context's bytes */

static struct object *context_of(CUcontext handle)
{
	struct object *context = handle ? object_find(KIND_CONTEXT, (uint64_t)(uintptr_t)handle) : NULL;
	return context;
}

static CUcontext handle_of(const struct object *context) { return (CUcontext)(uintptr_t)(context ? context->addr : 0); }

static bool seat_valid(const struct seat *seat)
{
	const struct object *found = seat->context ? context_of(handle_of(seat->context)) : NULL;
	return found && found->id == seat->id && found->context_state.active;
}

CUresult context_current(struct object **out)
{
	if (!depth || !stack[depth - 1].context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!seat_valid(&stack[depth - 1]))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*out = stack[depth - 1].context;
	return 0;
}

int current_device(void)
{
	struct object *context;
	return context_current(&context) ? -1 : context->device;
}

static CUresult context_begin(struct object *context)
{
	if (!alive[context->device] && !device_take(context->device, settings.context_bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	alive[context->device]++;
	context->context_state.active = true;
	return 0;
}

static bool handle_dies(const struct object *object)
{
	return object->kind == KIND_ARRAY || object->kind == KIND_EXTERNAL || object->kind == KIND_STREAM || object->kind == KIND_EVENT ||
	       object->kind == KIND_MODULE;
}

/* Everything bound to the context goes; the context itself stays for whoever still has it
 * current. */
static void context_end(struct object *context)
{
	struct object *object, *following;
	if (!context->context_state.active)
		return;
	for (object = object_next(NULL, true); object; object = following) {
		following = object_next(object, true);
		if (object->context == context)
			memory_free(object);
	}
	for (object = object_next(NULL, false); object; object = following) {
		following = object_next(object, false);
		if (object->context != context || !handle_dies(object))
			continue;
		if (object->kind == KIND_MODULE)
			device_give(object->device, settings.module_bytes);
		if (object->kind == KIND_ARRAY)
			array_free(object);
		else
			object_delete(object);
	}
	context->context_state.active = false;
	if (!--alive[context->device])
		device_give(context->device, settings.context_bytes);
}

static CUresult primary_retain(CUcontext *out, CUdevice device)
{
	CUresult result = 0;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct object *context = primaries[device];
	if (!context) {
		context = primaries[device] = object_new(KIND_CONTEXT, 0);
		context->device = device;
		context->context_state.primary = true;
	}
	if (!context->context_state.active)
		result = context_begin(context);
	if (!result) {
		context->refs++;
		*out = handle_of(context);
	}
	return result;
}

static CUresult primary_release(CUdevice device)
{
	struct object *context = device_valid(device) ? primaries[device] : NULL;
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!context || !context->refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!--context->refs)
		context_end(context);
	return 0;
}

/* A reset frees, and does not release: the next use of a retained context begins it anew. */
static CUresult primary_reset(CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct object *context = primaries[device];
	if (context)
		context_end(context);
	return 0;
}

static CUresult primary_state(CUdevice device, unsigned int *flags, int *active)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = 0;
	*active = primaries[device] && primaries[device]->context_state.active;
	return 0;
}

static CUresult set_current(struct object *context)
{
	if (!depth)
		depth = 1;
	stack[depth - 1] = (struct seat){context, context ? context->id : 0};
	return 0;
}

static CUresult push(CUcontext handle)
{
	struct object *context = context_of(handle);
	if (!context || depth == STACK_MAX)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack[depth++] = (struct seat){context, context->id};
	return 0;
}

static CUresult pop(CUcontext *out)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (out)
		*out = handle_of(stack[depth].context);
	return 0;
}

static CUresult create(CUcontext *out, CUdevice device)
{
	if (!device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct object *context = object_new(KIND_CONTEXT, 0);
	context->device = device;
	context->refs = 1;
	CUresult result = context_begin(context);
	if (result)
		object_delete(context);
	else if ((result = push(handle_of(context))) == 0)
		*out = handle_of(context);
	return result;
}

static CUresult destroy(CUcontext handle)
{
	struct object *context = context_of(handle);
	if (!context || context->context_state.primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_end(context);
	if (depth && stack[depth - 1].context == context)
		depth--;
	object_delete(context);
	return 0;
}

static CUresult set_current_handle(CUcontext handle)
{
	struct object *context = context_of(handle);
	if (handle && !context)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* a retained primary that was reset begins anew when it is made current */
	if (context && context->context_state.primary && context->refs && !context->context_state.active) {
		CUresult result = context_begin(context);
		if (result)
			return result;
	}
	return set_current(context);
}

static CUresult get_device(CUdevice *out, CUcontext handle)
{
	struct object *context = context_of(handle);
	CUresult result = 0;
	if (!handle)
		result = context_current(&context);
	else if (!context)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (!result)
		*out = context->device;
	return result;
}

static CUresult synchronize(CUcontext handle)
{
	CUdevice device;
	CUresult result = get_device(&device, handle);
	if (!result)
		pools_settle(device);
	return result;
}

static CUresult need_current(void)
{
	struct object *context;
	return context_current(&context);
}

static CUresult limit_get(size_t *out, CUlimit limit)
{
	static const size_t defaults[] = {1024, 1u << 20, 8u << 20, 2, 2048, 128, 0};
	if (need_current())
		return need_current();
	if (limit < 0 || limit >= (int)(sizeof defaults / sizeof *defaults))
		return CUDA_ERROR_INVALID_VALUE;
	*out = defaults[limit];
	return 0;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) CALL("cuDevicePrimaryCtxRetain", CALL_PLAIN, primary_retain(out, device))
CUresult cuDevicePrimaryCtxRelease(CUdevice device) CALL("cuDevicePrimaryCtxRelease", CALL_PLAIN, primary_release(device))
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) CALL("cuDevicePrimaryCtxRelease", CALL_PLAIN, primary_release(device))
CUresult cuDevicePrimaryCtxReset(CUdevice device) CALL("cuDevicePrimaryCtxReset", CALL_PLAIN, primary_reset(device))
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) CALL("cuDevicePrimaryCtxReset", CALL_PLAIN, primary_reset(device))
EXPORT(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active))
	CALL("cuDevicePrimaryCtxGetState", CALL_PLAIN, primary_state(device, flags, active))

CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device) CALL("cuCtxCreate", CALL_PLAIN, create(out, device))
CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device) CALL("cuCtxCreate", CALL_PLAIN, create(out, device))
CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int count, unsigned int flags, CUdevice device)
	CALL("cuCtxCreate", CALL_PLAIN, create(out, device))
CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice device)
	CALL("cuCtxCreate", CALL_PLAIN, create(out, device))
CUresult cuCtxDestroy(CUcontext context) CALL("cuCtxDestroy", CALL_PLAIN, destroy(context))
CUresult cuCtxDestroy_v2(CUcontext context) CALL("cuCtxDestroy", CALL_PLAIN, destroy(context))
CUresult cuCtxDetach(CUcontext context) CALL("cuCtxDetach", CALL_PLAIN, destroy(context))
EXPORT(cuCtxPushCurrent, (CUcontext context)) CALL("cuCtxPushCurrent", CALL_PLAIN, push(context))
EXPORT(cuCtxPushCurrent_v2, (CUcontext context)) CALL("cuCtxPushCurrent", CALL_PLAIN, push(context))
EXPORT(cuCtxPopCurrent, (CUcontext *out)) CALL("cuCtxPopCurrent", CALL_PLAIN, pop(out))
EXPORT(cuCtxPopCurrent_v2, (CUcontext *out)) CALL("cuCtxPopCurrent", CALL_PLAIN, pop(out))
EXPORT(cuCtxSetCurrent, (CUcontext context)) CALL("cuCtxSetCurrent", CALL_PLAIN, set_current_handle(context))
EXPORT(cuCtxGetCurrent, (CUcontext *out))
	CALL("cuCtxGetCurrent", CALL_PLAIN, (*out = depth ? handle_of(stack[depth - 1].context) : NULL, 0))
EXPORT(cuCtxGetDevice, (CUdevice *out)) CALL("cuCtxGetDevice", CALL_PLAIN, get_device(out, NULL))
EXPORT(cuCtxGetDevice_v2, (CUdevice *out, CUcontext context)) CALL("cuCtxGetDevice", CALL_PLAIN, get_device(out, context))
EXPORT(cuCtxSynchronize, (void)) CALL("cuCtxSynchronize", CALL_UNSAFE, synchronize(NULL))
EXPORT(cuCtxSynchronize_v2, (CUcontext context)) CALL("cuCtxSynchronize", CALL_UNSAFE, synchronize(context))
EXPORT(cuCtxGetFlags, (unsigned int *out)) CALL("cuCtxGetFlags", CALL_PLAIN, (*out = 0, need_current()))
EXPORT(cuCtxGetApiVersion, (CUcontext context, unsigned int *out)) CALL("cuCtxGetApiVersion", CALL_PLAIN, (*out = 3020, 0))
EXPORT(cuCtxGetId, (CUcontext context, unsigned long long *out))
	CALL("cuCtxGetId", CALL_PLAIN, context_of(context) ? (*out = context_of(context)->id, 0) : CUDA_ERROR_INVALID_CONTEXT)
CUresult cuCtxSetLimit(CUlimit limit, size_t value) CALL("cuCtxSetLimit", CALL_PLAIN, need_current())
EXPORT(cuCtxGetLimit, (size_t *out, CUlimit limit)) CALL("cuCtxGetLimit", CALL_PLAIN, limit_get(out, limit))
