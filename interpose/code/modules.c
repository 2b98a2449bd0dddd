/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects of this process. Owns the table of modules noted in META, the generation, and the look-up of the object
 * behind an address. Must never take the loader's lock: whoever holds it may be waiting in malloc for us.
 */
#include "interpose/code/modules.h"

#include <elf.h>
#include <link.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/platform/sys.h"

/* Without _dl_find_object (glibc before 2.35): the objects that were there at start. */
enum { SNAPSHOT_MAX = 256 };
static struct cuf_object snapshot[SNAPSHOT_MAX];
static unsigned snapshot_count;

/* What an object's program headers say of it. end 0: nothing is loaded. */
static struct cuf_object object_of_headers(uintptr_t base, const char *path, const ElfW(Phdr) *headers, size_t count)
{
	struct cuf_object object = { .start = UINTPTR_MAX, .base = base, .path = path };
	for (size_t i = 0; i < count; i++) {
		const ElfW(Phdr) *segment = &headers[i];
		uintptr_t at = base + segment->p_vaddr;
		if (segment->p_type == PT_GNU_EH_FRAME)
			object.eh_frame_hdr = at;
		if (segment->p_type != PT_LOAD)
			continue;
		if ((at & ~(uintptr_t)4095) < object.start)
			object.start = at & ~(uintptr_t)4095;
		if (at + segment->p_memsz > object.end)
			object.end = at + segment->p_memsz;
	}
	return object;
}

static int snapshot_add(struct dl_phdr_info *info, size_t size, void *context)
{
	struct cuf_object object =
		object_of_headers(info->dlpi_addr, info->dlpi_name, info->dlpi_phdr, info->dlpi_phnum);
	(void)size, (void)context;
	if (object.end && snapshot_count < SNAPSHOT_MAX)
		snapshot[snapshot_count++] = object;
	return 0;
}

/* The one use of a loader function that locks: from the constructor, when no other thread can hold the lock. */
static void snapshot_take(void) { dl_iterate_phdr(snapshot_add, NULL); }

#include "interpose/platform/laws.h"

enum { MODULES = 1024,
       WINDOW = 32,
       HEAD_BYTES = 4096,
       PATH_MAX_BYTES = 4096 };

/*
 * One noted object. key: EMPTY (never used), ENDED (may be used again), start | FILLING (somebody is writing it), or
 * start (live). A start is page-aligned, so the low bits are free. Searched within WINDOW slots of its home.
 */
enum { EMPTY = 0,
       FILLING = 1,
       ENDED = 2 };
struct module {
	uint64_t key;
	uint64_t id;
	uintptr_t end, base;
	const char *path;
};
static struct module modules[MODULES];
static uint64_t last_id;
static uint64_t generation = 1;
static struct cuf_span self;
static cuf_module_listener *listener;

#if defined __GLIBC__ && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 35)
/* Weak: the library may run with an older glibc than it was built with. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static bool loader_can_find(void) { return &_dl_find_object != NULL; }

/*
 * The executable, where the kernel has put it with gaps between its segments (Node.js as published): the loader then
 * answers with the segment around the address, in which neither the program headers nor the unwind table lie.
 */
static const struct link_map *executable_map;
static struct cuf_object executable;

static void know_executable(void)
{
	const ElfW(Phdr) *headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	struct dl_find_object found;
	if (executable_map || !headers || _dl_find_object((void *)getauxval(AT_ENTRY), &found))
		return;
	executable = object_of_headers(
		found.dlfo_link_map->l_addr, found.dlfo_link_map->l_name, headers, getauxval(AT_PHNUM));
	executable_map = found.dlfo_link_map;
}

static bool loader_find(uintptr_t addr, struct cuf_object *object)
{
	struct dl_find_object found;
	if (_dl_find_object((void *)addr, &found))
		return false;
	if (found.dlfo_link_map == executable_map) {
		*object = executable;
		return true;
	}
	object->start = (uintptr_t)found.dlfo_map_start;
	object->end = (uintptr_t)found.dlfo_map_end;
	object->base = found.dlfo_link_map->l_addr;
	object->eh_frame_hdr = (uintptr_t)found.dlfo_eh_frame;
	object->path = found.dlfo_link_map->l_name;
	return true;
}
#else
static bool loader_can_find(void)
{
	return false;
}
static void know_executable(void) {}
static bool loader_find(uintptr_t addr, struct cuf_object *object) { return false; }
#endif

