/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of this process. Owns the table of modules noted in META, the generation, and the
 * look-up of the object behind an address. Must never take the loader's lock: its holder may be
 * waiting in malloc for us.
 */
#include "interpose/code/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include "interpose/code/object_copy.h"
#include "interpose/objects/loaded.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/page.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sys.h"
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/platform/laws.h"

/* ---- the object at an address ---- */

/*
 * The executable, for the case that the kernel has mapped it with gaps between its segments
 * (Node.js as published). The loader then answers with the segment around the address, and
 * neither the program headers nor the unwind table are in it.
 */
static const struct link_map *executable_map;
static struct cuf_object executable;

/* An object by its program headers. */
static struct cuf_object object_of_headers(const struct link_map *map, const ElfW(Phdr) *headers,
					   size_t count)
{
	struct cuf_object object = { UINTPTR_MAX, 0, map->l_addr, 0, map->l_name };

	for (size_t i = 0; i < count; i++) {
		const ElfW(Phdr) *segment = &headers[i];
		uintptr_t at = map->l_addr + segment->p_vaddr;

		if (segment->p_type == PT_GNU_EH_FRAME)
			object.eh_frame_hdr = at;
		if (segment->p_type != PT_LOAD)
			continue;
		if (at - at % cuf_page_bytes() < object.start)
			object.start = at - at % cuf_page_bytes();
		if (at + segment->p_memsz > object.end)
			object.end = at + segment->p_memsz;
	}
	return object;
}

static void find_executable(void)
{
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	struct cuf_loaded found;

	if (executable_map || !headers || !cuf_loaded_at(getauxval(AT_ENTRY), &found))
		return;
	executable = object_of_headers(found.map, headers, getauxval(AT_PHNUM));
	executable_map = found.map;
}

/* map: what the loader has of it, or a copy of that. */
static void take_object(const struct cuf_loaded *found, const struct link_map *map,
			struct cuf_object *object)
{
	*object = (struct cuf_object){ found->start, found->end, map->l_addr, found->eh_frame_hdr,
				       map->l_name };
}

bool cuf_object_find(uintptr_t addr, struct cuf_object *object)
{
	struct cuf_loaded found;

	if (!cuf_loaded_at(addr, &found))
		return false;
	if (found.map == executable_map)
		*object = executable;
	else
		take_object(&found, found.map, object);
	return true;
}

bool cuf_object_find_going(uintptr_t addr, struct cuf_object *object)
{
	struct cuf_loaded found;
	/* its public part */
	struct link_map map;

	if (!cuf_loaded_at(addr, &found))
		return false;
	if (found.map == executable_map) {
		*object = executable;
		return true;
	}
	if (!cuf_guarded_copy(&map, (uintptr_t)found.map, sizeof map))
		return false;
	take_object(&found, &map, object);
	return true;
}

/* ---- inside one object that this thread is in ---- */

enum { HEAD_BYTES = 4096 };

/*
 * The program headers, when they are in the object's first page, where all linkers place them.
 * Else NULL.
 */
static const ElfW(Phdr) *program_headers(const struct cuf_object *object, unsigned *count)
{
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)object->start;

	if (object->end - object->start < HEAD_BYTES || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_phentsize != sizeof(ElfW(Phdr)) || head->e_phoff > HEAD_BYTES ||
	    head->e_phoff % 8 ||
	    head->e_phnum > (HEAD_BYTES - head->e_phoff) / sizeof(ElfW(Phdr)))
		return NULL;
	*count = head->e_phnum;
	return (const ElfW(Phdr) *)(object->start + head->e_phoff);
}

static bool is_in_segment(const struct cuf_object *object, const ElfW(Phdr) *segment,
			  uintptr_t addr)
{
	return addr - object->base - segment->p_vaddr < segment->p_memsz;
}

unsigned cuf_object_access(const struct cuf_object *object, uintptr_t addr)
{
	unsigned count, access = 0;
	const ElfW(Phdr) *segments = program_headers(object, &count);

	if (!segments)
		return 0;
	for (unsigned i = 0; i < count; i++)
		if (segments[i].p_type == PT_LOAD && is_in_segment(object, &segments[i], addr))
			access = segments[i].p_flags & (PF_R | PF_W | PF_X);
	for (unsigned i = 0; i < count; i++)
		if (segments[i].p_type == PT_GNU_RELRO && is_in_segment(object, &segments[i], addr))
			access &= ~(unsigned)PF_W;
	return access;
}

