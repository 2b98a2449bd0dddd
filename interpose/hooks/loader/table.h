/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What abi/hooks.def gives the hooks: ids and prototypes.
 *
 * In C, a hook is called cuf_hook_NAME and only its symbol is NAME. So libc's own declarations of
 * NAME, with their attributes, do not apply to it. And nobody calls a hook who means the real
 * function (real.h).
 *
 * Contract: a row without a body does not link. Bodies are generated from the table for the roles
 * LABEL (cuda_runtime.c), USAGE, WATCH and PASS (cuda_usage_delta.c), and for the roles of
 * framework libraries (framework_role.c). All others are written by hand.
 */
#pragma once

#include <dlfcn.h>
#include <sys/types.h>
#include "interpose/abi/cuda_types.h"
#include "interpose/abi/framework_types.h"

typedef int (*cuf_program_fn)(int argc, char **argv, char **environment);
typedef void (*cuf_void_fn)(void);
typedef int (*cuf_task_fn)(void *argument);
typedef void *(*cuf_start_fn)(void *argument);
typedef const void *(*cuf_nvtx_export_fn)(uint32_t table);

#define CUF_EXPORT __attribute__((visibility("default")))

#define HOOK(id, lib, ret, name, params, args, role) \
	CUF_EXPORT ret cuf_hook_##name params __asm__(#name);
#include "interpose/abi/hooks.def"

enum cuf_hook {
#define HOOK(id, lib, ret, name, params, args, role) CUF_HOOK_##name = id,
#include "interpose/abi/hooks.def"
};
