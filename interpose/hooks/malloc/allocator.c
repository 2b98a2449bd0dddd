/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which allocators there are, and when their books are read. Three ways to be one: behind us (its malloc is what our hook
 * calls), private (an object has its own under other names, so its blocks are not ours to see, but its books are), and in
 * front of us (the program itself defines malloc: our hooks are never called).
 */
#include "interpose/hooks/malloc/allocator.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/clock.h"
#include "interpose/platform/elf_symbol.h"
#include "interpose/code/modules.h"
#include "interpose/hooks/malloc/process_maps.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/hooks/malloc/allocator_books.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/malloc/mmap.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/signal_frame.h"

enum { TEXT_BYTES = 4096, PRIVATE_MAX = 8 };
#define SPACING_NS 1000000000ull
#define COST_SHARE 50 /* at most a fiftieth of the time goes into reading books at incidents */

/* An object is of the first family whose probe it exports under one of the prefixes. */
static const struct family {
	const char *name, *probe;
	const char *prefixes[5];
	bool (*books)(const struct cuf_allocator *, enum cuf_moment, struct cuf_text *);
	void (*version)(const struct cuf_allocator *, struct cuf_text *);
} families[] = {
	{ "jemalloc", "mallctl", { "", "je_", "_rjem_", "je_arrow_", "jemalloc_" }, cuf_books_jemalloc, cuf_version_jemalloc },
	{ "tcmalloc", "MallocExtension_GetNumericProperty", { "" }, cuf_books_tcmalloc, NULL },
	{ "tcmalloc", "MallocExtension_Internal_GetNumericProperty", { "" }, cuf_books_tcmalloc, NULL },
	{ "tcmalloc", "tc_malloc", { "" }, NULL, NULL },
	{ "mimalloc", "mi_version", { "" }, cuf_books_mimalloc, cuf_version_mimalloc },
	{ "glibc", "malloc_info", { "" }, cuf_books_glibc, cuf_version_glibc },
};
enum { FAMILIES = sizeof families / sizeof *families, GLIBC = FAMILIES - 1 };

static struct cuf_dso behind; /* the object of the malloc that our hook calls */
static const struct link_map *front; /* an object that the loader searches before us defines malloc itself; NULL */
static uint32_t reading;      /* the process that is at it: a child forked meanwhile does not wait for its parent */
static uint64_t next_ns, spacing_ns;

/* ---- texts ---- */

void cuf_books_add(struct cuf_text *text, const char *key, uint64_t value)
{
	cuf_text_add(text, key);
	cuf_text_add(text, "=");
	cuf_text_number(text, value);
	cuf_text_add(text, "\n");
}

/* Left out whole where the text has no room for it: a cut number would be another number. */
void cuf_books_class(struct cuf_text *text, const char *key, uint64_t class, uint64_t count, uint64_t bytes)
{
	if (text->room - text->used < 80)
		return;
	cuf_text_add(text, key);
	cuf_text_add(text, ".");
	cuf_text_number(text, class);
	cuf_text_add(text, "=");
	cuf_text_number(text, count);
	cuf_text_add(text, ",");
	cuf_text_number(text, bytes);
	cuf_text_add(text, "\n");
}

static void add_word(struct cuf_text *text, const char *key, const char *word)
{
	cuf_text_add(text, key);
	cuf_text_add(text, "=");
	cuf_text_add(text, word);
	cuf_text_add(text, "\n");
}

/* ---- who is there ---- */

void *cuf_allocator_function(const struct cuf_allocator *allocator, const char *name)
{
	CUF_TEXT(full, 96);
	cuf_text_add(&full, allocator->prefix);
	cuf_text_add(&full, name);
	return cuf_elf_symbol(allocator->bias, allocator->dynamic, full.at);
}

/* NULL: none of these. families_max leaves glibc out where it would be found in any process. */
static const struct family *family_of(struct cuf_allocator *allocator, unsigned families_max)
{
	for (unsigned f = 0; f < families_max; f++)
		for (unsigned p = 0; p < sizeof families->prefixes / sizeof *families->prefixes && families[f].prefixes[p]; p++) {
			allocator->prefix = families[f].prefixes[p];
			if (cuf_allocator_function(allocator, families[f].probe))
				return &families[f];
		}
	allocator->prefix = "";
	return NULL;
}

int cuf_allocator_holds(const void *addr)
{
	uintptr_t a = (uintptr_t)addr;
	return a - behind.start < behind.end - behind.start;
}

static void describe(struct cuf_text *text, const struct family *family, const struct cuf_allocator *allocator, const char *role, const char *object)
{
	CUF_TEXT(version, 64);
	add_word(text, "name", family ? family->name : "unknown");
	if (family && family->version)
		family->version(allocator, &version);
	if (version.used)
		add_word(text, "version", version.at);
	add_word(text, "role", role);
	add_word(text, "object", object && *object ? object : "the program itself");
	if (*allocator->prefix)
		add_word(text, "prefix", allocator->prefix);
}

static void tell(enum cuf_moment moment, const struct family *family, const struct cuf_allocator *allocator, const char *role, const char *object)
{
	static char buffer[TEXT_BYTES]; /* one at a time: see reading, and the constructor is alone */
	struct cuf_text text = { buffer, 0, sizeof buffer };
	buffer[0] = 0;
	describe(&text, family, allocator, role, object);
	if (moment != CUF_MOMENT_START && family && family->books)
		family->books(allocator, moment, &text);
	cuf_meta_text(CUF_META_ALLOCATOR, moment, text.at, text.used);
}

static struct cuf_allocator allocator_behind(void)
{
	return (struct cuf_allocator){ .prefix = "", .map = behind.map, .bias = behind.map->l_addr, .dynamic = behind.map->l_ld };
}

