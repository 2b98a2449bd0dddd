/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors into libraries: dlsym, dlvsym, dlopen, dlmopen, dlclose and both cuGetProcAddress.
 *
 * Two rules, each paid for by somebody (RTLD_NEXT recursion, PFN look-ups claimed by name):
 * - the real function looks at its caller's address, so what is not ours goes on as a jump, never as a call:
 *   scripts/lint-tailjump reads the object code;
 * - the real resolver is asked first, with the caller's own arguments; only if its answer IS an export of libcuda is
 *   the hook of exactly that export handed back. Versions, suffixes, "not found" stay the driver's decision.
 */
#include "interpose/hooks/door/lookup.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/elf_symbol.h"
#include "interpose/code/modules.h"
#include "interpose/python/python.h"
#include "interpose/record/state.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/bound.h"
#include "interpose/hooks/loader/coverage.h"
#include "interpose/hooks/loader/driver.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/process/process.h"
#include "interpose/hooks/loader/real.h"

/* A frame of ours on the stack would be the caller that the real function sees. */
#define CUF_JUMPS __attribute__((noinline, optimize("O2", "omit-frame-pointer", "no-stack-protector"), no_sanitize("address", "undefined", "thread")))

/* Names that may be hooked, but for libc's, and all of CUDA's: "cu", "_Z" (c10), "gg" (ggml), "nc" (nccl). */
static inline bool may_be_hooked(const char *name)
{
	return name && ((name[0] == 'c' && name[1] == 'u') || (name[0] == '_' && name[1] == 'Z') || (name[0] == 'g' && name[1] == 'g') ||
			(name[0] == 'n' && name[1] == 'c'));
}

static inline void need_real(void)
{
	if (__builtin_expect(!cuf_real.dlsym, 0))
		cuf_real_resolve();
}

CUF_JUMPS void *cuf_hook_dlsym(void *handle, const char *name)
{
	need_real();
	if (__builtin_expect(may_be_hooked(name), 0) && cuf_lookup_is_ours(handle, name, __builtin_return_address(0)))
		return cuf_lookup_answer(handle, name, NULL, __builtin_return_address(0));
	return cuf_real.dlsym(handle, name);
}

CUF_JUMPS void *cuf_hook_dlvsym(void *handle, const char *name, const char *version)
{
	need_real();
	if (__builtin_expect(may_be_hooked(name), 0) && cuf_lookup_is_ours(handle, name, __builtin_return_address(0)))
		return cuf_lookup_answer(handle, name, version, __builtin_return_address(0));
	return cuf_real.dlvsym(handle, name, version);
}

CUF_JUMPS void *cuf_hook_dlopen(const char *path, int flags)
{
	need_real();
	if (__builtin_expect(flags & RTLD_DEEPBIND, 0))
		cuf_coverage_deepbind(path);
	cuf_framework_look(); /* Python opens more libraries once PyTorch is there */
	return cuf_real.dlopen(path, flags);
}

CUF_JUMPS void *cuf_hook_dlmopen(Lmid_t space, const char *path, int flags)
{
	need_real();
	if (space != LM_ID_BASE)
		cuf_coverage_namespace(path);
	return cuf_real.dlmopen(space, path, flags);
}

int cuf_hook_dlclose(void *handle)
{
	int result;
	if (!cuf_real.dlclose)
		cuf_real_resolve();
	if (!cuf_real.dlclose)
		return -1;
	if (cuf_python_unload_begin())
		cuf_state_wait_for_threads();
	result = cuf_real.dlclose(handle);
	cuf_python_unload_end();
	if (result == 0) {
		if (cuf_process_is_recorded(CUF_HOOK_dlclose))
			cuf_modules_changed();
		cuf_bound_forget();
	}
	return result;
}

bool cuf_lookup_is_ours(void *handle, const char *name, const void *caller)
{
	const struct cuf_row *row;
	if (cuf_driver_holds(caller) || !strncmp(name, "cuflight_", 9)) /* of our own: nothing is behind it */
		return false;
	if (handle != RTLD_DEFAULT && handle != RTLD_NEXT && name[0] == 'c') /* whatever libcuda has, also what is not hooked */
		return true;
	row = cuf_row_find(name);
	if (handle != RTLD_DEFAULT && handle != RTLD_NEXT)
		return row != NULL;
	/* the program is searched, so a hook of ours would be found even where nothing is behind it */
	return row && row->library != CUF_LIBRARY_LIBC && (handle == RTLD_DEFAULT || cuf_dso_is_before_us(caller));
}

