/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the question "whose code is this?", asked of callers and of what look-ups found. */
#include "interpose/hooks/loader/dso.h"

#include <dlfcn.h>
#include <string.h>
#include "interpose/platform/elf_symbol.h"

bool cuf_dso_at(const void *addr, struct cuf_dso *dso)
{
	struct dl_find_object found;
	if (_dl_find_object((void *)addr, &found) != 0)
		return false;
	*dso = (struct cuf_dso){ found.dlfo_link_map, (uintptr_t)found.dlfo_map_start, (uintptr_t)found.dlfo_map_end };
	return dso->map != NULL;
}

bool cuf_dso_is_before_us(const void *addr)
{
	struct cuf_dso caller, self;
	/* backwards from us: those few objects were there at start and stay, so the list cannot change under the walk */
	if (!cuf_dso_at(addr, &caller) || !cuf_dso_at((const void *)cuf_dso_is_before_us, &self))
		return false;
	for (const struct link_map *m = self.map->l_prev; m; m = m->l_prev)
		if (m == caller.map)
			return true;
	return false;
}

const char *cuf_dso_basename(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	return slash ? slash + 1 : path ? path : "";
}

bool cuf_dso_name_is(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);
	return name && !strncmp(name, prefix, n) && (name[n] == 0 || name[n] == '.');
}

bool cuf_dso_is(const struct link_map *map, const char *prefix)
{
	return cuf_dso_name_is(cuf_dso_basename(map->l_name), prefix) ||
	       cuf_dso_name_is(cuf_elf_soname(map->l_addr, map->l_ld), prefix);
}
