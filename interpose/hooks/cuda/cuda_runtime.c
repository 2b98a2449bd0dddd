/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the CUDA runtime. A hook only stores which runtime function runs, and where its
 * caller's stack begins. The block is counted once, at the driver. Bodies are generated from the
 * table (role LABEL).
 *
 * These hooks see only what the program calls. Libraries of CUDA (cuBLAS, cuDNN, NCCL) contain a
 * static runtime of their own and open the driver themselves. So the driver is the only place where
 * every allocation passes, and blocks are counted there.
 */
#include "interpose/hooks/cuda/cuda_runtime.h"

#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/resolve.h"
#include "interpose/hooks/loader/table.h"

/* As cuf_driver_refusal, for objects that were opened late. */
#define NO_RUNTIME CUDA_ERROR_NO_DEVICE /* cudaErrorNoDevice has the same number */

/* The bodies of a row: our export, and the entry for the function that dlsym found
 * (pointed_NAME). */
#define LABELLED(ret, name, params, args, real) \
	ret(*next) params = (ret(*) params)(real); \
	if (!next) \
		return NO_RUNTIME; \
	struct cuf_label before = cuf_label_begin(CUF_HOOK_##name, __builtin_frame_address(0)); \
	ret result = next args; \
	cuf_label_end(before); \
	return result

#define BODY_LABEL(ret, name, params, args) \
	ret cuf_hook_##name params \
	{ \
		LABELLED(ret, name, params, args, \
			 cuf_resolve_in_caller(CUF_HOOK_##name, __builtin_return_address(0))); \
	} \
	static void *pointed_##name; \
	static ret entry_##name params \
	{ \
		LABELLED(ret, name, params, args, \
			 __atomic_load_n(&pointed_##name, __ATOMIC_RELAXED)); \
	}
#define LIBRARY_LIBC(role, ret, name, params, args)
#define LIBRARY_CUDA(role, ret, name, params, args)
#define LIBRARY_FOREIGN(role, ret, name, params, args)
#define LIBRARY_CUFLIGHT(role, ret, name, params, args)
#define LIBRARY_CUDART(role, ret, name, params, args) BODY_##role(ret, name, params, args)
#define HOOK(id, lib, ret, name, params, args, role) LIBRARY_##lib(role, ret, name, params, args)
#include "interpose/abi/hooks.def"
#undef LIBRARY_CUDART

/* ---- pointers ---- */

static const struct entry {
	unsigned hook;
	void *function;
	void **pointed; /* the runtime's function that it calls; NULL: none yet */
} entries[] = {
#define LIBRARY_CUDART(role, ret, name, params, args) \
	{ CUF_HOOK_##name, (void *)entry_##name, &pointed_##name },
#define HOOK(id, lib, ret, name, params, args, role) LIBRARY_##lib(role, ret, name, params, args)
#include "interpose/abi/hooks.def"
};
enum { ENTRIES = sizeof entries / sizeof *entries };

static void *point_to(const struct entry *entry, void *found)
{
	void *before = NULL;
	if (__atomic_compare_exchange_n(entry->pointed, &before, found, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE) ||
	    before == found)
		return entry->function;
	return found;
}

void *cuf_runtime_pointer(unsigned hook, void *found)
{
	for (unsigned i = 0; i < ENTRIES; i++)
		if (entries[i].hook == hook)
			return point_to(&entries[i], found);
	return found;
}

void cuf_runtime_forget_unloaded(void)
{
	struct cuf_dso dso;
	for (unsigned i = 0; i < ENTRIES; i++) {
		void *found = __atomic_load_n(entries[i].pointed, __ATOMIC_ACQUIRE);
		if (found && !cuf_dso_at(found, &dso))
			__atomic_compare_exchange_n(entries[i].pointed, &found, NULL, false,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}
