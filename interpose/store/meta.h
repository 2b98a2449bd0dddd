/* SPDX-License-Identifier: Apache-2.0 */
/*
 * META, the append-only arena of self-describing records (struct cuf_meta). Contract: lock-free,
 * any thread. A record that does not fit is dropped and counted (CUF_LOST_META). Texts are cut at
 * 4 KiB and copied. Avoiding duplicates is the caller's task.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"

/* type: enum cuf_meta_type. The text need not be NUL-terminated. */
void cuf_meta_text(unsigned type, uint64_t number, const char *text, size_t bytes);

/*
 * A text that is written again and again, in a record with room for so many bytes; *record NULL:
 * none yet. One thread at a time. Readers skip it while it is written.
 */
void cuf_meta_rewrite(struct cuf_meta **record, unsigned type, uint64_t number, const char *text,
		      size_t bytes, size_t room);

/* A record of another shape: the bytes behind its head, at most 4096. */
void cuf_meta_record(unsigned type, uint64_t number, const void *body, size_t bytes);

void cuf_meta_module(uint64_t id, uint64_t base, uint64_t start, uint64_t end,
		     const uint8_t *build_id, unsigned build_id_bytes, const char *path,
		     size_t path_bytes);
void cuf_meta_module_end(uint64_t id);
