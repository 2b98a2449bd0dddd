/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names of C++ and Rust functions, by libiberty.
 *
 * Contract: the caller frees the result, which is never NULL. name is NUL-terminated and not NULL.
 * A name is returned as it is, without its symbol version (memcpy@@GLIBC_2.14), if it is not
 * mangled or if its readable form would exceed DEMANGLED_BYTES_MAX: a few hundred mangled bytes
 * can expand to gigabytes. Thread-safe.
 */
#ifndef SYMBOL_DEMANGLE_H /* DEMANGLE_H is taken by libiberty */
#define SYMBOL_DEMANGLE_H

#define DEMANGLED_BYTES_MAX 65536

char *demangle(const char *name);

#endif
