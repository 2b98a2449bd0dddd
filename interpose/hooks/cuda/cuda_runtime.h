/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointers to functions of the CUDA runtime. A process may hold several runtimes, and a pointer
 * that dlsym returned means the function of one of them, whoever calls it. So it is not our export,
 * which calls what its caller was linked with, but an entry that belongs to one runtime's function.
 *
 * Contract: any thread, no lock, errno untouched.
 */
#pragma once

/*
 * What dlsym returns for `found`, a function with the name of this row (hooks.def, library CUDART):
 * the row's entry, which names the call and calls `found`. A second runtime's function is returned
 * itself; its calls have no name.
 */
void *cuf_runtime_pointer(unsigned hook, void *found);

/* After a dlclose: entries whose runtime is gone may belong to another one. */
void cuf_runtime_forget_unloaded(void);
