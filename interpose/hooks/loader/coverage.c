/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns "once each" and "looks like an allocator". The memory of what was said is a small set of hashes: a collision
 * leaves a note out, a full set leaves the rest out; a coverage section of hundreds of lines would help nobody.
 */
#include "interpose/hooks/loader/coverage.h"

#include <errno.h>
#include <string.h>
#include "interpose/record/recorder.h"
#include "interpose/platform/sys.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/process/process.h"
#include "interpose/hooks/loader/table.h"

#define SAID_MAX 256u
static uint64_t said[SAID_MAX];

static bool first_time(unsigned type, uint64_t number, const char *text)
{
	uint64_t hash = (type * 31u + number + 1) * 0x9E3779B97F4A7C15ull;
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001B3ull;
	hash |= 1;
	for (unsigned i = 0; i < SAID_MAX; i++) {
		uint64_t seen = 0;
		if (__atomic_compare_exchange_n(&said[i], &seen, hash, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
		if (seen == hash)
			return false;
	}
	return false;
}

/* A forked child's recording begins empty: all is said again there. */
static void forget_in_child(void)
{
	static uint32_t said_in;
	uint32_t pid = cuf_state_pid();
	if (__atomic_exchange_n(&said_in, pid, __ATOMIC_ACQ_REL) == pid)
		return;
	for (unsigned i = 0; i < SAID_MAX; i++)
		__atomic_store_n(&said[i], 0, __ATOMIC_RELAXED);
}

static void say_once(unsigned type, uint64_t number, const char *text)
{
	if (!text || !cuf_process_is_recorded(CUF_HOOK_dlsym))
		return;
	forget_in_child();
	if (first_time(type, number, text))
		cuf_meta_text(type, number, text, strlen(text));
}

/* Read-only or moving data between live blocks: names with these words take or give no memory. */
static const char *const quiet_words[] = { "Get", "Set", "Memcpy", "Memset", "MemOp", "Advise", "Prefetch", "Discard", "Attach",
	"Decompress", "TotalMem", "LogsDump", "Available", "Export", "AddDevice" };
static const char *const memory_words[] = { "Mem", "Array", "Alloc", "Pool", "cuMulticast" };

static bool has_word(const char *name, const char *const *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

void cuf_coverage_resolved(const char *name, int version)
{
	if (has_word(name, memory_words, sizeof memory_words / sizeof *memory_words) &&
	    !has_word(name, quiet_words, sizeof quiet_words / sizeof *quiet_words))
		say_once(CUF_META_UNHOOKED, (uint64_t)version, name);
}

void cuf_coverage_runtime(const void *caller)
{
	struct cuf_dso dso;
	char path[512];
	long length;
	if (!cuf_dso_at(caller, &dso) || cuf_dso_is(dso.map, "libcudart.so"))
		return;
	if (dso.map->l_name && *dso.map->l_name) {
		say_once(CUF_META_STATIC_CUDART, 0, dso.map->l_name);
		return;
	}
	/* the program itself has no name in the loader's list */
	length = cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof path - 1, 0, 0);
	path[length > 0 ? length : 0] = 0;
	say_once(CUF_META_STATIC_CUDART, 0, length > 0 ? path : "the program itself");
}

void cuf_coverage_deepbind(const char *path) { say_once(CUF_META_NOTE, CUF_NOTE_DEEPBIND, path); }
void cuf_coverage_namespace(const char *path) { say_once(CUF_META_NOTE, CUF_NOTE_DLMOPEN, path); }
void cuf_coverage_framework(const char *lines) { say_once(CUF_META_FRAMEWORK, 0, lines); }
void cuf_coverage_blind(const char *why) { say_once(CUF_META_NOTE, CUF_NOTE_FRAMEWORK, why); }
