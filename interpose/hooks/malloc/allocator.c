/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which allocators there are, and when their statistics are read. An allocator is in one of three
 * places. Behind us: its malloc is what our hook calls. Private: an object has its own under other
 * names, so its blocks are not visible, but its statistics are. In front of us: the program itself
 * defines malloc, so our hooks are never called.
 */
#include "interpose/hooks/malloc/allocator.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/platform/side_stack.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/malloc/allocator_copy.h"
#include "interpose/hooks/malloc/allocator_stats.h"
#include "interpose/hooks/malloc/mmap.h"
#include "interpose/hooks/malloc/process_maps.h"

/* ---- families ---- */

/* An object belongs to the first family whose probe it exports under one of the prefixes. */
static const struct family {
	const char *name, *probe;
	const char *prefixes[5];
	bool (*stats)(const struct cuf_allocator *, enum cuf_moment, struct cuf_text *);
	void (*version)(const struct cuf_allocator *, struct cuf_text *);
} families[] = {
	{ "jemalloc", "mallctl", { "", "je_", "_rjem_", "je_arrow_", "jemalloc_" },
	  cuf_stats_jemalloc, cuf_version_jemalloc },
	{ "tcmalloc", "MallocExtension_GetNumericProperty", { "" }, cuf_stats_tcmalloc, NULL },
	{ "tcmalloc", "MallocExtension_Internal_GetNumericProperty", { "" }, cuf_stats_tcmalloc,
	  NULL },
	{ "tcmalloc", "tc_malloc", { "" }, NULL, NULL },
	{ "mimalloc", "mi_version", { "" }, cuf_stats_mimalloc, cuf_version_mimalloc },
	{ "glibc", "malloc_info", { "" }, cuf_stats_glibc, cuf_version_glibc },
};
enum {
	FAMILIES = sizeof families / sizeof *families,
	FAMILIES_BUT_GLIBC = FAMILIES - 1, /* glibc is in every process */
	PREFIXES = sizeof families->prefixes / sizeof *families->prefixes,
};

/* An allocator is addressed by its object, not by dlsym: with several copies of jemalloc in a
 * process, dlsym would find the first one only. */
static struct cuf_allocator allocator_of_map(const struct link_map *map)
{
	return (struct cuf_allocator){ .prefix = "", .bias = map->l_addr, .dynamic = map->l_ld };
}

/* Sets the allocator's prefix. NULL: none of the first families_max. */
static const struct family *family_of(struct cuf_allocator *allocator, unsigned families_max)
{
	for (unsigned f = 0; f < families_max; f++)
		for (unsigned p = 0; p < PREFIXES && families[f].prefixes[p]; p++) {
			allocator->prefix = families[f].prefixes[p];
			if (cuf_allocator_function(allocator, families[f].probe))
				return &families[f];
		}
	allocator->prefix = "";
	return NULL;
}

/* ---- one allocator ---- */

/* The object that the loader searches before us and that defines malloc itself; NULL: none. */
static const struct link_map *front;

/* At start the list of objects is the search order, so what precedes us is searched first. */
static const struct link_map *find_object_in_front(void)
{
	struct cuf_dso self;
	if (!cuf_dso_at((const void *)find_object_in_front, &self))
		return NULL;
	for (const struct link_map *map = self.map->l_prev; map; map = map->l_prev)
		if (cuf_elf_symbol(map->l_addr, map->l_ld, "malloc"))
			return map;
	return NULL;
}

/* Keys are those of abi/FORMAT.md. */
static void add_description(struct cuf_text *text, const struct family *family,
			    const struct cuf_allocator *allocator, const char *role,
			    const char *object)
{
	CUF_TEXT(version, 64);
	cuf_stats_add_word(text, "name", family ? family->name : "unknown");
	if (family && family->version)
		family->version(allocator, &version);
	if (version.used)
		cuf_stats_add_word(text, "version", version.at);
	cuf_stats_add_word(text, "role", role);
	cuf_stats_add_word(text, "object", object && *object ? object : "the program itself");
	if (*allocator->prefix)
		cuf_stats_add_word(text, "prefix", allocator->prefix);
}