bool cuf_object_span(const struct cuf_object *object, uintptr_t addr, struct cuf_span *span)
{
	unsigned count;
	const ElfW(Phdr) *segments = program_headers(object, &count);

	if (addr - object->start >= object->end - object->start)
		return false;
	*span = (struct cuf_span){ object->start, object->end };
	if (!segments)
		return true;
	for (unsigned i = 0; i < count; i++) {
		uintptr_t start = object->base + segments[i].p_vaddr;

		if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_R) ||
		    !is_in_segment(object, &segments[i], addr))
			continue;
		*span = (struct cuf_span){ start, start + segments[i].p_memsz };
		return start >= object->start && span->end <= object->end;
	}
	return false;
}

/* ---- the record of a module ---- */

static void write_module(uint64_t id, const struct cuf_object_copy *of, const char *path,
			 size_t path_bytes)
{
	cuf_meta_module(id, of->object->base, of->object->start, of->object->end, of->build_id,
			of->build_id_bytes, path, path_bytes);
}

/* The loader has no name for the executable. */
static __attribute__((noinline)) void write_executable(uint64_t id,
						       const struct cuf_object_copy *of)
{
	char path[CUF_PATH_BYTES_MAX];
	long length = cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
			      sizeof path, 0, 0);

	write_module(id, of, path, cuf_sys_failed(length) ? 0 : (size_t)length);
}

/* Makes the path absolute, because readers run in other directories. */
static __attribute__((noinline)) void write_relative(uint64_t id, const struct cuf_object_copy *of)
{
	char path[CUF_PATH_BYTES_MAX];
	size_t bytes = of->path_bytes, before = 0;
	long length = cuf_sys(SYS_getcwd, (long)path, CUF_PATH_BYTES_MAX / 2, 0, 0, 0, 0);

	if (!cuf_sys_failed(length) && length >= 1) {
		before = (size_t)length; /* with its NUL: the slash goes there */
		path[before - 1] = '/';
	}
	if (bytes > CUF_PATH_BYTES_MAX - before)
		bytes = CUF_PATH_BYTES_MAX - before;
	memcpy(path + before, of->path, bytes);
	write_module(id, of, path, before + bytes);
}

/* By build-id, path and place. */
static uint64_t identity_of(const struct cuf_object_copy *of)
{
	uint64_t hash = of->object->base * 31 + of->object->end;

	for (unsigned i = 0; i < of->build_id_bytes; i++)
		hash = (hash ^ of->build_id[i]) * 0x100000001B3ull;
	for (size_t i = 0; i < of->path_bytes; i++)
		hash = (hash ^ (uint8_t)of->path[i]) * 0x100000001B3ull;
	return hash | 1;
}

struct noting {
	uint64_t id, identity;
	const struct cuf_object *object;
	uintptr_t dynamic; /* 0: not known */
};

static __attribute__((noinline)) void note_object(void *argument)
{
	struct noting *noting = argument;
	struct cuf_object_copy of;

	cuf_object_take_copy(&of, noting->object);
	noting->identity = identity_of(&of);
	for (unsigned i = 0; i < of.count; i++)
		if (of.segments[i].p_type == PT_DYNAMIC)
			noting->dynamic = noting->object->base + of.segments[i].p_vaddr;
	if (!of.path_bytes)
		write_executable(noting->id, &of);
	else if (of.path[0] != '/' && memchr(of.path, '/', of.path_bytes))
		write_relative(noting->id, &of);
	else
		write_module(noting->id, &of, of.path, of.path_bytes);
}

/* ---- the table of noted modules ---- */

enum { MODULES = 1024, NEAR = 64, NEAR_STEPS = 4, WINDOW = 36 };

/*
 * A key is EMPTY (never used), ENDED (may be used again), start | FILLING (being written), or
 * start (live). A start is page-aligned, so the low bits are free. An entry is within WINDOW
 * slots of its home.
 */
enum { EMPTY = 0, FILLING = 1, ENDED = 2 };

struct module {
	uint64_t key;
	uint64_t id;
	/* the same whenever this file is loaded there; never 0 */
	uint64_t identity;
	/* see cuf_modules_searched */
	uint64_t frames_searched;
	uintptr_t end, base;
	const char *path;
};

