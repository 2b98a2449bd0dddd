/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the way to _dl_find_object, and the list that replaces it.
 *
 * The list grows when an address is in none of its objects: dlopen is a jump, so nothing of ours
 * runs after it. It appends to its list before any code of the new objects runs. Objects also go
 * without our seeing it, as libc closes its own plugins. So an answer is only given when the
 * loader's list still has that node. Nodes are copied by the kernel, because another thread may
 * free them.
 */
#include "interpose/objects/loaded.h"

#include <elf.h>
#include <stddef.h>
#include <sys/auxv.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/page.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/laws.h"

/* ---- the loader's answer ---- */

/* struct dl_find_object, which older headers do not have. */
struct answer {
	unsigned long long flags;
	void *start, *end;
	struct link_map *map;
	void *eh_frame_hdr;
	unsigned long long reserved[7];
};

/* A name of our own, since newer headers declare it. Weak, and without a version where we link. */
extern int loader_find(void *addr, struct answer *answer) __asm__("_dl_find_object")
	__attribute__((weak));

/* ---- one object of the list ---- */

struct object {
	/* end is stored last; it is start where the object is gone, or its headers are not seen */
	struct cuf_loaded loaded;
	/* The largest gap between segments. The kernel leaves those of ld.so and of the program
	 * free, so others may be mapped there. */
	uintptr_t gap_start, gap_end;
	const struct link_map *before;
	uintptr_t bias;
	const void *dynamic;
	unsigned seen; /* in which reading of the loader's list */
};

/* By its program headers. false: they are not those of this object. */
static bool read_ranges(struct object *object, uintptr_t headers, size_t count)
{
	const uintptr_t page = cuf_page_bytes();
	uintptr_t low = UINTPTR_MAX, high = 0;
	ElfW(Phdr) segment;
	bool is_it = false;

	for (; count; count--, headers += sizeof segment) {
		if (!cuf_guarded_copy(&segment, headers, sizeof segment))
			return false;
		uintptr_t start = object->bias + segment.p_vaddr, end = start + segment.p_memsz;

		if (segment.p_type == PT_DYNAMIC)
			is_it = (const void *)start == object->dynamic;
		if (segment.p_type == PT_GNU_EH_FRAME)
			object->loaded.eh_frame_hdr = start;
		if (segment.p_type != PT_LOAD)
			continue;
		start -= start % page;
		if (high && start > high + page &&
		    start - high > object->gap_end - object->gap_start) {
			object->gap_start = (high + page - 1) / page * page;
			object->gap_end = start;
		}
		low = start < low ? start : low;
		high = end > high ? end : high;
	}
	if (!is_it || !high)
		return false;
	object->loaded.start = low;
	__atomic_store_n(&object->loaded.end, high, __ATOMIC_RELEASE);
	return true;
}

/* The headers of a library are in its first page. */
static bool read_library(struct object *object, uintptr_t at)
{
	enum { HEADERS_MAX = 64 };
	ElfW(Ehdr) head;

	return at && cuf_guarded_copy(&head, at, sizeof head) && head.e_ident[0] == ELFMAG0 &&
	       head.e_ident[1] == ELFMAG1 && head.e_phentsize == sizeof(ElfW(Phdr)) &&
	       head.e_phnum <= HEADERS_MAX && read_ranges(object, at + head.e_phoff, head.e_phnum);
}

static bool read_object(struct object *object)
{
	return read_library(object, object->bias) ||
	       read_library(object, getauxval(AT_SYSINFO_EHDR)) ||
	       read_ranges(object, getauxval(AT_PHDR), getauxval(AT_PHNUM));
}

/* ---- the list ---- */

enum { OBJECTS_MAX = 2048 };
static struct object objects[OBJECTS_MAX];
static unsigned object_count;
/* The objects that were loaded at start: they stay. */
static unsigned start_count;
static unsigned readings;
/* Changes before a place is used again. */
static unsigned reused;
/* The loader's last one that was read. */
static struct object *last;
static uint32_t in_use;

static bool is_still_there(const struct object *object)
{
	const struct link_map *map = object->loaded.map, *before = object->before, *next;
	struct link_map node;

	return object - objects < start_count ||
	       (cuf_guarded_copy(&node, (uintptr_t)map, sizeof node) &&
		node.l_ld == object->dynamic && node.l_addr == object->bias &&
		node.l_prev == before &&
		cuf_guarded_copy(&next, (uintptr_t)&before->l_next, sizeof next) && next == map);
}

static bool is_gone(const struct object *object)
{
	return object->loaded.end == object->loaded.start;
}

static struct object *find_node(const struct link_map *map, const struct link_map *node)
{
	for (struct object *object = objects; object < objects + object_count; object++)
		if (!is_gone(object) && object->loaded.map == map &&
		    object->dynamic == node->l_ld && object->bias == node->l_addr)
			return object;
	return NULL;
}