/* One record. The buffer is static because readings exclude each other, and the constructor runs on
 * one thread. */
static void write_allocator(enum cuf_moment moment, const struct family *family,
			    const struct cuf_allocator *allocator, const char *role,
			    const char *object)
{
	enum { TEXT_BYTES = 4096 };
	static char buffer[TEXT_BYTES];
	struct cuf_text text = { buffer, 0, sizeof buffer };
	buffer[0] = 0;
	add_description(&text, family, allocator, role, object);
	if (moment != CUF_MOMENT_START && family && family->stats)
		family->stats(allocator, moment, &text);
	cuf_allocator_deliver(CUF_META_ALLOCATOR, moment, text.at, text.used);
}

/* For an object that may have any family of allocators, or one that is not known. */
static void write_map(enum cuf_moment moment, const struct link_map *map, const char *role)
{
	struct cuf_allocator allocator = allocator_of_map(map);
	const struct family *family = family_of(&allocator, FAMILIES);
	write_allocator(moment, family, &allocator, role, map->l_name);
}

/* Called once, at the start. It writes names and versions only, since statistics would be those of
 * an empty heap. */
void cuf_allocator_describe(void)
{
	front = find_object_in_front();
	if (!cuf_real_find_allocator() || !cuf_recorder_status().is_on)
		return;
	write_map(CUF_MOMENT_START, cuf_real_allocator(), "process");
	if (front)
		write_map(CUF_MOMENT_START, front, "in_front");
}

/* ---- objects with an allocator of their own ---- */

enum { PRIVATE_MAX = 8 };
struct private_search {
	enum cuf_moment moment;
	unsigned found;
};

/*
 * An allocator that was linked in under hidden names cannot be found here. The reader of the
 * recording searches the file for it, so the object must be in META although no stack passed it.
 */
static void note_object(const struct dl_phdr_info *object)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
			uintptr_t code = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
			cuf_allocator_deliver(CUF_META_MODULE, code, NULL, 0);
			return;
		}
}

/* Called by the loader for each object. It returns 0, so the iteration goes on to the last one.
 * Objects beyond PRIVATE_MAX are only named. */
static int write_private(struct dl_phdr_info *object, size_t bytes, void *context)
{
	struct private_search *search = context;
	struct cuf_allocator allocator = { .bias = object->dlpi_addr,
					   .dynamic = cuf_dso_dynamic(object) };
	const struct family *family;
	const char *role = "private";
	note_object(object);
	if (search->found == PRIVATE_MAX || !allocator.dynamic ||
	    allocator.dynamic == cuf_real_allocator()->l_ld ||
	    cuf_dso_is_self(allocator.dynamic))
		return 0;
	family = family_of(&allocator, FAMILIES_BUT_GLIBC);
	if (!family)
		return 0;
	if (front && front->l_ld == allocator.dynamic)
		role = "in_front";
	write_allocator(search->moment, family, &allocator, role, object->dlpi_name);
	search->found++;
	return 0;
}

/* ---- a reading ---- */

/* The resident memory of the whole process by kind of map, and the sums of mmap=1. Keys are those
 * of abi/FORMAT.md. */
static uint64_t write_memory(enum cuf_moment moment)
{
	const struct cuf_recorder_status status = cuf_recorder_status();
	struct cuf_process_maps maps = { 0 };
	CUF_TEXT(text, 1024);
	if (cuf_process_maps_read(&maps, status.start, status.bytes)) {
		cuf_stats_add(&text, "rss_bytes", maps.rss_bytes);
		cuf_stats_add(&text, "pss_bytes", maps.pss_bytes);
		cuf_stats_add(&text, "swap_bytes", maps.swap_bytes);
		cuf_stats_add(&text, "private_dirty_bytes", maps.private_dirty_bytes);
		cuf_stats_add(&text, "heap_bytes", maps.heap_bytes);
		cuf_stats_add(&text, "anonymous_bytes", maps.anonymous_bytes);
		cuf_stats_add(&text, "stack_bytes", maps.stack_bytes);
		cuf_stats_add(&text, "file_bytes", maps.file_bytes);
		cuf_stats_add(&text, "file_private_bytes", maps.file_private_bytes);
		cuf_stats_add(&text, "shared_bytes", maps.shared_bytes);
		cuf_stats_add(&text, "recorder_bytes", maps.recorder_bytes);
		cuf_stats_add(&text, "map_count", maps.map_count);
		cuf_stats_add(&text, "whole", maps.whole);
	}
	cuf_mmap_stats(&text);
	if (text.used)
		cuf_note(CUF_META_MEMORY, moment, text.at, text.used);
	return maps.rss_bytes;
}

