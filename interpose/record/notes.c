/* SPDX-License-Identifier: Apache-2.0 */
/* What hooks add to META and to the counts of what was dropped. */
#include "interpose/code/modules.h"
#include "interpose/record/recorder.h"
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/*
 * Objects are noted for the reader, which looks into their files. Not where META is short of room
 * for what stacks need.
 */
static void note_module(uint64_t code_addr)
{
	if (cuf_recording.header && cuf_recording.header->meta_used <= cuf_recording.meta_bytes / 2)
		cuf_modules_note(code_addr);
}

void cuf_note(unsigned type, uint64_t number, const void *text, size_t bytes)
{
	if (type == CUF_META_MODULE)
		note_module(number);
	else if (type == CUF_META_GPU_PROCESSES)
		cuf_meta_record(type, number, text, bytes);
	else
		cuf_meta_text(type, number, text, bytes);
}

void cuf_note_dropped(enum cuf_loss table) { cuf_count_dropped(table); }
