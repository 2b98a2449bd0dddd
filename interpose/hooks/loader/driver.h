/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's libcuda: when it becomes known, and which code is its own.
 *
 * libcuda usually arrives late, by somebody's dlopen(RTLD_LOCAL). It is attached at the first
 * look-up in it, or at the first direct call of a hook (programs linked with -lcuda). It is kept
 * loaded from the first dlclose on, because the table of its functions must not outlive it.
 *
 * Contract: any thread, no lock of ours, and none of the loader's except in cuf_driver_keep. Two
 * threads may attach at once; both return with a complete table. errno untouched.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Attaches the object at addr, if it is libcuda. Returns true when the table is complete, from now
 * or from before. */
bool cuf_driver_attach_at(const void *addr, bool *attached_now);

/* Attaches libcuda if it is loaded in whatever way. */
bool cuf_driver_attach_loaded(void);

/* Takes a reference to the attached libcuda, once: to be called before each dlclose. May change
 * dlerror(). */
void cuf_driver_keep(void);

/* True when addr is code of the attached libcuda. */
bool cuf_driver_holds(const void *addr);

/* Writes the driver's version into the recording, once. A forked child calls it again, because its
 * parent's announcement is in the parent's recording. */
void cuf_driver_announce(void);

/* For bodies of hooks: whether the real function exists. Attaches a linked libcuda on the way.
 * slot: a member of cuf_real. */
bool cuf_driver_has(void **slot);
/* The CUresult of a hook without a real function. */
int cuf_driver_refusal(void);
