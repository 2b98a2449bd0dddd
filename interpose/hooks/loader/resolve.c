/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the search through the loaded objects, and the cache of its results. */
#include "interpose/hooks/loader/resolve.h"

#include <errno.h>
#include <string.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"

/* ---- the cache ---- */

/*
 * (module of the caller, hook) -> function. Entries are only added, until a dlclose clears all of
 * them. A reader checks the key again after reading the value. Its own entries cannot change
 * meaning under it: the calling module is running, so it keeps its runtime loaded.
 */
#define CACHE_SLOTS 1024u
#define CACHE_WINDOW 8u
#define KEY_BUSY 1u
static struct {
	uint64_t key;            /* 0 empty, KEY_BUSY: being filled */
	void *function;
} cache[CACHE_SLOTS];

static uint64_t cache_key(const struct link_map *map, unsigned hook)
{
	return (uint64_t)(uintptr_t)map << 16 ^ hook;
}

static unsigned cache_home(uint64_t key) { return (unsigned)(key * 0x9E3779B97F4A7C15ull >> 48); }

static void *cache_get(uint64_t key)
{
	unsigned home = cache_home(key);
	for (unsigned i = 0; i < CACHE_WINDOW; i++) {
		unsigned at = (home + i) % CACHE_SLOTS;
		void *function;
		if (__atomic_load_n(&cache[at].key, __ATOMIC_ACQUIRE) != key)
			continue;
		function = __atomic_load_n(&cache[at].function, __ATOMIC_ACQUIRE);
		/* cleared meanwhile */
		if (__atomic_load_n(&cache[at].key, __ATOMIC_RELAXED) != key)
			return NULL;
		return function;
	}
	return NULL;
}

/* A full window drops the entry: the next call searches again. */
static void cache_put(uint64_t key, void *function)
{
	unsigned home = cache_home(key);
	for (unsigned i = 0; i < CACHE_WINDOW; i++) {
		unsigned at = (home + i) % CACHE_SLOTS;
		uint64_t empty = 0;
		if (!__atomic_compare_exchange_n(&cache[at].key, &empty, KEY_BUSY, 0,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&cache[at].function, function, __ATOMIC_RELEASE);
		__atomic_store_n(&cache[at].key, key, __ATOMIC_RELEASE);
		return;
	}
}

void cuf_resolve_forget(void)
{
	for (unsigned i = 0; i < CACHE_SLOTS; i++) {
		uint64_t key = __atomic_load_n(&cache[i].key, __ATOMIC_RELAXED);
		if (key > KEY_BUSY)
			__atomic_compare_exchange_n(&cache[i].key, &key, 0, 0, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	}
}

/* ---- the search ---- */

/* One walk over the loader's list. soname: the only object to look in, or NULL for all. */
struct search {
	const char *soname;
	const char *name;
	void *found;
};

static int search_object(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct search *search = context;
	const ElfW(Dyn) *dynamic = cuf_dso_dynamic(info);
	const char *soname;
	if (!dynamic || dynamic == _DYNAMIC) /* ours, also where recording is disabled */
		return 0;
	if (search->soname) {
		soname = cuf_elf_soname(info->dlpi_addr, dynamic);
		if (!soname)
			soname = cuf_dso_basename(info->dlpi_name);
		if (strcmp(soname, search->soname) != 0)
			return 0;
	} else if (cuf_dso_is_before_us(dynamic)) {
		return 0; /* the call came through it, or would never have reached us */
	}
	search->found = cuf_elf_symbol(info->dlpi_addr, dynamic, search->name);
	if (search->found && cuf_elf_is_variable(info->dlpi_addr, dynamic, search->name))
		search->found = NULL;
	return search->found != NULL;
}

static void *search_loaded(const char *soname, const char *name)
{
	struct search search = { soname, name, NULL };
	dl_iterate_phdr(search_object, &search);
	return search.found;
}

/* Another preload behind us that defines the name. The runtime's own definition does not count. */
static void *find_preload_behind(const char *name)
{
	void *found = cuf_real_behind(name);
	struct cuf_dso dso;
	if (!found || !cuf_dso_at(found, &dso) || cuf_dso_is(dso.map, "libcudart.so"))
		return NULL;
	return found;
}

/*
 * Searches in the order in which the loader would have bound the name without us: the module
 * itself, another preload, the runtime that the module was linked with. A module that got the name
 * through others is bound to the first loaded object that has it. Foreign libraries are loaded
 * once, so this is the right one. A module in front of us that defines the name calls what is
 * behind it, so its own definition is not the answer.
 */
static void *search_for_module(const struct link_map *map, const char *name)
{
	const char *needed;
	void *found = NULL;
	if (!cuf_dso_is_before_us(map->l_ld))
		found = cuf_elf_symbol(map->l_addr, map->l_ld, name);
	if (!found)
		found = find_preload_behind(name);
	for (unsigned i = 0; !found && (needed = cuf_elf_needed(map->l_addr, map->l_ld, i)); i++)
		if (cuf_dso_name_is(needed, "libcudart.so"))
			found = search_loaded(needed, name);
	if (!found)
		found = search_loaded(NULL, name);
	return found;
}

static const char *name_of_hook(unsigned hook)
{
	for (unsigned i = 0; i < cuf_row_count; i++)
		if (cuf_rows[i].id == hook)
			return cuf_rows[i].name;
	return "";
}

void *cuf_resolve_in_caller(unsigned hook, const void *caller)
{
	struct cuf_dso dso;
	uint64_t key;
	void *function;
	int saved = errno;
	if (!cuf_dso_at(caller, &dso)) /* code compiled at run time (JIT) is bound to nothing */
		return search_loaded(NULL, name_of_hook(hook));
	key = cache_key(dso.map, hook);
	function = cache_get(key);
	if (!function) {
		function = search_for_module(dso.map, name_of_hook(hook));
		if (function)
			cache_put(key, function);
	}
	errno = saved;
	return function;
}

bool cuf_resolve_matches(unsigned hook, const void *found, const void *caller)
{
	return found == search_loaded(NULL, name_of_hook(hook)) &&
	       found == cuf_resolve_in_caller(hook, caller);
}
