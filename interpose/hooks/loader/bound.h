/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that a caller would have called without us, for rows that have no one real function: of the CUDA runtime
 * and of foreign libraries. A process may hold several runtimes (two sonames, static copies, RTLD_LOCAL), and Python
 * opens everything RTLD_LOCAL, so RTLD_NEXT finds none of them.
 *
 * Contract: any thread; no lock on the path of a function seen before; at first sight of one in a module the loader's
 * list is walked (dl_iterate_phdr). errno untouched.
 */
#ifndef CUF_BOUND_H
#define CUF_BOUND_H

#include <stdbool.h>

/* The function behind the row of this id (hooks.def) for code at caller, or NULL: no such library is loaded. */
void *cuf_bound_find(unsigned hook, const void *caller);

/* True when found, which dlsym gave this caller, is also what the row's hook would call, for this caller and for code
 * that is bound to no runtime: only then may the hook stand in for it. */
bool cuf_bound_stands_for(unsigned hook, const void *found, const void *caller);

/* After a dlclose: a module's place in the loader's list may be another's tomorrow. */
void cuf_bound_forget(void);

#endif
