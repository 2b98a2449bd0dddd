/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The append-only arena of self-describing records (struct cuf_meta). Contract: lock-free, any thread; a record that
 * finds no room is counted (CUF_LOST_META) and dropped; texts are cut at 4 KiB. cuf_meta_text and cuf_meta_record are in recorder.h.
 */
#ifndef CUF_META_H
#define CUF_META_H

#include <stddef.h>
#include <stdint.h>
#include "interpose/abi/format.h"

void cuf_meta_text(unsigned type, uint64_t number, const char *text, size_t bytes);
void cuf_meta_record(const struct cuf_meta *record, size_t bytes);
void cuf_meta_module(uint64_t id, uint64_t base, uint64_t start, uint64_t end, const uint8_t *build_id, unsigned build_id_bytes,
		     const char *path, size_t path_bytes);
void cuf_meta_module_end(uint64_t id);

#endif
