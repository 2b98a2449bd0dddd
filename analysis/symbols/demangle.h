/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++ and Rust names for people, by libiberty.
 *
 * Contract: a name that is not mangled, or whose readable form would pass DEMANGLED_BYTES_MAX (a few hundred mangled
 * bytes can stand for gigabytes), comes back as it is, without its symbol version (memcpy@@GLIBC_2.14). The result is
 * the caller's to free; never NULL. name is NUL-terminated and not NULL. Thread-safe.
 */
#ifndef SYMBOL_DEMANGLE_H /* DEMANGLE_H is libiberty's own */
#define SYMBOL_DEMANGLE_H

#define DEMANGLED_BYTES_MAX 65536

char *demangle(const char *name);

#endif
