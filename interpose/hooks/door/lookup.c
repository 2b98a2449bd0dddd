/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways into libraries: dlsym, dlvsym, dlopen, dlmopen, dlclose and both cuGetProcAddress.
 *
 * Two rules. Each was learnt from a program that broke.
 * - The real function looks at its caller's address. So what is not ours goes on as a jump, never
 *   as a call. scripts/lint-tailjump reads the object code.
 * - The real resolver is called first, with the caller's arguments. Only if its answer is an
 *   export of libcuda, the hook of exactly that export is returned. Versions, suffixes and "not
 *   found" stay the driver's decision.
 */
#include "interpose/hooks/door/lookup.h"

#include <errno.h>
#include <string.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/door/rows.h"
#include "interpose/hooks/cuda/cuda_runtime.h"
#include "interpose/hooks/cuda/gpu_processes.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/loader/coverage.h"
#include "interpose/hooks/loader/driver.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/resolve.h"
#include "interpose/hooks/malloc/allocator_private.h"

/* ---- the hooks ---- */

/* Hooked names outside libc start with "cu", "_Z" (c10), "gg" (ggml) or "nc" (nccl). */
static inline bool may_be_hooked(const char *name)
{
	return name && ((name[0] == 'c' && name[1] == 'u') || (name[0] == '_' && name[1] == 'Z') ||
			(name[0] == 'g' && name[1] == 'g') || (name[0] == 'n' && name[1] == 'c'));
}

static inline void need_real(void)
{
	if (__builtin_expect(!cuf_real.dlsym, 0))
		cuf_real_resolve();
}

CUF_JUMPS void *cuf_hook_dlsym(void *handle, const char *name)
{
	need_real();
	if (__builtin_expect(may_be_hooked(name), 0) &&
	    cuf_lookup_is_ours(handle, name, __builtin_return_address(0)))
		return cuf_lookup_answer(handle, name, NULL, __builtin_return_address(0));
	return cuf_real.dlsym(handle, name);
}

CUF_JUMPS void *cuf_hook_dlvsym(void *handle, const char *name, const char *version)
{
	need_real();
	if (__builtin_expect(may_be_hooked(name), 0) &&
	    cuf_lookup_is_ours(handle, name, __builtin_return_address(0)))
		return cuf_lookup_answer(handle, name, version, __builtin_return_address(0));
	return cuf_real.dlvsym(handle, name, version);
}

CUF_JUMPS void *cuf_hook_dlopen(const char *path, int flags)
{
	need_real();
	if (__builtin_expect(flags & RTLD_DEEPBIND, 0))
		cuf_coverage_deepbind(path);
	cuf_framework_read_version(); /* Python opens more libraries after PyTorch's */
	return cuf_real.dlopen(path, flags);
}

CUF_JUMPS void *cuf_hook_dlmopen(Lmid_t space, const char *path, int flags)
{
	need_real();
	if (space != LM_ID_BASE)
		cuf_coverage_namespace(path);
	return cuf_real.dlmopen(space, path, flags);
}

static void forget_unloaded(void)
{
	cuf_resolve_forget();
	cuf_runtime_forget_unloaded();
}

int cuf_hook_dlclose(void *handle)
{
	int result;
	need_real();
	cuf_driver_keep();
	cuf_gpu_processes_unload_begin();
	cuf_allocator_unload_begin();
	result = cuf_unload(cuf_real.dlclose, handle);
	cuf_allocator_unload_end();
	cuf_gpu_processes_unload_end();
	if (result == 0)
		forget_unloaded();
	return result;
}

/* ---- whether a look-up is ours ---- */

static bool is_pseudo_handle(const void *handle)
{
	return handle == RTLD_DEFAULT || handle == RTLD_NEXT;
}

bool cuf_lookup_is_ours(void *handle, const char *name, const void *caller)
{
	const struct cuf_row *row;
	/* nothing is behind the functions of cuflight.h, so nothing can be substituted */
	if (cuf_driver_holds(caller) || !strncmp(name, "cuflight_", 9))
		return false;
	/* any name of libcuda: those that are not hooked are noted */
	if (!is_pseudo_handle(handle) && name[0] == 'c')
		return true;
	row = cuf_row_find(name);
	if (!is_pseudo_handle(handle))
		return row != NULL;
	/* the search starts with the program: it would find our hook even if nothing were behind
	 * it */
	return row && row->library != CUF_LIBRARY_LIBC &&
	       (handle == RTLD_DEFAULT || cuf_dso_is_before_us(caller));
}

/* ---- the answer ---- */

/* Calls, never jumps: RTLD_NEXT is relative to the code that calls. The assembly keeps the compiler
 * from making a tail call of it. */
static void *real_answer(void *handle, const char *name, const char *version)
{
	void *found;
	if (version)
		found = cuf_real.dlvsym(handle, name, version);
	else
		found = cuf_real.dlsym(handle, name);
	__asm__ volatile("" : "+r"(found));
	return found;
}

