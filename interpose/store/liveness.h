/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread of the recorded process still exists. There is no thread-exit hook, so the
 * slots and ring segments of dead threads are found through the kernel. Contract: any thread, one
 * system call, errno untouched.
 */
#ifndef CUF_LIVENESS_H
#define CUF_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * tid: as in struct cuf_thread. A new thread may have got the id of a dead one; then the id
 * counts as alive.
 */
bool cuf_thread_alive(uint32_t tid);

#endif
