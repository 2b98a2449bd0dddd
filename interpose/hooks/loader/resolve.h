/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Caller-scoped resolution: the function that a caller would have called without us. It is needed
 * for functions of the CUDA runtime and of frameworks, which have no single real function. A
 * process may hold several runtimes (two sonames, static copies, RTLD_LOCAL). Python opens
 * everything RTLD_LOCAL, so RTLD_NEXT finds none of them.
 *
 * Contract: any thread; errno untouched. A function that was resolved for a module before takes no
 * lock. The first time, the loader's list is walked (dl_iterate_phdr, the loader's lock).
 */
#pragma once

#include <stdbool.h>

/* The function behind the hook of this id (hooks.def), for code at caller. NULL: no such library is
 * loaded. */
void *cuf_resolve_in_caller(unsigned hook, const void *caller);

/* True when `found`, which dlsym returned to this caller, is also what the hook would call, both
 * for this caller and for code that is bound to no runtime. Only then may dlsym return the hook. */
bool cuf_resolve_matches(unsigned hook, const void *found, const void *caller);

/* After a dlclose: another module may take the place of one in the loader's list. */
void cuf_resolve_forget(void);
