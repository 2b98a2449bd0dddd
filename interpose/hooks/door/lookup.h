/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow side of dlsym and dlvsym: what they return for a name that may be hooked.
 * Contract: errno untouched; dlerror() is what the real function left.
 */
#pragma once

#include <stdbool.h>

/* Whether we answer this look-up. false: the hook must jump to the real function, which looks at
 * its caller's address. */
bool cuf_lookup_is_ours(void *handle, const char *name, const void *caller);

/* The answer. version: as passed to dlvsym, or NULL. */
void *cuf_lookup_answer(void *handle, const char *name, const char *version, const void *caller);
