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
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/resolve.h"
#include "interpose/hooks/loader/table.h"

/* As cuf_driver_refusal: on a machine without the runtime, a weak reference binds to our hook. */
#define NO_RUNTIME CUDA_ERROR_NO_DEVICE /* cudaErrorNoDevice has the same number */

#define BODY_LABEL(ret, name, params, args) \
	ret cuf_hook_##name params \
	{ \
		ret(*next) params = (ret(*) params)cuf_resolve_in_caller( \
			CUF_HOOK_##name, __builtin_return_address(0)); \
		if (!next) \
			return NO_RUNTIME; \
		struct cuf_label before = \
			cuf_label_begin(CUF_HOOK_##name, __builtin_frame_address(0)); \
		ret result = next args; \
		cuf_label_end(before); \
		return result; \
	}
#define LIBRARY_LIBC(role, ret, name, params, args)
#define LIBRARY_CUDA(role, ret, name, params, args)
#define LIBRARY_FOREIGN(role, ret, name, params, args)
#define LIBRARY_CUFLIGHT(role, ret, name, params, args)
#define LIBRARY_CUDART(role, ret, name, params, args) BODY_##role(ret, name, params, args)
#define HOOK(id, lib, ret, name, params, args, role) LIBRARY_##lib(role, ret, name, params, args)
#include "interpose/abi/hooks.def"
