/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX's tool: the loader inside each copy of NVTX's header (one for each object that includes it) asks the environment
 * for a library, opens it, and hands InitializeInjectionNvtx2 its table of function pointers to be filled.
 *
 * Contract of cuf_nvtx_tool_path: the path of this library, for as long as it is loaded, if it stands in front of libc
 * (preloaded) and records; else NULL, and the environment's own answer goes. No allocation, errno untouched.
 */
#ifndef CUF_NVTX_H
#define CUF_NVTX_H

#define CUF_NVTX_VARIABLE "NVTX_INJECTION64_PATH"

const char *cuf_nvtx_tool_path(void);

#endif
