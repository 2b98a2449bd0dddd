/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one hand-over of a recording from private memory to its file. The gate is closed, threads
 * inside are waited for, the content is copied, and the file is mapped over the same addresses. If
 * there can be no file, one line on stderr reports why and the recording stays in memory.
 *
 * Contract: any thread that is not inside the recorder (cuf_thread_enter); no lock; errno
 * untouched. A process waits a second at most in its life, except for
 * cuf_handover_wait_for_threads, which waits as long each time.
 */
#pragma once

#include <stdbool.h>

/*
 * A recording begins, in memory. environment: of the process, kept: the file's name may refer to
 * it.
 */
void cuf_handover_begin_recording(char **environment);

/* Moves the recording to its file unless it is there already, or was tried before. */
void cuf_handover_to_file(void);
/* The same while the gate is closed and no thread is inside: at the start. */
void cuf_handover_at_start(void);

/* In memory, and not yet tried to move. */
extern bool cuf_handover_pending __attribute__((visibility("hidden")));

/* True until the recording was moved, or could not be. */
static inline bool cuf_handover_is_pending(void)
{
	return __atomic_load_n(&cuf_handover_pending, __ATOMIC_ACQUIRE);
}

/*
 * True: nothing was copied to a file yet, and what this thread has stored will be in the copy.
 * Asked by who writes to the recording without being inside the recorder.
 */
bool cuf_handover_is_ahead(void);

/*
 * Returns when every thread that was inside the recorder has left it, after a second at most.
 * Threads that enter later see what the caller stored before. In a sandbox it does not wait.
 */
void cuf_handover_wait_for_threads(void);

/* Sleeps for 50 us, the step of all waiting here; CUF_HANDOVER_PAUSES_MAX of them are a second. */
enum { CUF_HANDOVER_PAUSES_MAX = 20000 };
void cuf_handover_pause(void);