static struct module modules[MODULES];
static uint64_t last_id;
static uint64_t generation = 1;
static struct cuf_span self;
static cuf_module_listener *listener;

static bool is_same_object(const struct module *module, const struct cuf_object *object)
{
	return module->end == object->end && module->base == object->base &&
	       module->path == object->path;
}

/* ---- where objects were closed ---- */

/* Other objects may be loaded there. When there are more places, the last one grows. */
enum { PLACES = 32 };
static struct cuf_span places[PLACES];
static unsigned place_count;

static bool is_place(uint64_t addr)
{
	unsigned count = __atomic_load_n(&place_count, __ATOMIC_ACQUIRE);

	for (unsigned i = 0; i < count && i < PLACES; i++)
		if (addr >= places[i].start && addr < places[i].end)
			return true;
	return false;
}

/* A reader may see one end of a place before the other: it is too small or too large then. */
static void add_place(uintptr_t start, uintptr_t end)
{
	unsigned count = __atomic_load_n(&place_count, __ATOMIC_ACQUIRE);
	struct cuf_span *last = &places[PLACES - 1];

	if (is_place(start) && is_place(end - 1))
		return;
	if (count < PLACES) {
		places[count] = (struct cuf_span){ start, end };
		__atomic_compare_exchange_n(&place_count, &count, count + 1, false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
		return;
	}
	if (start < last->start)
		last->start = start;
	if (end > last->end)
		last->end = end;
}

bool cuf_modules_any_closed(void) { return __atomic_load_n(&place_count, __ATOMIC_RELAXED) != 0; }

/* ---- noting ---- */

/* Closes a live module. Of several callers one does it. */
static void retire_module(struct module *module, uint64_t start)
{
	uint64_t expected = start;

	if (!__atomic_compare_exchange_n(&module->key, &expected, start | FILLING, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	cuf_meta_module_end(module->id);
	add_place(start, module->end);
	__atomic_store_n(&module->key, ENDED, __ATOMIC_RELEASE);
}

/* First near ones, which are one page: most processes have few objects. */
static struct module *home_slot(uint64_t start, unsigned step)
{
	uint64_t hash = (start >> 12) * 0x9E3779B97F4A7C15ull;

	if (step < NEAR_STEPS)
		return &modules[((hash >> 48) + step) % NEAR];
	return &modules[NEAR + ((hash >> 32) + step) % (MODULES - NEAR)];
}

/*
 * The entry of this object, live or being written. Else NULL, and *vacant is a slot for it, or
 * NULL when the table is full. A different object at the same start means that one was closed
 * unseen: libc closes its plugins without calling us.
 */
static struct module *find_module(const struct cuf_object *object, struct module **vacant)
{
	*vacant = NULL;
	for (unsigned i = 0; i < WINDOW; i++) {
		struct module *module = home_slot(object->start, i);
		uint64_t key = __atomic_load_n(&module->key, __ATOMIC_ACQUIRE);

		if (key == object->start && !is_same_object(module, object)) {
			retire_module(module, key);
			__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
			key = __atomic_load_n(&module->key, __ATOMIC_ACQUIRE);
		}
		if ((key & ~(uint64_t)FILLING) == object->start)
			return module;
		if (!*vacant && (key == EMPTY || key == ENDED))
			*vacant = module;
		if (key == EMPTY)
			return NULL;
	}
	return NULL;
}

/*
 * Writes the object into this slot. Once for each object, and this may be a small alternate stack.
 * false: another thread has claimed it.
 */
static bool fill_slot(struct module *slot, const struct cuf_object *object, uintptr_t *dynamic)
{
	uint64_t key = __atomic_load_n(&slot->key, __ATOMIC_RELAXED);
	struct noting noting = { .identity = 1, .object = object };

	if ((key != EMPTY && key != ENDED) ||
	    !__atomic_compare_exchange_n(&slot->key, &key, object->start | FILLING, 0,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	noting.id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	if (!cuf_on_side_stack(note_object, &noting))
		cuf_count_dropped(CUF_LOST_META);
	slot->id = noting.id;
	slot->identity = noting.identity;
	slot->frames_searched = 0;
	slot->end = object->end;
	slot->base = object->base;
	slot->path = object->path;
	*dynamic = noting.dynamic;
	__atomic_store_n(&slot->key, object->start, __ATOMIC_RELEASE);
	return true;
}

struct newcomer { uintptr_t base; const ElfW(Dyn) *dynamic; };

static void call_listener(void *newcomer)
{
	const struct newcomer *new = newcomer;

	listener(new->base, new->dynamic);
}

/* on_stack: this thread is inside the object, so it stays. */
static void note(const struct cuf_object *object, bool on_stack)
{
	struct newcomer new = { .base = object->base };
	struct module *vacant;
	uintptr_t dynamic;

	while (!find_module(object, &vacant)) {
		if (!vacant) {
			cuf_count_dropped(CUF_LOST_META);
			return;
		}
		/* a slot that was claimed meanwhile may hold this very object: search again */
		if (!fill_slot(vacant, object, &dynamic))
			continue;
		new.dynamic = (const ElfW(Dyn) *)dynamic;
		if (on_stack && listener && dynamic)
			cuf_on_side_stack(call_listener, &new);
		return;
	}
}

void cuf_modules_note(uint64_t code_addr)
{
	struct cuf_object object;

	if (cuf_object_find(code_addr, &object))
		note(&object, true);
}

void cuf_modules_note_going(uint64_t code_addr)
{
	struct cuf_object object;

	if (cuf_object_find_going(code_addr, &object))
		note(&object, false);
}

/* Of the live entry of the object, which is noted now if it was not; 0: none. */
static uint64_t identity_now(const struct cuf_object *object, bool on_stack)
{
	struct module *vacant, *module;

	note(object, on_stack);
	module = find_module(object, &vacant);
	if (!module || __atomic_load_n(&module->key, __ATOMIC_ACQUIRE) != object->start)
		return 0;
	return module->identity;
}

uint64_t cuf_modules_epoch(uint64_t code_addr)
{
	struct cuf_object object;

	if (!is_place(code_addr) || !cuf_object_find(code_addr, &object))
		return 0;
	return identity_now(&object, true);
}

uint64_t cuf_modules_epoch_going(uint64_t code_addr)
{
	struct cuf_object object;

	if (!is_place(code_addr) || !cuf_object_find_going(code_addr, &object))
		return 0;
	return identity_now(&object, false);
}

bool cuf_modules_searched(const struct cuf_object *object, uint64_t frames, uint64_t *before)
{
	struct module *vacant, *module = find_module(object, &vacant);

	if (!module || __atomic_load_n(&module->key, __ATOMIC_ACQUIRE) != object->start)
		return false;
	*before = __atomic_exchange_n(&module->frames_searched, frames, __ATOMIC_RELAXED);
	return true;
}

uint64_t cuf_modules_generation(void) { return __atomic_load_n(&generation, __ATOMIC_ACQUIRE); }

void cuf_modules_changed(void)
{
	for (unsigned i = 0; i < MODULES; i++) {
		uint64_t key = __atomic_load_n(&modules[i].key, __ATOMIC_ACQUIRE);
		struct cuf_object object;

		if (key == EMPTY || key & (FILLING | ENDED))
			continue;
		if (!cuf_object_find_going(key, &object) || object.start != key ||
		    !is_same_object(&modules[i], &object))
			retire_module(&modules[i], key);
	}
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

bool cuf_modules_is_self(uint64_t code_addr)
{
	return code_addr - self.start < self.end - self.start;
}

/* ---- life ---- */

/* What nearly every stack passes. libc is found through one of its functions. */
static void note_first(void)
{
	struct cuf_object object;

	cuf_modules_note(getauxval(AT_ENTRY));        /* the executable */
	cuf_modules_note(getauxval(AT_SYSINFO_EHDR)); /* the vdso */
	cuf_modules_note((uintptr_t)&cuf_modules_init);
	cuf_modules_note((uintptr_t)&getauxval);
	if (cuf_object_find((uintptr_t)&cuf_modules_init, &object) && object.path[0])
		self = (struct cuf_span){ object.start, object.end };
}

void cuf_modules_init(cuf_module_listener *on_new_object)
{
	listener = on_new_object;
	find_executable();
	note_first();
}

/* In the child's recording nothing is noted yet. */
static void forget_modules(void)
{
	memset(modules, 0, sizeof modules);
	last_id = 0;
	place_count = 0;
}
CUF_AT_FORK_CHILD(forget_modules);
