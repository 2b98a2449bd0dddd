/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded objects, as the stacks need them: which file, build-id and load address an address belongs to, written once
 * into META (CUF_META_MODULE) at first sight of one of its addresses, and closed (CUF_META_MODULE_END) when it went.
 *
 * Contract: cuf_modules_note is for the cold path (first sight of a stack): it takes no lock and calls nothing in libc
 * that does (_dl_find_object is lock-free, glibc 2.35 and later; older: a snapshot made at start). Any thread.
 */
#ifndef CUF_MODULES_H
#define CUF_MODULES_H

#include <stdint.h>

void cuf_modules_init(void);                 /* constructor: notes what is loaded now: executable, ourselves, vdso, libc */
void cuf_modules_note(uint64_t code_addr);   /* makes sure that the object holding this address is in META */
uint64_t cuf_modules_generation(void);       /* changes when an object may have gone */
/* cuf_modules_changed() of recorder.h: after a dlclose: notes the end of objects that are gone, bumps the generation */
void cuf_modules_fork(void);                 /* in a forked child: nothing was written to its recording yet */
int cuf_modules_is_self(uint64_t code_addr); /* inside this library */

#endif
