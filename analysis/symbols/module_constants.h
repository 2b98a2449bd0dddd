/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches a module's constants for texts. They identify a library that was linked in with hidden
 * names and then stripped.
 *
 * Contract: reads the file piece by piece and maps nothing. A damaged file has none of the texts.
 * The descriptor is the caller's and its offset does not move. A text has 1 to 64 bytes.
 */
#ifndef MODULE_CONSTANTS_H
#define MODULE_CONSTANTS_H

#include <stddef.h>

/* The index of the first text found in .rodata; count: none. */
size_t module_constants_find(int fd, const char *const *texts, size_t count);

#endif
