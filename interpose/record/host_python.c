/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of CPython's own allocator (python_objects.c has its wrappers). Small ones never reach
 * malloc; large ones do, and so do all with PYTHONMALLOC=malloc. Which of them did is not known
 * from their sizes, since other wrappers may lie between. So a chosen block is recorded here unless
 * it lies in a block that malloc returned meanwhile.
 *
 * The sampler has no memory: an interval that ended at a request of CPython begins anew before
 * malloc counts the same bytes. So each of the two draws its own samples.
 */
#include "interpose/record/host.h"

#include "interpose/platform/options.h"
#include "interpose/record/host_filter.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

void cuf_host_outer_begin(struct cuf_host_outer *outer, size_t bytes)
{
	struct cuf_thread_state *thread;

	outer->is_counted = outer->is_chosen = false;
	if (cuf_host_is_inside(__builtin_frame_address(0)))
		return;
	thread = cuf_host_choose(bytes, &outer->is_chosen);
	if (!thread)
		return;
	if (outer->is_chosen)
		cuf_host_sampled(thread, bytes);
	cuf_thread_leave(thread);
	outer->is_counted = true;
	outer->bytes = bytes;
	outer->malloc_start = outer->malloc_end = 0;
	cuf_host_go_inside(outer);
}

bool cuf_host_outer_end(struct cuf_host_outer *outer, void *p, unsigned op, const void *frame)
{
	uintptr_t at = (uintptr_t)p;
	struct cuf_thread_state *thread;
	uint64_t bytes;

	if (!outer->is_counted)
		return false;
	cuf_host_come_out(outer);
	if (!p || !outer->is_chosen || at - outer->malloc_start < outer->malloc_end -
								  outer->malloc_start)
		return false;
	thread = cuf_thread_enter();
	if (!thread)
		return false;
	bytes = cuf_python_bytes(outer->bytes);
	cuf_host_add_block(thread, cuf_python_address(at), bytes, op, frame);
	cuf_thread_leave(thread);
	cuf_host_has_grown(outer->bytes);
	return true;
}

/* Of 2 million entries at most; once, when another wrapper has put an older allocator back. */
void cuf_host_python_forget(void)
{
	uint64_t count = (cuf_recording.host_bucket_mask + 1) * CUF_HOST_BUCKET;
	struct cuf_host_undo undo;

	for (uint64_t i = 0; i < count; i++) {
		const struct cuf_host_block *entry = &cuf_recording.host_ledger[i];
		uint64_t addr = cuf_host_addr(__atomic_load_n(&entry->word0, __ATOMIC_ACQUIRE));
		uint64_t bytes = cuf_host_bytes(__atomic_load_n(&entry->word1, __ATOMIC_RELAXED));

		if (addr && cuf_address_is_python(addr, bytes))
			cuf_host_python_free((void *)(uintptr_t)addr, CUF_HOST_FREE, &undo);
	}
}
