/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of NVTX's domains and registered strings, with their texts. A handle is ours, or that of
 * another tool behind us.
 *
 * Contract: any thread; no lock, no allocation. Entries are never removed. A handle that is
 * registered again gets its new text. Texts are UTF-8, cut at CUF_PHASE_NAME_BYTES, and stay valid.
 */
#pragma once

#include <stdint.h>
#include <wchar.h>
#include "interpose/record/recorder.h"

struct cuf_nvtx_string {
	uint64_t handle;         /* [commit] 0: free */
	uint32_t number;         /* from 1 */
	uint32_t bytes;
	char text[CUF_PHASE_NAME_BYTES + 1];
};

/* Keeps a text under this handle; NULL: under a new one. Returns the handle. NULL: the table is
 * full and no handle was passed. */
void *cuf_nvtx_string_keep(void *handle, const char *text, size_t bytes);

/* NULL: unknown. */
const struct cuf_nvtx_string *cuf_nvtx_string_of(const void *handle);

/* Converts wchar_t to UTF-8. Returns the length, at most room. NULL counts as empty. */
size_t cuf_nvtx_narrow(const wchar_t *wide, char *out, size_t room);
