/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that allocates for whoever called it: the libraries that come with a language, C libraries
 * and allocators. Templates and generic functions of them are compiled into programs, so the module
 * does not tell: names and source files do.
 *
 * Contract: pure; any argument may be NULL, which is no library's. function is demangled, module a
 * path, file a source file.
 */
#pragma once

#include <stdbool.h>

/* The path of glibc, or of its threads. */
bool is_c_library(const char *module);
bool is_library_code(const char *function, const char *module, const char *file);
