/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of framework libraries that allocate for one purpose: a communicator, a handle, the
 * tensors of a graph, a kernel's scratch pool. Blocks that the thread allocates during the call get
 * this role. An inner call has a role of its own. All bodies are generated from the table.
 */
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/resolve.h"
#include "interpose/hooks/loader/table.h"

/* refusal: what the library's functions return when they fail. It is returned only to code that
 * reached the hook through a weak reference. */
#define BODY_ROLE(role, refusal, ret, name, params, args) \
	ret cuf_hook_##name params \
	{ \
		ret(*next) params = (ret(*) params)cuf_resolve_in_caller( \
			CUF_HOOK_##name, __builtin_return_address(0)); \
		if (!next) \
			return refusal; \
		unsigned before = cuf_role_exchange(CUF_ROLE_##role); \
		ret result = next args; \
		cuf_role_exchange(before); \
		return result; \
	}
#define BODY_REPORT(ret, name, params, args)
#define BODY_BUFFER(ret, name, params, args)
/* Refusals: ggml's functions return false (0), those of cuBLAS, cuDNN and NCCL a status other than
 * 0. */
#define BODY_COMPUTE(ret, name, params, args) BODY_ROLE(COMPUTE, 0, ret, name, params, args)
#define BODY_SCRATCH(ret, name, params, args) BODY_ROLE(SCRATCH, 1, ret, name, params, args)
#define BODY_LIBRARY(ret, name, params, args) BODY_ROLE(LIBRARY, 1, ret, name, params, args)
#define BODY_COMMUNICATION(ret, name, params, args) \
	BODY_ROLE(COMMUNICATION, 1, ret, name, params, args)
#define LIBRARY_LIBC(role, ret, name, params, args)
#define LIBRARY_CUDA(role, ret, name, params, args)
#define LIBRARY_CUDART(role, ret, name, params, args)
#define LIBRARY_CUFLIGHT(role, ret, name, params, args)
#define LIBRARY_FOREIGN(role, ret, name, params, args) BODY_##role(ret, name, params, args)
#define HOOK(id, lib, ret, name, params, args, role) LIBRARY_##lib(role, ret, name, params, args)
#include "interpose/abi/hooks.def"
