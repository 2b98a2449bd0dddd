/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns cuf_real and cuf_query: finding what is behind each hook. It never calls dlsym: that is a hook of ours, and
 * the real one is among the things to be found.
 */
#include "interpose/hooks/loader/real.h"

#include <link.h>
#include <string.h>
#include "interpose/platform/elf_symbol.h"

struct cuf_real cuf_real;
struct cuf_query cuf_query;
struct cuf_front cuf_front;

#define SLOT_LIBC(name) (void **)&cuf_real.name
#define SLOT_CUDA(name) (void **)&cuf_real.name
#define SLOT_CUDART(name) NULL
#define SLOT_CUFLIGHT(name) NULL
#define SLOT_FOREIGN(name) NULL

const struct cuf_row cuf_rows[] = {
#define HOOK(id, lib, ret, name, params, args, role) { #name, (void *)cuf_hook_##name, SLOT_##lib(name), CUF_LIBRARY_##lib, id },
#include "interpose/abi/hooks.def"
};
const unsigned cuf_row_count = sizeof cuf_rows / sizeof *cuf_rows;

static const struct { const char *name; void **slot; } queries[] = {
#define QUERY(name, params) { #name, (void **)&cuf_query.name },
#include "interpose/hooks/cuda/query.def"
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

/* The definition that comes after ours, as RTLD_NEXT would find it: at start the list of objects is the search order.
 * Not preloaded but linked or opened late, we stand behind libc: then any definition but ours. */
static void *next_definition(const struct link_map *self, const char *name)
{
	const struct link_map *m = self;
	void *found = NULL;
	while ((m = m->l_next) && !found)
		found = cuf_elf_symbol(m->l_addr, m->l_ld, name);
	for (m = self; !found && (m = m->l_prev);)
		found = cuf_elf_symbol(m->l_addr, m->l_ld, name);
	return found;
}

void *cuf_real_behind(const char *name)
{
	Dl_info info;
	struct link_map *self = NULL;
	void *found = NULL;

	if (!dladdr1((void *)cuf_real_behind, &info, (void **)&self, RTLD_DL_LINKMAP) || !self)
		return NULL;
	for (const struct link_map *map = self->l_next; map && !found; map = map->l_next)
		found = cuf_elf_symbol(map->l_addr, map->l_ld, name);
	/* The list also holds objects that only some callers can see. RTLD_NEXT does not find those. */
	return found && found == cuf_real.dlsym(RTLD_NEXT, name) ? found : NULL;
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

/* glibc's allocator by its other name, should no definition be found. */
void *__libc_malloc(size_t) __attribute__((weak));
void *__libc_calloc(size_t, size_t) __attribute__((weak));
void *__libc_realloc(void *, size_t) __attribute__((weak));
void __libc_free(void *) __attribute__((weak));
void *__libc_memalign(size_t, size_t) __attribute__((weak));

static void *no_symbol(void *handle, const char *name) { return NULL; }
static void *no_version(void *handle, const char *name, const char *version) { return NULL; }
static void *no_open(const char *path, int flags) { return NULL; }
static void *no_space(Lmid_t space, const char *path, int flags) { return NULL; }

static void next_best(void **slot, void *other)
{
	if (!*slot)
		store(slot, other);
}

bool cuf_real_has_allocator(void) { return cuf_real.malloc && cuf_real.calloc && cuf_real.realloc && cuf_real.free; }

/* One allocator or the other, never a mixture: a block of one must not be freed by the other. */
static void allocator_complete(void)
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

void cuf_real_resolve(void)
{
	Dl_info info;
	struct link_map *self = NULL;
	__atomic_fetch_add(&resolving, 1, __ATOMIC_RELAXED);
	if (dladdr1((void *)cuf_real_resolve, &info, (void **)&self, RTLD_DL_LINKMAP) && self) {
		store((void **)&cuf_front.realloc, definition_in_front(self, "realloc"));
		store((void **)&cuf_front.free, definition_in_front(self, "free"));
		for (unsigned i = 0; i < cuf_row_count; i++)
			if (cuf_rows[i].library == CUF_LIBRARY_LIBC && !cuf_slot_load(cuf_rows[i].slot))
				store(cuf_rows[i].slot, next_definition(self, cuf_rows[i].name));
	}
	allocator_complete();
	next_best((void **)&cuf_real.dlsym, (void *)no_symbol);
	next_best((void **)&cuf_real.dlvsym, (void *)no_version);
	next_best((void **)&cuf_real.dlopen, (void *)no_open);
	next_best((void **)&cuf_real.dlmopen, (void *)no_space);
	__atomic_fetch_sub(&resolving, 1, __ATOMIC_RELAXED);
}

/* The driver's own functions, by row. A slot may lead to another preload that stands between us and the driver. */
static void *driver_exports[sizeof cuf_rows / sizeof *cuf_rows];

void *cuf_real_driver_hook(const void *export)
{
	for (unsigned i = 0; export && i < cuf_row_count; i++)
		if (__atomic_load_n(&driver_exports[i], __ATOMIC_RELAXED) == export)
			return cuf_rows[i].hook;
	return NULL;
}

void cuf_real_bind_driver(const struct link_map *libcuda)
{
	for (unsigned i = 0; i < cuf_row_count; i++) {
		void *export, *behind;
		if (cuf_rows[i].library != CUF_LIBRARY_CUDA)
			continue;
		export = cuf_elf_symbol(libcuda->l_addr, libcuda->l_ld, cuf_rows[i].name);
		behind = export ? cuf_real_behind(cuf_rows[i].name) : NULL;
		store(&driver_exports[i], export);
		store(cuf_rows[i].slot, behind ? behind : export);
	}
	for (unsigned i = 0; i < sizeof queries / sizeof *queries; i++)
		store(queries[i].slot, cuf_elf_symbol(libcuda->l_addr, libcuda->l_ld, queries[i].name));
}