bool cuf_object_find(uintptr_t addr, struct cuf_object *object)
{
	if (loader_can_find())
		return loader_find(addr, object);
	for (unsigned i = 0; i < snapshot_count; i++) {
		if (addr - snapshot[i].start >= snapshot[i].end - snapshot[i].start)
			continue;
		*object = snapshot[i];
		return true;
	}
	return false;
}

/* The program headers, when they lie in the object's first page, as all linkers place them. NULL: not there. */
static const ElfW(Phdr) * program_headers(const struct cuf_object *object, unsigned *count)
{
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)object->start;
	if (object->end - object->start < HEAD_BYTES || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_phentsize != sizeof(ElfW(Phdr)) || head->e_phoff > HEAD_BYTES || head->e_phoff % 8 ||
	    head->e_phnum > (HEAD_BYTES - head->e_phoff) / sizeof(ElfW(Phdr)))
		return NULL;
	*count = head->e_phnum;
	return (const ElfW(Phdr) *)(object->start + head->e_phoff);
}

unsigned cuf_object_access(const struct cuf_object *object, uintptr_t addr)
{
	unsigned count, access = 0;
	const ElfW(Phdr) *segments = program_headers(object, &count);
	for (unsigned i = 0; segments && i < count; i++)
		if (segments[i].p_type == PT_LOAD && addr - object->base - segments[i].p_vaddr < segments[i].p_memsz)
			access = segments[i].p_flags & (PF_R | PF_W | PF_X);
	for (unsigned i = 0; segments && i < count; i++)
		if (segments[i].p_type == PT_GNU_RELRO && addr - object->base - segments[i].p_vaddr < segments[i].p_memsz)
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
		    addr - start >= segments[i].p_memsz)
			continue;
		*span = (struct cuf_span){ start, start + segments[i].p_memsz };
		return start >= object->start && span->end <= object->end;
	}
	return false;
}

/* Looks for the GNU build-id among the notes of one segment. */
static unsigned build_id_among(uintptr_t at, uintptr_t end, const uint8_t **id)
{
	while (end - at >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
		uintptr_t name = at + sizeof *note, text = name + ((note->n_namesz + 3ul) & ~3ul);
		uintptr_t next = text + ((note->n_descsz + 3ul) & ~3ul);
		if (note->n_namesz > end - at || note->n_descsz > end - at || next > end)
			return 0;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp((const void *)name, "GNU", 4)) {
			*id = (const uint8_t *)text;
			return note->n_descsz;
		}
		at = next;
	}
	return 0;
}

static unsigned build_id_of(const struct cuf_object *object, const uint8_t **id)
{
	unsigned count, bytes;
	const ElfW(Phdr) *segments = program_headers(object, &count);
	for (unsigned i = 0; segments && i < count; i++) {
		uintptr_t at = object->base + segments[i].p_vaddr;
		struct cuf_span span;
		if (segments[i].p_type != PT_NOTE || at % 4 || !cuf_object_span(object, at, &span) ||
		    segments[i].p_memsz > span.end - at)
			continue;
		if ((bytes = build_id_among(at, at + segments[i].p_memsz, id)))
			return bytes;
	}
	return 0;
}

static void write_module(uint64_t id, const struct cuf_object *object, const char *path, size_t path_bytes)
{
	const uint8_t *build_id = NULL;
	unsigned build_id_bytes = build_id_of(object, &build_id);
	cuf_meta_module(id, object->base, object->start, object->end, build_id, build_id_bytes, path, path_bytes);
}

/* The executable is loaded under no name. */
static __attribute__((noinline)) void write_executable(uint64_t id, const struct cuf_object *object)
{
	char path[PATH_MAX_BYTES];
	long got = cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof path, 0, 0);
	write_module(id, object, path, cuf_sys_failed(got) ? 0 : (size_t)got);
}

/* A path made absolute: readers run in other directories. */
static __attribute__((noinline)) void write_relative(uint64_t id, const struct cuf_object *object)
{
	char path[PATH_MAX_BYTES];
	size_t bytes = strlen(object->path), before;
	long got = cuf_sys(SYS_getcwd, (long)path, PATH_MAX_BYTES / 2, 0, 0, 0, 0);
	before = cuf_sys_failed(got) || got < 1 ? 0 : (size_t)got; /* counts its NUL: the slash goes there */
	if (before)
		path[before - 1] = '/';
	if (bytes > PATH_MAX_BYTES - before)
		bytes = PATH_MAX_BYTES - before;
	memcpy(path + before, object->path, bytes);
	write_module(id, object, path, before + bytes);
}

