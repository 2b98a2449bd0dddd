/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts among a module's constants: what is left of a library that was linked in with hidden names and stripped. Contract:
 * reads the file piece by piece, maps nothing, and keeps nothing; a damaged file has none of the texts. The descriptor is
 * the caller's, its offset moves. texts: 1 to 64 bytes each.
 */
#ifndef MODULE_CONSTANTS_H
#define MODULE_CONSTANTS_H

#include <stddef.h>

/* The index of the first text found in .rodata; count: none. */
size_t module_constants_find(int fd, const char *const *texts, size_t count);

#endif