/* Whether its statistics can be read without locks. */
static bool is_glibc(const struct link_map *map)
{
	struct cuf_allocator allocator = allocator_of_map(map);
	const struct family *family = family_of(&allocator, FAMILIES);
	return family && family->stats == cuf_stats_glibc;
}

/* What takes locks: allocators other than glibc's, and the list of objects. */
static void read_others(void *argument)
{
	const enum cuf_moment moment = *(const enum cuf_moment *)argument;
	struct private_search search = { moment, 0 };
	if (!is_glibc(cuf_real_allocator()))
		write_map(moment, cuf_real_allocator(), "process");
	dl_iterate_phdr(write_private, &search);
}

/*
 * Three parts: the process, the allocator behind us, and every object with its own allocator. No
 * lock may be waited for, so what takes locks is asked in a copy of the process, and only at the
 * end: after a failure a device may write to memory that a copy would share.
 */
static void read_all(void *argument)
{
	const enum cuf_moment moment = *(const enum cuf_moment *)argument;
	uint64_t resident_bytes = write_memory(moment);
	if (is_glibc(cuf_real_allocator()))
		write_map(moment, cuf_real_allocator(), "process");
	if (moment == CUF_MOMENT_END && !cuf_options.under_valgrind)
		cuf_allocator_read_in_copy(read_others, argument, resident_bytes);
}

/* ---- when ---- */

#define SPACING_NS 1000000000ull
#define COST_SHARE 50 /* at most a fiftieth of the time goes into readings at incidents */

static bool reading;          /* one thread at a time */
static uint64_t next_ns, spacing_ns;

/* A child forked during a reading must not wait for its parent's. */
static void forget_reading(void) { __atomic_store_n(&reading, false, __ATOMIC_RELAXED); }
CUF_AT_FORK_CHILD(forget_reading);

/* Spacing doubles with each reading. An incident that repeats in a loop is read at 0, 1, 3, 7
 * s and so on. A slow reading is spaced further apart. */
static void schedule_next(uint64_t began_ns)
{
	uint64_t ended_ns = cuf_now_ns(), spacing_min_ns = (ended_ns - began_ns) * COST_SHARE;
	spacing_ns = spacing_ns ? spacing_ns * 2 : SPACING_NS;
	if (spacing_ns < spacing_min_ns)
		spacing_ns = spacing_min_ns;
	__atomic_store_n(&next_ns, ended_ns + spacing_ns, __ATOMIC_RELAXED);
}

/* Every reading excludes the others. One that comes meanwhile is dropped, not delayed. */
void cuf_allocator_read(enum cuf_moment moment)
{
	const struct cuf_recorder_status status = cuf_recorder_status();
	uint64_t began_ns = cuf_now_ns();
	int saved = errno;
	if (!status.is_on_disk) /* still in memory: nobody will read it */
		return;
	if (!cuf_real_allocator() || !status.is_on)
		return;
	if (moment == CUF_MOMENT_INCIDENT && began_ns < __atomic_load_n(&next_ns, __ATOMIC_RELAXED))
		return;
	if (__atomic_exchange_n(&reading, true, __ATOMIC_ACQUIRE))
		return;
	cuf_on_side_stack(read_all, &moment);
	schedule_next(began_ns);
	__atomic_store_n(&reading, false, __ATOMIC_RELEASE);
	errno = saved;
}