/*
 * The search found our own export, which is no proof that the program has such a function. What
 * would it have found without us? The last look-up here is the one whose dlerror() the caller may
 * read.
 */
static void *answer_for_own_name(const struct cuf_row *row, const char *version, const void *caller)
{
	bool exists;
	if (row->library == CUF_LIBRARY_CUDA)
		exists = cuf_driver_has(row->slot);
	else
		exists = cuf_resolve_in_caller(row->id, caller) != NULL;
	if (!exists)
		return real_answer(RTLD_NEXT, row->name, version);
	real_answer(RTLD_DEFAULT, row->name, version);
	return cuf_row_hook(row);
}

/* RTLD_NEXT of an object before us: our hook is next, if an object behind us has the name too. */
static void *answer_for_next(const struct cuf_row *row, const char *version)
{
	if (!real_answer(RTLD_NEXT, row->name, version))
		return NULL;
	return cuf_row_hook(row);
}

/*
 * True for an object behind us that defines a function of this name itself: a preload or a library
 * of stubs that looks up what it wraps. We called it, so it gets the real function. The hook would
 * call it again, without end.
 */
static bool wraps_behind_us(const char *symbol, const void *caller)
{
	struct cuf_dso dso;
	return !cuf_dso_is_before_us(caller) && cuf_dso_at(caller, &dso) &&
	       cuf_elf_symbol(dso.map->l_addr, dso.map->l_ld, symbol) &&
	       !cuf_elf_is_variable(dso.map->l_addr, dso.map->l_ld, symbol);
}

/* Substitutes the hook for an export of the driver. */
static void *route(const char *symbol, void *found, int version, const void *caller)
{
	void *hook = cuf_driver_hook_of(found);
	if (hook && wraps_behind_us(symbol, caller))
		return found;
	if (hook)
		return hook;
	if (found && !cuf_dso_is_self(found))
		cuf_coverage_unhooked(symbol, version);
	return found;
}

/* `found` is an address inside libcuda. */
static void *answer_for_driver(const struct cuf_row *row, const char *name, void *found,
			       const void *caller)
{
	if (row && (row->id == CUF_HOOK_cuGetProcAddress_v2 ||
		    row->id == CUF_HOOK_cuGetProcAddress))
		cuf_coverage_runtime(caller);
	return route(name, found, 0, caller);
}

void *cuf_lookup_answer(void *handle, const char *name, const char *version, const void *caller)
{
	const struct cuf_row *row = cuf_row_find(name);
	void *hook = NULL, *found;
	bool attached_now;
	int saved;
	if (row)
		hook = cuf_row_hook(row);
	if (handle == RTLD_NEXT)
		return answer_for_next(row, version);
	found = hook;
	if (handle != RTLD_DEFAULT)
		found = real_answer(handle, name, version);
	if (row && found == hook)
		return answer_for_own_name(row, version, caller);
	if (found && row && row->library == CUF_LIBRARY_CUDART)
		return cuf_runtime_pointer(row->id, found);
	if (found && row && row->library != CUF_LIBRARY_CUDA)
		return cuf_resolve_matches(row->id, found, caller) ? hook : found;
	if (!found || !cuf_driver_attach_at(found, &attached_now))
		return found;
	saved = errno;
	if (attached_now) {
		cuf_framework_read_version();
		/* attaching ran code of the driver: make the caller's look-up the last one again */
		found = real_answer(handle, name, version);
	}
	if (cuf_driver_holds(found))
		found = answer_for_driver(row, name, found, caller);
	errno = saved;
	return found;
}

/* ---- the driver's own look-up ---- */

static CUresult routed(const char *symbol, void **out, int version, CUresult result,
		       const void *caller)
{
	if (result == CUDA_SUCCESS && out && symbol && !cuf_driver_holds(caller))
		*out = route(symbol, *out, version, caller);
	return result;
}

/* The 4-argument form of CUDA 11.3 to 11.8. Current runtimes look up this one, too. */
CUresult cuf_hook_cuGetProcAddress(const char *symbol, void **out, int version, cuuint64_t flags)
{
	if (!cuf_driver_has((void **)&cuf_real.cuGetProcAddress))
		return cuf_driver_refusal();
	CUresult result = cuf_real.cuGetProcAddress(symbol, out, version, flags);
	return routed(symbol, out, version, result, __builtin_return_address(0));
}

CUresult cuf_hook_cuGetProcAddress_v2(const char *symbol, void **out, int version, cuuint64_t flags,
				      CUdriverProcAddressQueryResult *status)
{
	if (!cuf_driver_has((void **)&cuf_real.cuGetProcAddress_v2))
		return cuf_driver_refusal();
	CUresult result = cuf_real.cuGetProcAddress_v2(symbol, out, version, flags, status);
	return routed(symbol, out, version, result, __builtin_return_address(0));
}
