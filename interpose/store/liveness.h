/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread of the recorded process still exists. There is no thread-exit hook, so the
 * slots and ring segments of dead threads are found through the kernel. Contract: any thread, one
 * system call or two, errno untouched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * tid: as in struct cuf_thread. A new thread may have got the id of a dead one; then the id
 * counts as alive.
 */
bool cuf_thread_alive(uint32_t tid);

/*
 * A task that shares the process's memory, and is a process of its own, is about to get a slot.
 * From then on an id that is alive in any process counts as alive.
 */
void cuf_liveness_has_task(void);
