/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Owns the decision "once each". What was written is remembered as a small set of hashes. A
 * collision drops a note; a full set does, too, and counts it: a coverage section of hundreds of
 * lines would help nobody.
 */
#include "interpose/hooks/loader/coverage.h"

#include <errno.h>
#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/table.h"

/* ---- once each ---- */

#define NOTES_MAX 256u
static uint64_t notes[NOTES_MAX]; /* hashes; 0: free */

static bool is_first_time(unsigned type, uint64_t number, const char *text)
{
	uint64_t hash = (type * 31u + number + 1) * 0x9E3779B97F4A7C15ull;
	for (const char *c = text; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 0x100000001B3ull;
	hash |= 1;
	for (unsigned i = 0; i < NOTES_MAX; i++) {
		uint64_t seen = 0;
		if (__atomic_compare_exchange_n(&notes[i], &seen, hash, 0, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return true;
		if (seen == hash)
			return false;
	}
	cuf_note_dropped(CUF_LOST_META);
	return false;
}

/* The recording of a forked child starts empty, so all notes are written again there. */
static void forget_notes(void)
{
	for (unsigned i = 0; i < NOTES_MAX; i++)
		__atomic_store_n(&notes[i], 0, __ATOMIC_RELAXED);
}
CUF_AT_FORK_CHILD(forget_notes);

static void note_once(unsigned type, uint64_t number, const char *text)
{
	if (text && cuf_process_is_recorded(true) && is_first_time(type, number, text))
		cuf_note(type, number, text, strlen(text));
}

/* ---- functions that are not hooked ---- */

/* Functions with these words read, or move data between live blocks. They allocate nothing. */
static const char *const quiet_words[] = {
	"Get", "Set", "Memcpy", "Memset", "MemOp", "Advise", "Prefetch", "Discard", "Attach",
	"Decompress", "TotalMem", "LogsDump", "Available", "Export", "AddDevice",
};
static const char *const memory_words[] = { "Mem", "Array", "Alloc", "Pool", "cuMulticast" };

static bool has_word(const char *name, const char *const *words, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

void cuf_coverage_unhooked(const char *name, int version)
{
	if (has_word(name, memory_words, sizeof memory_words / sizeof *memory_words) &&
	    !has_word(name, quiet_words, sizeof quiet_words / sizeof *quiet_words))
		note_once(CUF_META_UNHOOKED, (uint64_t)version, name);
}

/* ---- runtimes inside other objects ---- */

/* The program itself has no name in the loader's list. */
static void note_program(void)
{
	char path[512];
	long length = cuf_sys(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path,
			      sizeof path - 1, 0, 0);
	if (length <= 0) {
		note_once(CUF_META_STATIC_CUDART, 0, "the program itself");
		return;
	}
	path[length] = 0;
	note_once(CUF_META_STATIC_CUDART, 0, path);
}

void cuf_coverage_runtime(const void *caller)
{
	struct cuf_dso dso;
	if (!cuf_dso_at(caller, &dso) || cuf_dso_is(dso.map, "libcudart.so"))
		return;
	if (dso.map->l_name && *dso.map->l_name)
		note_once(CUF_META_STATIC_CUDART, 0, dso.map->l_name);
	else
		note_program();
}

/* ---- notes of other files ---- */

void cuf_coverage_deepbind(const char *path) { note_once(CUF_META_NOTE, CUF_NOTE_DEEPBIND, path); }
void cuf_coverage_namespace(const char *path) { note_once(CUF_META_NOTE, CUF_NOTE_DLMOPEN, path); }
void cuf_coverage_framework(const char *lines) { note_once(CUF_META_FRAMEWORK, 0, lines); }

void cuf_coverage_framework_unseen(const char *why)
{
	note_once(CUF_META_NOTE, CUF_NOTE_FRAMEWORK, why);
}
