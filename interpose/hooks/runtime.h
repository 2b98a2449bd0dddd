/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime that a caller is bound to. A process may hold several (two sonames, static copies, RTLD_LOCAL), so
 * there is no one "real cudaMalloc", and RTLD_NEXT finds none of the RTLD_LOCAL ones.
 *
 * Contract: any thread; no lock on the path of a function seen before; at first sight of one in a module the loader's
 * list is walked (dl_iterate_phdr). errno untouched.
 */
#ifndef CUF_RUNTIME_H
#define CUF_RUNTIME_H

/* The function behind the runtime row of this id (hooks.def) for code at caller, or NULL: no runtime is loaded. */
void *cuf_runtime_find(unsigned hook, const void *caller);

/* After a dlclose: a module's place in the loader's list may be another's tomorrow. */
void cuf_runtime_forget(void);

#endif