/* Where the next object goes: a place of one that is gone, or behind all. NULL: no room. */
static struct object *find_room(void)
{
	for (struct object *object = objects + start_count; object < objects + object_count;
	     object++)
		if (is_gone(object)) {
			__atomic_fetch_add(&reused, 1, __ATOMIC_SEQ_CST);
			return object;
		}
	return object_count < OBJECTS_MAX ? &objects[object_count] : NULL;
}

/* false: no room, or a thread is just making it. */
static bool add_object(const struct link_map *map, const struct link_map *node)
{
	struct object *object = find_room();

	if (!object)
		return false;
	object->loaded = (struct cuf_loaded){ .map = (struct link_map *)map };
	object->gap_start = object->gap_end = 0;
	object->before = node->l_prev;
	object->bias = node->l_addr;
	object->dynamic = node->l_ld;
	object->seen = readings;
	if (!read_object(object) && !cuf_elf_list_is_complete())
		return false;
	last = object;
	if (object == &objects[object_count])
		__atomic_store_n(&object_count, object_count + 1, __ATOMIC_RELEASE);
	return true;
}

/* Reads from this node on. Returns whether the list's end was reached. */
static bool read_nodes(const struct link_map *map)
{
	struct link_map node;

	for (; map; map = node.l_next) {
		struct object *known;

		if (!cuf_guarded_copy(&node, (uintptr_t)map, sizeof node))
			return false;
		known = find_node(map, &node);
		if (!known && !add_object(map, &node))
			return false;
		if (!known)
			continue;
		known->before = node.l_prev;
		known->seen = readings;
		last = known;
	}
	return true;
}

static void forget_unseen(void)
{
	for (struct object *object = objects; object < objects + object_count; object++)
		if (object->seen != readings)
			__atomic_store_n(&object->loaded.end, object->loaded.start,
					 __ATOMIC_RELEASE);
}

/* Whether all of it is read, or only what was opened since. */
static void read_list(bool all)
{
	const struct link_map *next;

	if (!all) {
		if (cuf_guarded_copy(&next, (uintptr_t)&last->loaded.map->l_next, sizeof next))
			read_nodes(next);
		return;
	}
	readings++;
	if (read_nodes(cuf_elf_first_at_start()))
		forget_unseen();
	if (!start_count)
		start_count = object_count;
}

/* One thread at a time. */
static void renew_list(bool all)
{
	if (__atomic_exchange_n(&in_use, 1, __ATOMIC_ACQUIRE))
		return;
	all |= !last || is_gone(last) || !is_still_there(last);
	read_list(all);
	__atomic_store_n(&in_use, 0, __ATOMIC_RELEASE);
}

/* The thread that read the list is not in the child. */
static void release_list(void) { in_use = 0; }
CUF_AT_FORK_CHILD(release_list);

/* ---- looking it up ---- */

static bool holds(const struct object *object, uintptr_t addr)
{
	return addr - object->loaded.start < object->loaded.end - object->loaded.start &&
	       addr - object->gap_start >= object->gap_end - object->gap_start;
}

/* The object that has this address, as far as the list goes. NULL: none. */
static const struct object *search(uintptr_t addr, struct cuf_loaded *found)
{
	unsigned before = __atomic_load_n(&reused, __ATOMIC_ACQUIRE);
	unsigned count = __atomic_load_n(&object_count, __ATOMIC_ACQUIRE);
	const struct object *object = objects;

	while (object < objects + count && !holds(object, addr))
		object++;
	if (object == objects + count)
		return NULL;
	*found = object->loaded;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&reused, __ATOMIC_RELAXED) == before ? object : NULL;
}

struct question {
	uintptr_t addr;
	struct cuf_loaded *found;
	bool is_answered;
};

/* Of what is not known to stay. */
static void answer_now(void *argument)
{
	struct question *question = argument;
	const struct object *object = search(question->addr, question->found);

	if (!object || !is_still_there(object)) {
		renew_list(object != NULL);
		object = search(question->addr, question->found);
	}
	question->is_answered = object && is_still_there(object);
}

bool cuf_loaded_listed_at(uintptr_t addr, struct cuf_loaded *found)
{
	struct question question = { addr, found, false };
	const struct object *object = search(addr, found);

	if (object && object - objects < start_count)
		return true;
	cuf_on_side_stack(answer_now, &question);
	return question.is_answered;
}

bool cuf_loaded_at(uintptr_t addr, struct cuf_loaded *found)
{
	struct answer answer;

	if (!loader_find)
		return cuf_loaded_listed_at(addr, found);
	if (loader_find((void *)addr, &answer) || !answer.map)
		return false;
	*found = (struct cuf_loaded){ (uintptr_t)answer.start, (uintptr_t)answer.end,
				      (uintptr_t)answer.eh_frame_hdr, answer.map };
	return true;
}
