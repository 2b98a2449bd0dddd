/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions behind the hooks, typed.
 *
 * Rows of libc: what the process would have called without us. That is the next definition in
 * search order: another preload, jemalloc, libc. Rows of the driver: the exports of the process's
 * libcuda, NULL until driver.c attaches it, and permanently where the driver is too old. Rows of
 * the runtime and of frameworks have no single real function, because it depends on the caller
 * (resolve.h).
 *
 * Contract: a slot is written with the same value by every writer, so reading needs no lock.
 */
#pragma once

#include <stdbool.h>
#include "interpose/hooks/loader/table.h"

/* A function that ends in a jump to the real one: a frame of ours on the stack would be the caller
 * that the real function sees. */
#define CUF_JUMPS \
	__attribute__((noinline, optimize("O2", "omit-frame-pointer", "no-stack-protector"), \
		       no_sanitize("address", "undefined", "thread")))

/* ---- the slots ---- */

struct cuf_real {
#define CUF_SLOT_LIBC(ret, name, params) ret (*name) params;
#define CUF_SLOT_CUDA(ret, name, params) ret (*name) params;
#define CUF_SLOT_CUDART(ret, name, params)
#define CUF_SLOT_CUFLIGHT(ret, name, params)
#define CUF_SLOT_FOREIGN(ret, name, params)
#define HOOK(id, lib, ret, name, params, args, role) CUF_SLOT_##lib(ret, name, params)
#include "interpose/abi/hooks.def"
};
/* hidden: a jump through it is one instruction */
extern struct cuf_real cuf_real __attribute__((visibility("hidden")));

/* Driver functions that are called but not hooked. */
struct cuf_query {
#define QUERY(name, params) CUresult (*name) params;
#include "interpose/hooks/loader/query.def"
};
extern struct cuf_query cuf_query;

static inline void *cuf_slot_load(void *const *slot)
{
	return __atomic_load_n(slot, __ATOMIC_RELAXED);
}

/* ---- the table as data ---- */

enum cuf_library {
	CUF_LIBRARY_LIBC,
	CUF_LIBRARY_CUDA,
	CUF_LIBRARY_CUDART,
	CUF_LIBRARY_FOREIGN,
	CUF_LIBRARY_CUFLIGHT
};

/* One row of hooks.def, in its order. The addresses of the hooks are in door/rows.c: whoever refers
 * to them refers to every hook. */
struct cuf_row {
	const char *name;
	void **slot;             /* of cuf_real; NULL: no single real function */
	enum cuf_library library;
	unsigned id;
};
extern const struct cuf_row cuf_rows[];
extern const unsigned cuf_row_count;

/* The row of an exported name, or NULL. A linear search: for cold paths. */
const struct cuf_row *cuf_row_find(const char *name);

/* ---- filling the slots ---- */

/* Finds the rows of libc and cuf_front. Allocates nothing and takes no lock of ours; any thread,
 * any number of times, also before our constructor ran. Afterwards dlsym, dlvsym, dlopen, dlmopen,
 * dlclose and the malloc family can be called. */
void cuf_real_resolve(void);

/* True while a thread is inside cuf_real_resolve: an allocation made now comes from the search. */
bool cuf_real_resolving(void);

/* The function that the program would reach if we were not there: the next one after ours, among
 * the objects loaded at start. NULL: none. No lock. */
void *cuf_real_behind(const char *name);

/* A function of threads. Before glibc 2.34 these are in a library of their own, which may be loaded
 * late. NULL: none. No lock; needs more stack than a hook may take (platform/side_stack.h). */
void *cuf_real_of_threads(const char *name);

/* Fills the rows of the driver and cuf_query with what this libcuda exports under these names. When
 * another object defines a name between us and libcuda, its definition goes into the row: it is
 * what the program would have called. */
struct link_map;
void cuf_real_bind_driver(const struct link_map *libcuda);

/* What the bound libcuda itself exports for this row; NULL. */
void *cuf_real_driver_export(const struct cuf_row *row);

/* ---- the allocators around the hooks ---- */

/*
 * An allocator in front of us: the executable's, or an earlier preload's. It owns the blocks that
 * the program frees and resizes. A hook that it does not define must pass such a block to it, as
 * libc's function of that name does. NULL where our definition is the first one.
 */
struct cuf_front {
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
};
extern struct cuf_front cuf_front __attribute__((visibility("hidden")));

/* True when all of malloc, calloc, realloc and free were found. */
bool cuf_real_has_allocator(void);

/* The object whose malloc our hook calls; NULL before cuf_real_find_allocator. */
const struct link_map *cuf_real_allocator(void);
/* From the constructor, on one thread. Returns what cuf_real_allocator returns afterwards. */
const struct link_map *cuf_real_find_allocator(void);
/* True when addr is code of that object. */
bool cuf_real_allocator_holds(const void *addr);
