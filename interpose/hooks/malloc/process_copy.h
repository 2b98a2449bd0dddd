/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that may never end, in a copy of this process: it sees all memory as it is now, and nothing
 * that it waits for or changes is the process's. The copy is killed when its time is over.
 *
 * Contract: raw system calls; errno untouched. The copy is no child that wait() or SIGCHLD would
 * show. Signals are blocked in it. A program whose memory a device writes to must not make one
 * while that goes on.
 */
#ifndef CUF_PROCESS_COPY_H
#define CUF_PROCESS_COPY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Calls work(argument) in a copy of the process that has no other thread. What it leaves in shared
 * memory is there when this returns. False: no copy could be made, or it took longer than limit_ns.
 */
bool cuf_in_process_copy(void (*work)(void *), void *argument, uint64_t limit_ns);

#endif