static const struct link_map *object_in_front(void)
{
	struct cuf_dso self;
	if (cuf_dso_at((const void *)object_in_front, &self))
		for (const struct link_map *m = self.map->l_prev; m; m = m->l_prev)
			if (cuf_elf_symbol(m->l_addr, m->l_ld, "malloc"))
				return m;
	return NULL;
}

void cuf_allocator_introduce(void)
{
	struct cuf_allocator allocator;
	const struct family *family;
	front = object_in_front();
	if (!cuf_real.malloc || !cuf_dso_at((const void *)cuf_real.malloc, &behind) || !cuf_state_is_on())
		return;
	allocator = allocator_behind();
	family = family_of(&allocator, FAMILIES);
	tell(CUF_MOMENT_START, family, &allocator, "process", behind.map->l_name);
	if (!front)
		return;
	allocator = (struct cuf_allocator){ .prefix = "", .map = front, .bias = front->l_addr, .dynamic = front->l_ld };
	family = family_of(&allocator, FAMILIES);
	tell(CUF_MOMENT_START, family, &allocator, "in_front", front->l_name);
}

/* ---- objects with an allocator of their own ---- */

struct private_search {
	enum cuf_moment moment;
	unsigned found;
};

static const ElfW(Dyn) *dynamic_of(const struct dl_phdr_info *object)
{
	for (unsigned i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
			return (const ElfW(Dyn) *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
	return NULL;
}

/*
 * An allocator that was linked in under hidden names has none to be found by here; the reader looks into the file, so it
 * must know of the object although no stack went through it. Not where META is short of room for what stacks need.
 */
static void note_object(const struct dl_phdr_info *object)
{
	if (cuf_recording.header->meta_used > cuf_recording.meta_bytes / 2)
		return;
	for (unsigned i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_LOAD && object->dlpi_phdr[i].p_flags & PF_X) {
			cuf_modules_note(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
			return;
		}
}

static int see_object(struct dl_phdr_info *object, size_t bytes, void *context)
{
	struct private_search *search = context;
	struct cuf_allocator allocator = { .bias = object->dlpi_addr, .dynamic = dynamic_of(object) };
	const struct family *family;
	note_object(object);
	if (search->found == PRIVATE_MAX || !allocator.dynamic || allocator.dynamic == behind.map->l_ld || cuf_modules_is_self((uintptr_t)allocator.dynamic))
		return 0;
	family = family_of(&allocator, GLIBC);
	if (family) {
		tell(search->moment, family, &allocator, front && front->l_ld == allocator.dynamic ? "in_front" : "private", object->dlpi_name);
		search->found++;
	}
	return 0;
}

/* ---- when ---- */

static void tell_memory(enum cuf_moment moment)
{
	struct cuf_process_maps maps;
	CUF_TEXT(text, 1024);
	if (cuf_process_maps_read(&maps)) {
		cuf_books_add(&text, "rss_bytes", maps.rss_bytes);
		cuf_books_add(&text, "pss_bytes", maps.pss_bytes);
		cuf_books_add(&text, "swap_bytes", maps.swap_bytes);
		cuf_books_add(&text, "private_dirty_bytes", maps.private_dirty_bytes);
		cuf_books_add(&text, "heap_bytes", maps.heap_bytes);
		cuf_books_add(&text, "anonymous_bytes", maps.anonymous_bytes);
		cuf_books_add(&text, "stack_bytes", maps.stack_bytes);
		cuf_books_add(&text, "file_bytes", maps.file_bytes);
		cuf_books_add(&text, "file_private_bytes", maps.file_private_bytes);
		cuf_books_add(&text, "shared_bytes", maps.shared_bytes);
		cuf_books_add(&text, "recorder_bytes", maps.recorder_bytes);
		cuf_books_add(&text, "map_count", maps.map_count);
		cuf_books_add(&text, "whole", maps.whole);
	}
	cuf_mmap_books(&text);
	if (text.used)
		cuf_meta_text(CUF_META_MEMORY, moment, text.at, text.used);
}

static void read_all(enum cuf_moment moment)
{
	struct private_search search = { moment, 0 };
	struct cuf_allocator allocator = allocator_behind();
	const struct family *family = family_of(&allocator, FAMILIES);
	tell_memory(moment);
	tell(moment, family, &allocator, "process", behind.map->l_name);
	dl_iterate_phdr(see_object, &search);
}

void cuf_allocator_read(enum cuf_moment moment, void *frame)
{
	uint32_t self = cuf_state_pid(), seen = __atomic_load_n(&reading, __ATOMIC_RELAXED);
	uint64_t began_ns = cuf_now_ns(), ended_ns;
	int saved = errno;
	if (!*cuf_recording.path) /* in memory still: nobody will read it */
		return;
	if (!behind.map || !cuf_state_is_on() || (moment == CUF_MOMENT_INCIDENT && began_ns < __atomic_load_n(&next_ns, __ATOMIC_RELAXED)))
		return;
	if (seen == self || !__atomic_compare_exchange_n(&reading, &seen, self, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (!cuf_signal_on_stack(frame)) {
		read_all(moment);
		ended_ns = cuf_now_ns();
		spacing_ns = spacing_ns ? spacing_ns * 2 : SPACING_NS;
		if (spacing_ns < (ended_ns - began_ns) * COST_SHARE)
			spacing_ns = (ended_ns - began_ns) * COST_SHARE;
		__atomic_store_n(&next_ns, ended_ns + spacing_ns, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&reading, 0, __ATOMIC_RELEASE);
	errno = saved;
}
