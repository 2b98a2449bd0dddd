/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the questions "whose code is this?" and "is this that library?". */
#include "interpose/hooks/loader/dso.h"

#include <string.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/objects/loaded.h"
#include "interpose/platform/guarded_copy.h"

bool cuf_dso_at(const void *addr, struct cuf_dso *dso)
{
	struct cuf_loaded found;
	if (!cuf_loaded_at((uintptr_t)addr, &found))
		return false;
	*dso = (struct cuf_dso){ found.map, found.start, found.end };
	return true;
}

bool cuf_dso_is_self(const void *addr)
{
	struct cuf_dso dso, self;
	if (!cuf_dso_at(addr, &dso) || !cuf_dso_at((const void *)cuf_dso_is_self, &self))
		return false;
	return dso.map == self.map && *self.map->l_name;
}

bool cuf_dso_is_before_us(const void *addr)
{
	struct cuf_dso caller, self;
	if (!cuf_dso_at(addr, &caller) || !cuf_dso_at((const void *)cuf_dso_is_before_us, &self))
		return false;
	/* Backwards from us. These few objects were loaded at start and stay, so the list cannot
	 * change during the walk. */
	for (const struct link_map *map = self.map->l_prev; map; map = map->l_prev)
		if (map == caller.map)
			return true;
	return false;
}

/* The name of a link_map that may be freed meanwhile. */
static void copy_name(const char *name, char *to, size_t room)
{
	to[cuf_guarded_copy_part(to, (uintptr_t)name, room - 1)] = 0;
}

/* The loader confirms that the copy is one of an object that is still loaded. */
static bool is_loaded(const struct link_map *map, const struct link_map *copy)
{
	struct cuf_dso at;
	return cuf_dso_at(copy->l_ld, &at) && at.map == map;
}

/* Nodes are copied, because a dlclose may free them. */
struct link_map *cuf_dso_find_new(struct link_map **from, const char *prefix, char *path,
				  size_t room)
{
	enum { OBJECTS_MAX = 8192 };
	struct link_map copy, *map = __atomic_load_n(from, __ATOMIC_RELAXED);
	struct cuf_dso self;
	if (!cuf_dso_at((const void *)cuf_dso_find_new, &self))
		return NULL;
	if (!map || !cuf_guarded_copy(&copy, (uintptr_t)map, sizeof copy) || !is_loaded(map, &copy))
		map = self.map;
	for (unsigned i = 0; map && i < OBJECTS_MAX; i++, map = copy.l_next) {
		if (!cuf_guarded_copy(&copy, (uintptr_t)map, sizeof copy))
			return NULL;
		__atomic_store_n(from, map, __ATOMIC_RELAXED);
		copy_name(copy.l_name, path, room);
		if (cuf_dso_name_is(cuf_dso_basename(path), prefix) && is_loaded(map, &copy))
			return map;
	}
	return NULL;
}

struct link_map *cuf_dso_find_loaded(const char *prefix)
{
	struct link_map *from = NULL;
	char path[256];
	return cuf_dso_find_new(&from, prefix, path, sizeof path);
}

const ElfW(Dyn) *cuf_dso_dynamic(const struct dl_phdr_info *object)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		if (header->p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(object->dlpi_addr + header->p_vaddr);
	}
	return NULL;
}

const char *cuf_dso_basename(const char *path)
{
	const char *slash;
	if (!path)
		return "";
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool cuf_dso_name_is(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);
	return name && !strncmp(name, prefix, length) && (name[length] == 0 || name[length] == '.');
}

bool cuf_dso_is(const struct link_map *map, const char *prefix)
{
	return cuf_dso_name_is(cuf_dso_basename(map->l_name), prefix) ||
	       cuf_dso_name_is(cuf_elf_soname(map->l_addr, map->l_ld), prefix);
}
