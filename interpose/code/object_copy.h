/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What META states of an object, copied by the kernel: another thread may close the object at any
 * moment. Contract: no lock, no allocation; needs 6 KiB of stack. What cannot be read is empty.
 */
#pragma once

#include "interpose/code/modules.h"

enum { CUF_HEADERS_MAX = 24, CUF_BUILD_ID_MAX = 64, CUF_PATH_BYTES_MAX = 4096 };

struct cuf_object_copy {
	const struct cuf_object *object;
	ElfW(Phdr) segments[CUF_HEADERS_MAX];
	unsigned count;
	uint8_t build_id[CUF_BUILD_ID_MAX];
	unsigned build_id_bytes;
	char path[CUF_PATH_BYTES_MAX]; /* as loaded; not NUL-terminated */
	size_t path_bytes;
};

void cuf_object_take_copy(struct cuf_object_copy *to, const struct cuf_object *object);
