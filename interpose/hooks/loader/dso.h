/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which loaded object an address belongs to, and what that object is called.
 *
 * Contract: no lock, no allocation, errno untouched (objects/loaded.h). Texts are
 * borrowed from the loader and end with the object.
 */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct cuf_dso {
	struct link_map *map;
	uintptr_t start, end; /* mapped range */
};

/* Returns false for code that belongs to no object. */
bool cuf_dso_at(const void *addr, struct cuf_dso *dso);

/*
 * The first loaded object, from this library on, that cuf_dso_is. NULL: none was found. The list is
 * walked without the loader's lock, which its holder may hold while it waits for a lock of the
 * program. So an object that another thread opens at this moment may be missed. Nothing keeps the
 * result loaded.
 */
struct link_map *cuf_dso_find_loaded(const char *prefix);

/*
 * The same among the objects from *from on, and its path. NULL: all of them. *from becomes the last
 * object that was looked at, so the next search is about those that were opened meanwhile.
 */
struct link_map *cuf_dso_find_new(struct link_map **from, const char *prefix, char *path,
				  size_t room);

/* True when addr is inside this library; never when it was linked into the executable. */
bool cuf_dso_is_self(const void *addr);

/* True when addr is code of the program, or of a preload that the loader searches before us. */
bool cuf_dso_is_before_us(const void *addr);

/* The dynamic section of an object in dl_iterate_phdr's list, or NULL. */
const ElfW(Dyn) *cuf_dso_dynamic(const struct dl_phdr_info *object);

/* The last part of a path; "" for NULL. */
const char *cuf_dso_basename(const char *path);

/* True when the object's file or soname is PREFIX, or starts with PREFIX and a dot. So "libcuda.so"
 * matches "libcuda.so.1". */
bool cuf_dso_is(const struct link_map *map, const char *prefix);
bool cuf_dso_name_is(const char *name, const char *prefix);
