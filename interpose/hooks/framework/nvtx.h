/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool side of NVTX. Each object that includes NVTX's header has a loader in it. The loader
 * asks the environment for a library, opens it, and passes a table of function pointers to its
 * InitializeInjectionNvtx2, which fills them.
 *
 * Contract of cuf_nvtx_tool_path: the path of this library, valid while it is loaded. NULL when the
 * library is not in front of libc (not preloaded) or does not record; then the environment's answer
 * holds. No allocation, errno untouched.
 */
#pragma once

#define CUF_NVTX_VARIABLE "NVTX_INJECTION64_PATH"

const char *cuf_nvtx_tool_path(void);
