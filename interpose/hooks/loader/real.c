/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns cuf_real and cuf_query: finding what is behind each hook. It never calls dlsym, because that
 * is a hook of ours, and the real one is among the functions to find.
 */
#include "interpose/hooks/loader/real.h"

#include <link.h>
#include <string.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/hooks/loader/dso.h"

struct cuf_real cuf_real;
struct cuf_query cuf_query;
struct cuf_front cuf_front;

/* ---- the table ---- */

#define SLOT_LIBC(name) (void **)&cuf_real.name
#define SLOT_CUDA(name) (void **)&cuf_real.name
#define SLOT_CUDART(name) NULL
#define SLOT_CUFLIGHT(name) NULL
#define SLOT_FOREIGN(name) NULL

const struct cuf_row cuf_rows[] = {
#define HOOK(id, lib, ret, name, params, args, role) \
	{ #name, SLOT_##lib(name), CUF_LIBRARY_##lib, id },
#include "interpose/abi/hooks.def"
};
const unsigned cuf_row_count = sizeof cuf_rows / sizeof *cuf_rows;

static const struct { const char *name; void **slot; } queries[] = {
#define QUERY(name, params) { #name, (void **)&cuf_query.name },
#include "interpose/hooks/loader/query.def"
};

/* ids are on disk: two rows with one id do not compile */
__attribute__((unused)) static int ids_are_unique(int id)
{
	switch (id) {
#define HOOK(id, lib, ret, name, params, args, role) case id:
#include "interpose/abi/hooks.def"
		return 1;
	}
	return 0;
}

const struct cuf_row *cuf_row_find(const char *name)
{
	for (unsigned i = 0; i < cuf_row_count; i++)
		if (!strcmp(cuf_rows[i].name, name))
			return &cuf_rows[i];
	return NULL;
}

static void store(void **slot, void *value) { __atomic_store_n(slot, value, __ATOMIC_RELAXED); }

/* ---- libc ---- */

/*
 * Another copy of this library, behind us: preloaded twice, in two installations. It finds that we
 * came first, and stands aside (startup_references.c). So it is no definition behind ours.
 */
static const struct link_map *copy;

static void find_copy(const struct link_map *self)
{
	const struct link_map *map = self;
	while (!copy && (map = cuf_elf_next_at_start(map)))
		if (cuf_dso_is(map, "libcuflight.so"))
			copy = map;
}

static void *symbol_of(const struct link_map *map, const char *name)
{
	return map == copy ? NULL : cuf_elf_symbol(map->l_addr, map->l_ld, name);
}

/* RTLD_NEXT would find it as well, and take the loader's lock. A variable of that name is no
 * function to call. */
void *cuf_real_behind(const char *name)
{
	struct cuf_dso self;
	const struct link_map *map;
	if (!cuf_dso_at((const void *)cuf_real_behind, &self))
		return NULL;
	map = self.map;
	while ((map = cuf_elf_next_at_start(map))) {
		void *found = symbol_of(map, name);
		if (found && !cuf_elf_is_variable(map->l_addr, map->l_ld, name))
			return found;
	}
	return NULL;
}

void *cuf_real_of_threads(const char *name)
{
	const struct link_map *threads = cuf_dso_find_loaded("libpthread.so");
	void *found = threads ? symbol_of(threads, name) : NULL;

	return found ? found : cuf_real_behind(name);
}

/* The first definition of all, if it is not ours. */
static void *definition_in_front(struct link_map *self, const char *name)
{
	struct link_map *map = self;
	void *found = NULL;
	while (map->l_prev)
		map = map->l_prev;
	for (; map != self && !found; map = map->l_next)
		found = cuf_elf_symbol(map->l_addr, map->l_ld, name);
	return found;
}

/* glibc's allocator under its other name, in case no definition is found. */
void *__libc_malloc(size_t) __attribute__((weak));
void *__libc_calloc(size_t, size_t) __attribute__((weak));
void *__libc_realloc(void *, size_t) __attribute__((weak));
void __libc_free(void *) __attribute__((weak));
void *__libc_memalign(size_t, size_t) __attribute__((weak));

/*
 * Before 2.34 these are in libdl, which a program may get later, with a plugin of libc's, and lose
 * again. So it is searched at each call.
 */
static __attribute__((noinline)) void *find_in_libdl(const char *name)
{
	const struct link_map *map = cuf_dso_find_loaded("libdl.so");
	return map ? cuf_elf_symbol(map->l_addr, map->l_ld, name) : NULL;
}

/* Stand-ins for functions that were not found. They look at their caller's address. */
CUF_JUMPS static void *late_dlsym(void *handle, const char *name)
{
	void *(*found)(void *, const char *) = find_in_libdl("dlsym");
	return found ? found(handle, name) : NULL;
}

CUF_JUMPS static void *late_dlvsym(void *handle, const char *name, const char *version)
{
	void *(*found)(void *, const char *, const char *) = find_in_libdl("dlvsym");
	return found ? found(handle, name, version) : NULL;
}

CUF_JUMPS static void *late_dlopen(const char *path, int flags)
{
	void *(*found)(const char *, int) = find_in_libdl("dlopen");
	return found ? found(path, flags) : NULL;
}

CUF_JUMPS static void *late_dlmopen(Lmid_t space, const char *path, int flags)
{
	void *(*found)(Lmid_t, const char *, int) = find_in_libdl("dlmopen");
	return found ? found(space, path, flags) : NULL;
}

static int late_dlclose(void *handle)
{
	int (*found)(void *) = find_in_libdl("dlclose");
	return found ? found(handle) : -1;
}

static void store_if_empty(void **slot, void *other)
{
	if (!*slot)
		store(slot, other);
}

bool cuf_real_has_allocator(void)
{
	return cuf_real.malloc && cuf_real.calloc && cuf_real.realloc && cuf_real.free;
}

/* All functions of one allocator, never a mixture: a block of one must not be freed by another. */
static void complete_allocator(void)
{
	if (cuf_real_has_allocator())
		return;
	store((void **)&cuf_real.malloc, (void *)__libc_malloc);
	store((void **)&cuf_real.calloc, (void *)__libc_calloc);
	store((void **)&cuf_real.realloc, (void *)__libc_realloc);
	store((void **)&cuf_real.free, (void *)__libc_free);
	store((void **)&cuf_real.memalign, (void *)__libc_memalign);
}

static unsigned resolving;

bool cuf_real_resolving(void) { return __atomic_load_n(&resolving, __ATOMIC_RELAXED) != 0; }

/* Of all that is not found yet. Returns whether something is missing still. */
static bool find_in(const struct link_map *map)
{
	struct cuf_elf_table table;
	const bool has_symbols = map != copy && cuf_elf_open(map->l_addr, map->l_ld, &table);
	bool is_missing = false;

	for (unsigned i = 0; i < cuf_row_count; i++) {
		if (cuf_rows[i].library != CUF_LIBRARY_LIBC || cuf_slot_load(cuf_rows[i].slot))
			continue;
		if (has_symbols)
			store(cuf_rows[i].slot, cuf_elf_find(&table, cuf_rows[i].name));
		is_missing |= !cuf_slot_load(cuf_rows[i].slot);
	}
	return is_missing;
}

/* The definitions that come after ours, as RTLD_NEXT would find them: at start, the list of objects
 * is the search order. When we were linked or opened late, we are behind libc. Then any definition
 * but ours is taken. */
static void resolve_libc(struct link_map *self)
{
	const struct link_map *map = self;

	find_copy(self);
	store((void **)&cuf_front.realloc, definition_in_front(self, "realloc"));
	store((void **)&cuf_front.free, definition_in_front(self, "free"));
	while ((map = cuf_elf_next_at_start(map)))
		if (!find_in(map))
			return;
	for (map = self->l_prev; map && find_in(map);)
		map = map->l_prev;
}

void cuf_real_resolve(void)
{
	struct cuf_dso self;
	__atomic_fetch_add(&resolving, 1, __ATOMIC_RELAXED);
	if (cuf_dso_at((const void *)cuf_real_resolve, &self))
		resolve_libc(self.map);
	complete_allocator();
	store_if_empty((void **)&cuf_real.dlsym, (void *)late_dlsym);
	store_if_empty((void **)&cuf_real.dlvsym, (void *)late_dlvsym);
	store_if_empty((void **)&cuf_real.dlopen, (void *)late_dlopen);
	store_if_empty((void **)&cuf_real.dlmopen, (void *)late_dlmopen);
	store_if_empty((void **)&cuf_real.dlclose, (void *)late_dlclose);
	__atomic_fetch_sub(&resolving, 1, __ATOMIC_RELAXED);
}

/* ---- the allocator behind the hooks ---- */

static struct cuf_dso allocator;

const struct link_map *cuf_real_allocator(void) { return allocator.map; }

const struct link_map *cuf_real_find_allocator(void)
{
	if (!cuf_real.malloc || !cuf_dso_at((const void *)cuf_real.malloc, &allocator))
		allocator.map = NULL;
	return allocator.map;
}

bool cuf_real_allocator_holds(const void *addr)
{
	return (uintptr_t)addr - allocator.start < allocator.end - allocator.start;
}

/* ---- the driver ---- */

/* The driver's own functions, by row. A slot may hold the function of another preload that is
 * between us and the driver. */
static void *driver_exports[sizeof cuf_rows / sizeof *cuf_rows];

void *cuf_real_driver_export(const struct cuf_row *row)
{
	return cuf_slot_load(&driver_exports[row - cuf_rows]);
}

static void bind_row(unsigned at, void *export)
{
	void *behind = NULL;
	if (export)
		behind = cuf_real_behind(cuf_rows[at].name);
	store(&driver_exports[at], export);
	store(cuf_rows[at].slot, behind ? behind : export);
}

void cuf_real_bind_driver(const struct link_map *libcuda)
{
	struct cuf_elf_table table;
	const bool has_symbols = cuf_elf_open(libcuda->l_addr, libcuda->l_ld, &table);
	for (unsigned i = 0; i < cuf_row_count; i++)
		if (cuf_rows[i].library == CUF_LIBRARY_CUDA)
			bind_row(i, has_symbols ? cuf_elf_find(&table, cuf_rows[i].name) : NULL);
	for (unsigned i = 0; has_symbols && i < sizeof queries / sizeof *queries; i++)
		store(queries[i].slot, cuf_elf_find(&table, queries[i].name));
}
