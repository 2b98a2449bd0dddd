/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that allocate for whoever called them, by their demangled names: those of the C++
 * library. Templates of it are compiled into programs, so the module does not tell.
 *
 * Contract: pure; name may be NULL, which is no library's.
 */
#ifndef ANALYSIS_SYMBOLS_LIBRARY_NAMES_H
#define ANALYSIS_SYMBOLS_LIBRARY_NAMES_H

#include <stdbool.h>

bool is_library_function(const char *name);

#endif
