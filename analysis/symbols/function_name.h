/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mangled names demangled, and demangled names as people say them: "Event& std::vector<Event,
 * std::allocator<Event> >::emplace_back<Event>(Event&&)" is
 * std::vector<Event, ..>::emplace_back<Event>.
 *
 * Contract: pure. Names are of C, C++, Rust or Go, demangled and not NULL; what does not parse is
 * taken as it is. A name is abridged at its brackets, never inside, and abridging twice is the same
 * as once. out is always terminated.
 */
#pragma once

#include <stddef.h>

/* Where the qualified name begins: behind the return type that templates have in their names, and
 * behind Rust's '<' and '&'. */
const char *function_name_start(const char *name);

/* Without return type, parameters and long template arguments. */
void function_name_short(const char *name, char *out, size_t bytes);

/* The same in at most `columns` bytes: all template arguments go first, then the outer scopes. A
 * last word that is longer by itself is not cut. */
void function_name_fit(const char *name, size_t columns, char *out, size_t bytes);

/*
 * Readable names of C++ and Rust functions, by libiberty. The caller frees the result, which is
 * never NULL. A name is returned as it is, without its symbol version (memcpy@@GLIBC_2.14), if it
 * is not mangled or if its readable form would exceed DEMANGLED_BYTES_MAX: a few hundred mangled
 * bytes can expand to gigabytes. Thread-safe.
 */
#define DEMANGLED_BYTES_MAX 65536
char *demangle(const char *name);
