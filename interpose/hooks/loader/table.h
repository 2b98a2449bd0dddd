/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What abi/hooks.def gives the hooks: ids and prototypes. In C a hook is called cuf_hook_NAME and only its symbol is
 * NAME, so that libc's own declarations of NAME (attributes, nonnull, noreturn) neither clash with nor bend it, and
 * so that nobody calls a hook who means the real function (real.h).
 *
 * Contract: bodies of roles LABEL, WATCH, BRACKET and PASS of the driver and the runtime, and of the roles of foreign
 * libraries, are generated from the table (cuda_runtime.c, cuda_bracket.c, framework_role.c), all others are written by hand; a row without a body does not link.
 */
#ifndef CUF_TABLE_H
#define CUF_TABLE_H

#include <dlfcn.h>
#include <sys/types.h>
#include "interpose/abi/cuda_types.h"
#include "interpose/abi/framework_types.h"

typedef int (*cuf_program_fn)(int argc, char **argv, char **environment);
typedef void (*cuf_void_fn)(void);
typedef const void *(*cuf_nvtx_export_fn)(uint32_t table);

#define CUF_EXPORT __attribute__((visibility("default")))

#define HOOK(id, lib, ret, name, params, args, role) CUF_EXPORT ret cuf_hook_##name params __asm__(#name);
#include "interpose/abi/hooks.def"

enum cuf_hook {
#define HOOK(id, lib, ret, name, params, args, role) CUF_HOOK_##name = id,
#include "interpose/abi/hooks.def"
};

#endif