/* Of the three the common one needs no room for a path: we may be on a small alternate stack. */
static void describe(uint64_t id, const struct cuf_object *object)
{
	if (!object->path[0])
		write_executable(id, object);
	else if (object->path[0] != '/' && strchr(object->path, '/'))
		write_relative(id, object);
	else
		write_module(id, object, object->path, strlen(object->path));
}

static bool same_object(const struct module *module, const struct cuf_object *object)
{
	return module->end == object->end && module->base == object->base && module->path == object->path;
}

/* Closes a live module; of several callers one does it. */
static void retire(struct module *module, uint64_t start)
{
	uint64_t expected = start;
	if (!__atomic_compare_exchange_n(
		    &module->key, &expected, start | FILLING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	cuf_meta_module_end(module->id);
	__atomic_store_n(&module->key, ENDED, __ATOMIC_RELEASE);
}

static struct module *home_slot(uint64_t start, unsigned step)
{
	return &modules[(((start >> 12) * 0x9E3779B97F4A7C15ull >> 54) + step) % MODULES];
}

/*
 * The live (or just being written) entry of this object, else NULL with *vacant the slot to take; *vacant NULL: full.
 * A different object that lived at the same start has gone unseen (libc closes its own plugins without calling us).
 */
static struct module *find_module(const struct cuf_object *object, struct module **vacant)
{
	*vacant = NULL;
	for (unsigned i = 0; i < WINDOW; i++) {
		struct module *module = home_slot(object->start, i);
		uint64_t key = __atomic_load_n(&module->key, __ATOMIC_ACQUIRE);
		if (key == object->start && !same_object(module, object)) {
			retire(module, key);
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

/* Reports a new object to whoever was given to cuf_modules_init. */
static void call_listener(const struct cuf_object *object)
{
	unsigned count;
	const ElfW(Phdr) *segments = program_headers(object, &count);
	for (unsigned i = 0; listener && segments && i < count; i++)
		if (segments[i].p_type == PT_DYNAMIC)
			listener(object->base, (const ElfW(Dyn) *)(object->base + segments[i].p_vaddr));
}

void cuf_modules_note(uint64_t code_addr)
{
	struct cuf_object object;
	struct module *vacant;
	if (!cuf_object_find(code_addr, &object))
		return;
	while (!find_module(&object, &vacant)) {
		uint64_t key;
		if (!vacant) {
			cuf_count_dropped(CUF_LOST_META);
			return;
		}
		key = __atomic_load_n(&vacant->key, __ATOMIC_RELAXED);
		if (key != EMPTY && key != ENDED)
			continue; /* taken meanwhile, perhaps for this very object: look again */
		if (!__atomic_compare_exchange_n(
			    &vacant->key, &key, object.start | FILLING, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		vacant->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
		vacant->end = object.end;
		vacant->base = object.base;
		vacant->path = object.path;
		describe(vacant->id, &object);
		__atomic_store_n(&vacant->key, object.start, __ATOMIC_RELEASE);
		call_listener(&object);
		return;
	}
}

uint64_t cuf_modules_generation(void) { return __atomic_load_n(&generation, __ATOMIC_ACQUIRE); }

void cuf_modules_changed(void)
{
	for (unsigned i = 0; i < MODULES; i++) {
		uint64_t key = __atomic_load_n(&modules[i].key, __ATOMIC_ACQUIRE);
		struct cuf_object object;
		if (key == EMPTY || key & (FILLING | ENDED))
			continue;
		if (!cuf_object_find(key, &object) || object.start != key || !same_object(&modules[i], &object))
			retire(&modules[i], key);
	}
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

bool cuf_modules_is_self(uint64_t code_addr) { return code_addr - self.start < self.end - self.start; }

/* libc is noted through one of its functions, as every stack passes it. */
static void note_first(void)
{
	struct cuf_object object;
	cuf_modules_note(getauxval(AT_ENTRY)); /* the executable */
	cuf_modules_note(getauxval(AT_SYSINFO_EHDR)); /* the vdso */
	cuf_modules_note((uintptr_t)&cuf_modules_init);
	cuf_modules_note((uintptr_t)&getauxval);
	for (unsigned i = 0; i < snapshot_count; i++)
		cuf_modules_note(snapshot[i].start);
	if (cuf_object_find((uintptr_t)&cuf_modules_init, &object) && object.path[0])
		self = (struct cuf_span){ object.start, object.end };
}

void cuf_modules_init(cuf_module_listener *on_new_object)
{
	listener = on_new_object;
	if (loader_can_find())
		know_executable();
	else if (!snapshot_count)
		snapshot_take();
	note_first();
}

void cuf_modules_atfork_child(void)
{
	memset(modules, 0, sizeof modules);
	last_id = 0;
}
