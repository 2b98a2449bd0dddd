/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's libcuda: meeting it, and turning its exports into our hooks.
 *
 * libcuda usually arrives late, by somebody's dlopen(RTLD_LOCAL), and is met at the first look-up in it, or at the
 * first direct call of a hook (programs linked with -lcuda). It is then kept loaded, because the table of its
 * functions must not outlive it. Contract: any thread, no lock of ours; two threads may meet it at once and both
 * return with the table complete. errno untouched. cuf_driver_meet* may change dlerror().
 */
#ifndef CUF_DRIVER_H
#define CUF_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

/* The object that holds addr is libcuda: meets it. True when the table is complete afterwards (met now, or before). */
bool cuf_driver_meet_at(const void *addr, bool *met_now);

/* libcuda, if it is loaded somehow. */
bool cuf_driver_meet_loaded(void);

/* True when addr is code of the libcuda that was met. False before. */
bool cuf_driver_holds(const void *addr);

/* A device enters a recording for the first time. If it is that of a forked child, whose parent met the driver: what
 * was learnt in the parent and belongs to its recording is forgotten, and the driver is introduced here too. */
void cuf_driver_greet_again(void);

/* Bodies of hooks: is the real function there? Meets a linked libcuda on the way. slot: of cuf_real. */
bool cuf_driver_has(void **slot);
/* What a hook answers when it has no real function: CUresult. */
int cuf_driver_refusal(void);

#endif
