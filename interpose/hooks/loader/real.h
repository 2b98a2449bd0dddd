/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions behind the hooks, typed. libc rows: what the process would have got without us, that is the next
 * definition in search order (another preload, jemalloc, libc). Driver rows: the exports of the process's libcuda,
 * filled by driver.c when it is first met; NULL before, and for ever where the driver is too old. Rows of the
 * runtime and of foreign libraries have no one real function: it depends on the caller (bound.h).
 *
 * Contract: slots are written once, with the same value by whoever writes them, so no lock is needed to read them.
 */
#ifndef CUF_REAL_H
#define CUF_REAL_H

#include <stdbool.h>
#include "interpose/hooks/loader/table.h"

struct cuf_real {
#define CUF_SLOT_LIBC(ret, name, params) ret (*name) params;
#define CUF_SLOT_CUDA(ret, name, params) ret (*name) params;
#define CUF_SLOT_CUDART(ret, name, params)
#define CUF_SLOT_CUFLIGHT(ret, name, params)
#define CUF_SLOT_FOREIGN(ret, name, params)
#define HOOK(id, lib, ret, name, params, args, role) CUF_SLOT_##lib(ret, name, params)
#include "interpose/abi/hooks.def"
};
extern struct cuf_real cuf_real __attribute__((visibility("hidden"))); /* a jump through it is one instruction */

struct cuf_query {
#define QUERY(name, params) CUresult (*name) params;
#include "interpose/hooks/cuda/query.def"
};
extern struct cuf_query cuf_query;

enum cuf_library { CUF_LIBRARY_LIBC, CUF_LIBRARY_CUDA, CUF_LIBRARY_CUDART, CUF_LIBRARY_FOREIGN, CUF_LIBRARY_CUFLIGHT };

/* One row of the table as data, in the order of hooks.def. slot: NULL for rows of the runtime and of foreign libraries. */
struct cuf_row {
	const char *name;
	void *hook;
	void **slot;
	enum cuf_library library;
	unsigned id;
};
extern const struct cuf_row cuf_rows[];
extern const unsigned cuf_row_count;

/* The row of an exported name, or NULL. A linear search: for cold paths. */
const struct cuf_row *cuf_row_find(const char *name);

/* Finds the libc rows. Allocates nothing and takes no lock of ours; any thread, any number of times, also before our
 * constructor ran. Afterwards dlsym, dlvsym, dlopen, dlmopen and the malloc family can be called, whatever was found. */
void cuf_real_resolve(void);

/*
 * An allocator in front of us: the executable's, or an earlier preload's. It owns the blocks that the
 * program frees and resizes. A hook that it does not define itself must pass such a block to it, as
 * libc's function of that name does. NULL where our definition is the first one.
 */
struct cuf_front {
	void *(*realloc)(void *, size_t);
	void (*free)(void *);
};
extern struct cuf_front cuf_front __attribute__((visibility("hidden")));

/* True when all of malloc, calloc, realloc and free were found. */
bool cuf_real_has_allocator(void);
/* True while a thread is inside it: an allocation made now comes from the search itself. */
bool cuf_real_resolving(void);

/*
 * The definition that the program would reach if we were not there: the next one after ours in the
 * order of search, as RTLD_NEXT finds it. NULL: none. May change dlerror().
 */
void *cuf_real_behind(const char *name);

struct link_map;
/*
 * Fills the driver rows and cuf_query with what this libcuda exports under exactly these names. A row
 * that another object defines between us and libcuda gets that definition: it is what the program
 * would have called.
 */
void cuf_real_bind_driver(const struct link_map *libcuda);
/* The hook of this export of the bound libcuda. NULL: no export, or not hooked. */
void *cuf_real_driver_hook(const void *export);

static inline void *cuf_slot_load(void *const *slot) { return __atomic_load_n(slot, __ATOMIC_RELAXED); }

#endif
