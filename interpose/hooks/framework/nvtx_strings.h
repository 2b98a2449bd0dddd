/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles of NVTX's domains and registered strings, with their texts: ours, or those of the tool behind us. Contract: any
 * thread; no lock, no allocation; entries are never removed, a handle that comes again has its new text. Texts are UTF-8,
 * cut at CUF_PHASE_NAME_BYTES, borrowed for ever.
 */
#ifndef CUF_NVTX_STRINGS_H
#define CUF_NVTX_STRINGS_H

#include <stdint.h>
#include <wchar.h>
#include "interpose/incident/phase_names.h"

struct cuf_nvtx_string {
	uint64_t handle;          /* 0: free */
	uint32_t number;          /* from 1 */
	uint32_t bytes;
	char text[CUF_PHASE_NAME_BYTES + 1];
};

/* Keeps a text under this handle; NULL: under a new one. Returns the handle; NULL: no room, and none was given. */
void *cuf_nvtx_string_keep(void *handle, const char *text, size_t bytes);
const struct cuf_nvtx_string *cuf_nvtx_string_of(const void *handle); /* NULL: unknown */
/* wchar_t to UTF-8; returns its length, at most room. NULL is empty. */
size_t cuf_nvtx_narrow(const wchar_t *wide, char *out, size_t room);

#endif