static void *real_answer(void *handle, const char *name, const char *version)
{
	return version ? cuf_real.dlvsym(handle, name, version) : cuf_real.dlsym(handle, name);
}

/* The search came upon our own export, which is no proof that the program has such a function: without us, what would
 * it have found? The last look-up made is the one whose dlerror() the caller may read. */
static void *answer_for_own_name(const struct cuf_row *row, const char *version, const void *caller)
{
	bool there = row->library == CUF_LIBRARY_CUDA ? cuf_driver_has(row->slot) : cuf_bound_find(row->id, caller) != NULL;
	void *found = real_answer(there ? RTLD_DEFAULT : RTLD_NEXT, row->name, version);
	return there ? row->hook : found;
}

/* RTLD_NEXT of somebody who stands before us: we are next, if what stands behind us has the name too. */
static void *answer_for_next(const struct cuf_row *row, const char *version)
{
	return real_answer(RTLD_NEXT, row->name, version) ? row->hook : NULL;
}

/*
 * True for an object behind us that defines this name itself: a preload or a library of stubs that
 * asks for what it stands in for. We called it, so it gets the real function. The hook would call it
 * again, without end.
 */
static bool stands_in_behind_us(const char *symbol, const void *caller)
{
	struct cuf_dso dso;

	return !cuf_dso_is_before_us(caller) && cuf_dso_at(caller, &dso) && cuf_elf_symbol(dso.map->l_addr, dso.map->l_ld, symbol);
}

/* What was found under this name in the driver, as the program shall see it. */
static void *route(const char *symbol, void *found, int version, const void *caller)
{
	void *hook = cuf_real_driver_hook(found);
	if (hook && stands_in_behind_us(symbol, caller))
		return found;
	if (!hook && found && !cuf_modules_is_self((uintptr_t)found))
		cuf_coverage_resolved(symbol, version);
	return hook ? hook : found;
}

void *cuf_lookup_answer(void *handle, const char *name, const char *version, const void *caller)
{
	int saved;
	bool met_now;
	const struct cuf_row *row = cuf_row_find(name);
	if (handle == RTLD_NEXT)
		return answer_for_next(row, version);
	void *found = handle == RTLD_DEFAULT ? row->hook : real_answer(handle, name, version);
	if (row && found == row->hook)
		return answer_for_own_name(row, version, caller);
	if (found && row && row->library != CUF_LIBRARY_CUDA)
		return cuf_bound_stands_for(row->id, found, caller) ? row->hook : found;
	if (!found || !cuf_driver_meet_at(found, &met_now))
		return found;
	saved = errno;
	if (met_now) /* meeting the driver ran code of its own: make the caller's look-up the last one again */
		found = real_answer(handle, name, version);
	if (cuf_driver_holds(found)) {
		if (row && (row->id == CUF_HOOK_cuGetProcAddress_v2 || row->id == CUF_HOOK_cuGetProcAddress))
			cuf_coverage_runtime(caller);
		found = route(name, found, 0, caller);
	}
	errno = saved;
	return found;
}

/* The 4-argument form of CUDA 11.3 to 11.8; current runtimes ask it for itself. */
CUresult cuf_hook_cuGetProcAddress(const char *symbol, void **out, int version, cuuint64_t flags)
{
	if (!cuf_driver_has((void **)&cuf_real.cuGetProcAddress))
		return cuf_driver_refusal();
	CUresult result = cuf_real.cuGetProcAddress(symbol, out, version, flags);
	if (result == CUDA_SUCCESS && out && symbol && !cuf_driver_holds(__builtin_return_address(0)))
		*out = route(symbol, *out, version, __builtin_return_address(0));
	return result;
}

CUresult cuf_hook_cuGetProcAddress_v2(const char *symbol, void **out, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	if (!cuf_driver_has((void **)&cuf_real.cuGetProcAddress_v2))
		return cuf_driver_refusal();
	CUresult result = cuf_real.cuGetProcAddress_v2(symbol, out, version, flags, status);
	if (result == CUDA_SUCCESS && out && symbol && !cuf_driver_holds(__builtin_return_address(0)))
		*out = route(symbol, *out, version, __builtin_return_address(0));
	return result;
}
