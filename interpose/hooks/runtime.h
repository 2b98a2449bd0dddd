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

#include <stdbool.h>

/* The function behind the runtime row of this id (hooks.def) for code at caller, or NULL: no runtime is loaded. */
void *cuf_runtime_find(unsigned hook, const void *caller);

/* True when found, which dlsym gave this caller, is also what the row's hook would call, for this caller and for code
 * that is bound to no runtime: only then may the hook stand in for it. */
bool cuf_runtime_stands_for(unsigned hook, const void *found, const void *caller);

/* After a dlclose: a module's place in the loader's list may be another's tomorrow. */
void cuf_runtime_forget(void);

#endif
