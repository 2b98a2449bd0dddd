/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow side of the doors: what dlsym and its kin do with a name of the driver or the runtime. Contract: errno is
 * kept and dlerror() is what the real function left.
 */
#ifndef CUF_LOOKUP_H
#define CUF_LOOKUP_H

#include <stdbool.h>

/* Whether this look-up of a name beginning with "cu" is ours to answer; false: it must go on as a jump, because the
 * real function looks at the caller's address. */
bool cuf_lookup_is_ours(void *handle, const char *name, const void *caller);

/* Answers it. version: of dlvsym, or NULL. */
void *cuf_lookup_answer(void *handle, const char *name, const char *version, const void *caller);

#endif
