/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the search for the runtime or the foreign library that a caller is bound to. */
#include "interpose/hooks/loader/bound.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/elf_symbol.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"

/*
 * (module of the caller, row) -> function. Entries are only added, until a dlclose clears them all. A reader checks
 * the key again after reading the value; its own entries cannot change meaning under it, because the calling module is
 * running and holds its runtime loaded.
 */
#define CACHE_SLOTS 1024u
#define CACHE_WINDOW 8u
#define KEY_BUSY 1u
static struct { uint64_t key; void *function; } cache[CACHE_SLOTS];

static uint64_t cache_key(const struct link_map *map, unsigned hook) { return (uint64_t)(uintptr_t)map << 16 ^ hook; }
static unsigned cache_home(uint64_t key) { return (unsigned)(key * 0x9E3779B97F4A7C15ull >> 48); }

static void *cache_get(uint64_t key)
{
	unsigned home = cache_home(key);
	for (unsigned i = 0; i < CACHE_WINDOW; i++) {
		unsigned at = (home + i) % CACHE_SLOTS;
		if (__atomic_load_n(&cache[at].key, __ATOMIC_ACQUIRE) != key)
			continue;
		void *function = __atomic_load_n(&cache[at].function, __ATOMIC_ACQUIRE);
		return __atomic_load_n(&cache[at].key, __ATOMIC_RELAXED) == key ? function : NULL;
	}
	return NULL;
}

static void cache_put(uint64_t key, void *function)
{
	unsigned home = cache_home(key);
	for (unsigned i = 0; i < CACHE_WINDOW; i++) {
		unsigned at = (home + i) % CACHE_SLOTS;
		uint64_t empty = 0;
		if (!__atomic_compare_exchange_n(&cache[at].key, &empty, KEY_BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&cache[at].function, function, __ATOMIC_RELEASE);
		__atomic_store_n(&cache[at].key, key, __ATOMIC_RELEASE);
		return;
	}
}

void cuf_bound_forget(void)
{
	for (unsigned i = 0; i < CACHE_SLOTS; i++) {
		uint64_t key = __atomic_load_n(&cache[i].key, __ATOMIC_RELAXED);
		if (key > KEY_BUSY)
			__atomic_compare_exchange_n(&cache[i].key, &key, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

/* One walk over the loader's list. wanted: the soname looked for, or NULL: whoever defines the name. */
struct search { const char *wanted, *name; void *found; };

static const ElfW(Dyn) *dynamic_of(const struct dl_phdr_info *info)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	return NULL;
}

static int see_object(struct dl_phdr_info *info, size_t bytes, void *context)
{
	struct search *search = context;
	const ElfW(Dyn) *dynamic = dynamic_of(info);
	if (!dynamic || dynamic == _DYNAMIC) /* ours, also where recording is disabled */
		return 0;
	if (search->wanted) {
		const char *soname = cuf_elf_soname(info->dlpi_addr, dynamic);
		if (strcmp(soname ? soname : cuf_dso_basename(info->dlpi_name), search->wanted) != 0)
			return 0;
	} else if (cuf_dso_is_before_us(dynamic)) {
		return 0; /* the call came through it, or would never have reached us */
	}
	search->found = cuf_elf_symbol(info->dlpi_addr, dynamic, search->name);
	return search->found != NULL;
}

static void *search_loaded(const char *wanted, const char *name)
{
	struct search search = { wanted, name, NULL };
	dl_iterate_phdr(see_object, &search);
	return search.found;
}

/* Another preload behind us that stands in for the name. The runtime's own definition is none. */
static void *find_stand_in(const char *name)
{
	void *found = cuf_real_behind(name);
	struct cuf_dso dso;

	return found && cuf_dso_at(found, &dso) && !cuf_dso_is(dso.map, "libcudart.so") ? found : NULL;
}

/*
 * In the order in which the loader would have bound it, had we not been there: the module itself, another preload, the
 * runtime it was linked with, else (it got the name through others; foreign libraries are there once) the first loaded
 * object that has it. A module in front of us that has the name calls what is behind it, so it is not the answer.
 */
static void *find_for(const struct link_map *map, const char *name)
{
	const char *needed;
	void *found = cuf_dso_is_before_us(map->l_ld) ? NULL : cuf_elf_symbol(map->l_addr, map->l_ld, name);
	if (!found)
		found = find_stand_in(name);
	for (unsigned i = 0; !found && (needed = cuf_elf_needed(map->l_addr, map->l_ld, i)); i++)
		if (cuf_dso_name_is(needed, "libcudart.so"))
			found = search_loaded(needed, name);
	return found ? found : search_loaded(NULL, name);
}

static const char *row_name(unsigned hook)
{
	for (unsigned i = 0; i < cuf_row_count; i++)
		if (cuf_rows[i].id == hook)
			return cuf_rows[i].name;
	return "";
}

void *cuf_bound_find(unsigned hook, const void *caller)
{
	struct cuf_dso dso;
	int saved = errno;
	if (!cuf_dso_at(caller, &dso)) /* code made at run time (JIT): bound to nothing */
		return search_loaded(NULL, row_name(hook));
	uint64_t key = cache_key(dso.map, hook);
	void *function = cache_get(key);
	if (!function && (function = find_for(dso.map, row_name(hook))))
		cache_put(key, function);
	errno = saved;
	return function;
}

bool cuf_bound_stands_for(unsigned hook, const void *found, const void *caller)
{
	return found == search_loaded(NULL, row_name(hook)) && found == cuf_bound_find(hook, caller);
}
