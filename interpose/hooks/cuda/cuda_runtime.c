/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's functions. Their hooks only name the call and mark where its caller's stack begins: the ledger counts
 * once, at the driver. The bodies are generated from the table.
 */
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/bound.h"
#include "interpose/hooks/loader/table.h"

/* As cuf_driver_refusal: a weak reference bound to our hook on a machine without the runtime. */
#define NO_RUNTIME CUDA_ERROR_NO_DEVICE /* cudaErrorNoDevice has the same number */

#define BODY_LABEL(ret, name, params, args) \
	ret cuf_hook_##name params \
	{ \
		struct cuf_label label; \
		ret(*next) params = (ret(*) params)cuf_bound_find(CUF_HOOK_##name, __builtin_return_address(0)); \
		if (!next) \
			return NO_RUNTIME; \
		cuf_label_begin(&label, CUF_HOOK_##name, __builtin_frame_address(0)); \
		ret result = next args; \
		cuf_label_end(&label); \
		return result; \
	}
#define LIBRARY_LIBC(role, ret, name, params, args)
#define LIBRARY_CUDA(role, ret, name, params, args)
#define LIBRARY_FOREIGN(role, ret, name, params, args)
#define LIBRARY_CUFLIGHT(role, ret, name, params, args)
#define LIBRARY_CUDART(role, ret, name, params, args) BODY_##role(ret, name, params, args)
#define HOOK(id, lib, ret, name, params, args, role) LIBRARY_##lib(role, ret, name, params, args)
#include "interpose/abi/hooks.def"
