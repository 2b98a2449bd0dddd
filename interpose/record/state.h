/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OFF -> ON -> OFF, the hand-over from memory to the file, and what a fork means.
 *
 * The gate is one word on a page of its own that the kernel wipes in a forked child (MADV_WIPEONFORK). A thread may
 * record when its own generation equals the gate's; 0 (off, handing over, or forked by whatever means) and a new
 * thread's first event go through cuf_thread_attach. So one load and one compare keep a child from ever writing into
 * its parent's recording.
 */
#ifndef CUF_STATE_H
#define CUF_STATE_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t *cuf_gate;              /* never NULL */
#define CUF_GENERATION_NEW 1u           /* a thread that never attached */

enum cuf_state { CUF_STATE_BOOT, CUF_STATE_ON, CUF_STATE_SWITCHING, CUF_STATE_OFF };

/* The generation to record under, after waiting out a hand-over and after starting a forked child's own recording.
 * 0: do not record. Called on the slow path alone. */
uint64_t cuf_state_admit(void);

/* The file is wanted (CUDA, or much host memory): hands the recording over unless it is on disk already. The caller
 * must not be inside cuf_thread_enter. */
void cuf_state_want_file(void);
/* Returns when every thread that was inside the recorder has left it, after a second at most. What the caller stored before
 * is what those see that enter afterwards. The caller is not inside. In a sandbox it does not wait. */
void cuf_state_wait_for_threads(void);
bool cuf_state_in_memory(void);
char **cuf_state_environment(void);

#endif
