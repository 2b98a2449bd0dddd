/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may never end, in a thread of ours: the caller waits for it for a short time, and then
 * leaves it behind. For libraries of the process that ask a device.
 *
 * Contract: any thread that no signal interrupted. libc starts the thread, and for that waits for
 * its allocator's lock without a limit. So this is for work that allocates anyway. No lock is taken
 * that a plugin's constructor runs under. errno may change. Signals are blocked in the new thread.
 * The work is in static memory, and one at a time.
 */
#pragma once

#include <stdint.h>

struct cuf_bounded_work {
	void (*run)(void);       /* the work */
	void (*late)(void);      /* in the same thread, after run, when nobody waited any more */
	uint32_t state;          /* only cuf_bounded_run reads and writes it */
};

enum cuf_bounded_end {
	CUF_BOUNDED_DONE,        /* run has ended, late is not called */
	CUF_BOUNDED_LEFT,        /* run goes on, late will be called if it ends */
	CUF_BOUNDED_NO_THREAD    /* none could be made: neither is called */
};
enum cuf_bounded_end cuf_bounded_run(struct cuf_bounded_work *work, uint64_t limit_ns);
