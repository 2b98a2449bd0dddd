/* SPDX-License-Identifier: Apache-2.0 */
/* What hooks add to META and to the counts of what was dropped. */
#include "interpose/record/recorder.h"
#include "interpose/code/modules.h"
#include "interpose/process/thread.h"
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

void cuf_note(unsigned type, uint64_t number, const void *text, size_t bytes)
{
	if (type == CUF_META_GPU_PROCESSES)
		cuf_meta_record(type, number, text, bytes);
	else
		cuf_meta_text(type, number, text, bytes);
}

/* Where META is not short of room for what stacks need. */
static bool has_room(void)
{
	return cuf_recording.header &&
	       cuf_recording.header->meta_used <= cuf_recording.meta_bytes / 2;
}

void cuf_note_object(uintptr_t code_addr)
{
	struct cuf_thread_state *thread = cuf_thread_enter();

	if (!thread)
		return;
	if (has_room())
		cuf_modules_note(code_addr);
	cuf_thread_leave(thread);
}

void cuf_note_again(struct cuf_meta **record, unsigned type, uint64_t number, const char *text,
		    size_t bytes, size_t room)
{
	if (*record || has_room())
		cuf_meta_rewrite(record, type, number, text, bytes, room);
}

void cuf_note_dropped(enum cuf_loss table) { cuf_count_dropped(table); }
