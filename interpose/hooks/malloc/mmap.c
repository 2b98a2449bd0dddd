/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's maps, recorded with mmap=1 alone: those of files and anonymous ones, as blocks that are told from
 * malloc's by their addresses (abi/format.h, cuf_map_address). What is unmapped in part is split: the old block is freed
 * and its pieces are put back with its stack and time. A map without access is a reservation of addresses, not memory;
 * memory that such a reservation becomes by mprotect is not seen. Maps that the allocator behind us makes are not
 * recorded, because the blocks inside are. Our own come by system calls, past these hooks.
 */
#include "interpose/hooks/malloc/mmap.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "interpose/record/host.h"
#include "interpose/hooks/malloc/map_table.h"
#include "interpose/platform/options.h"
#include "interpose/record/recorder.h"
#include "interpose/platform/sys.h"
#include "interpose/hooks/malloc/allocator.h"
#include "interpose/hooks/process/process.h"
#include "interpose/hooks/loader/real.h"

#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)
#define PAGE 4096ull

enum { TAKEN_MAX = 16 }; /* maps that one call may take out and put back when it is refused */

/* The maps that a call is going to replace. */
struct taken {
	uint64_t start, end;
	unsigned count;
	struct cuf_map maps[TAKEN_MAX];
	struct cuf_host_undo undo[TAKEN_MAX];
};

static uint64_t advised_bytes, advised_count; /* pages given back while their map stayed */

static bool recording_maps(const void *caller)
{
	return __builtin_expect(cuf_options.mmap != 0, 0) && cuf_state_is_on() && !cuf_allocator_holds(caller) &&
	       cuf_process_is_recorded(CUF_HOOK_mmap);
}

static bool find_real(void *const *slot)
{
	if (!cuf_slot_load(slot) && !cuf_real_resolving())
		cuf_real_resolve();
	return cuf_slot_load(slot) != NULL;
}

/* Where libc's function is not known (yet), the kernel's is the same. */
static long raw(long result)
{
	if (!cuf_sys_failed(result))
		return result;
	errno = (int)-result;
	return -1;
}

static uint64_t page_round(uint64_t bytes) { return (bytes + PAGE - 1) & ~(PAGE - 1); }

/* Sampled mode knows whole blocks from this size on alone: a smaller map would count for many. */
static uint64_t bytes_min(void) { return cuf_options.host == CUF_HOST_SAMPLED ? CUF_SAMPLE_EXACT_BYTES : PAGE; }

/* ---- taking out and putting back ---- */

static void restore_piece(const struct cuf_host_undo *undo, struct cuf_map piece)
{
	struct cuf_host_undo part = { cuf_map_address(piece.start, piece.file) >> 3 << 19 | (undo->word0 & 0x7ffff),
		cuf_host_word1(cuf_host_stack(undo->word1), piece.end - piece.start) };
	if (undo->word0 && piece.end > piece.start && piece.end - piece.start >= bytes_min())
		cuf_host_restore(&part);
}

static void free_map(struct cuf_map map, struct cuf_host_undo *undo)
{
	*undo = (struct cuf_host_undo){ 0, 0 };
	cuf_host_record_free((void *)(uintptr_t)cuf_map_address(map.start, map.file), CUF_HOST_MUNMAP, undo);
}

/* The maps in the range end here, but for what of them lies outside it. */
static void take_out(struct taken *taken, uint64_t start, uint64_t bytes)
{
	taken->start = start;
	taken->end = start + page_round(bytes);
	do { /* of more than can be remembered the last are: a call that ends so many is not refused */
		taken->count = cuf_map_take(taken->start, taken->end, bytes_min(), taken->maps, TAKEN_MAX);
		for (unsigned i = 0; i < taken->count; i++) {
			const struct cuf_map *m = &taken->maps[i];
			free_map(*m, &taken->undo[i]);
			if (m->start < taken->start)
				restore_piece(&taken->undo[i], (struct cuf_map){ m->start, taken->start, m->file });
			if (m->end > taken->end)
				restore_piece(&taken->undo[i], (struct cuf_map){ taken->end, m->end, m->file });
		}
	} while (taken->count == TAKEN_MAX);
}

/* The call was refused: all is as before. */
static void put_back(const struct taken *taken)
{
	struct cuf_map pieces[2];
	struct cuf_host_undo undo;
	for (unsigned i = 0; i < taken->count; i++) {
		unsigned count = cuf_map_take(taken->maps[i].start, taken->maps[i].end, bytes_min(), pieces, 2);
		for (unsigned p = 0; p < count; p++)
			free_map(pieces[p], &undo);
		if (cuf_map_add(taken->maps[i]))
			cuf_host_restore(&taken->undo[i]);
	}
}

static void map_born(void *at, size_t bytes, bool file, void *frame)
{
	struct cuf_map map = { (uintptr_t)at, (uintptr_t)at + page_round(bytes), file };
	if (map.end - map.start >= bytes_min() && cuf_map_add(map))
		cuf_host_record_alloc((void *)(uintptr_t)cuf_map_address(map.start, file), map.end - map.start, CUF_HOST_MMAP, frame);
}

/* ---- mmap ---- */

struct mapping { bool recorded, replaces; struct taken taken; };

static void map_begin(struct mapping *m, void *addr, size_t bytes, int flags, const void *caller)
{
	int saved = errno;
	m->recorded = recording_maps(caller);
	m->replaces = m->recorded && flags & MAP_FIXED && bytes && !((uintptr_t)addr % PAGE);
	if (m->replaces)
		take_out(&m->taken, (uintptr_t)addr, bytes);
	errno = saved;
}

static void *map_end(struct mapping *m, void *at, size_t bytes, int prot, int flags, void *frame)
{
	int saved = errno;
	if (m->replaces && at == MAP_FAILED)
		put_back(&m->taken);
	if (m->recorded && at != MAP_FAILED && prot != PROT_NONE)
		map_born(at, bytes, !(flags & MAP_ANONYMOUS), frame);
	errno = saved;
	return at;
}

#define MAP_BODY(name) \
	struct mapping m; \
	void *at; \
	map_begin(&m, addr, bytes, flags, CALLER); \
	at = find_real((void **)&cuf_real.name) ? cuf_real.name(addr, bytes, prot, flags, fd, offset) \
						: (void *)raw(cuf_sys_mmap(addr, bytes, prot, flags, fd, (uint64_t)offset)); \
	return map_end(&m, at, bytes, prot, flags, FRAME)

void *cuf_hook_mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset) { MAP_BODY(mmap); }
void *cuf_hook_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset) { MAP_BODY(mmap64); }

int cuf_hook_munmap(void *addr, size_t bytes)
{
	struct taken taken = { .count = 0 };
	int result, saved = errno;
	if (bytes && !((uintptr_t)addr % PAGE) && recording_maps(CALLER))
		take_out(&taken, (uintptr_t)addr, bytes);
	errno = saved;
	result = find_real((void **)&cuf_real.munmap) ? cuf_real.munmap(addr, bytes) : (int)raw(cuf_sys_munmap(addr, bytes));
	if (result && taken.count) {
		saved = errno;
		put_back(&taken);
		errno = saved;
	}
	return result;
}

/* ---- mremap, madvise ---- */

static void *real_mremap(void *addr, size_t old_bytes, size_t bytes, int flags, void *fixed)
{
	if (find_real((void **)&cuf_real.mremap))
		return cuf_real.mremap(addr, old_bytes, bytes, flags, fixed);
	return (void *)raw(cuf_sys(SYS_mremap, (long)addr, (long)old_bytes, (long)bytes, flags, (long)fixed, 0));
}

/* libc's is variadic; the fifth argument is read when the flags say that it is there. What was resized belongs to who
 * resized it. A copy of a shared map (0 old bytes) and MREMAP_DONTUNMAP leave the old one where it is. */
void *cuf_hook_mremap(void *addr, size_t old_bytes, size_t bytes, int flags, void *fixed)
{
	struct taken old = { .count = 0 }, covered = { .count = 0 };
	bool recorded = !((uintptr_t)addr % PAGE) && recording_maps(CALLER), file;
	int saved = errno;
	void *at;
	if (recorded && old_bytes && !(flags & MREMAP_DONTUNMAP))
		take_out(&old, (uintptr_t)addr, old_bytes);
	if (recorded && flags & MREMAP_FIXED && bytes && !((uintptr_t)fixed % PAGE))
		take_out(&covered, (uintptr_t)fixed, bytes);
	errno = saved;
	at = real_mremap(addr, old_bytes, bytes, flags, fixed);
	saved = errno;
	if (recorded && at == MAP_FAILED) {
		put_back(&covered);
		put_back(&old);
	} else if (recorded && (old.count || flags & MREMAP_DONTUNMAP || !old_bytes)) {
		file = old.count && old.maps[0].file;
		map_born(at, bytes, file, FRAME);
	}
	errno = saved;
	return at;
}

int cuf_hook_madvise(void *addr, size_t bytes, int advice)
{
	bool gives_back = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
	int result = find_real((void **)&cuf_real.madvise) ? cuf_real.madvise(addr, bytes, advice) : (int)raw(cuf_sys_madvise(addr, bytes, advice));
	if (!result && gives_back && __builtin_expect(cuf_options.mmap != 0, 0) && !cuf_allocator_holds(CALLER)) {
		__atomic_fetch_add(&advised_bytes, bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&advised_count, 1, __ATOMIC_RELAXED);
	}
	return result;
}

static void add(struct cuf_text *text, const char *key, uint64_t value)
{
	cuf_text_add(text, key);
	cuf_text_add(text, "=");
	cuf_text_number(text, value);
	cuf_text_add(text, "\n");
}

void cuf_mmap_books(struct cuf_text *text)
{
	struct cuf_map_sums sums;
	if (!cuf_options.mmap)
		return;
	cuf_map_sum(&sums);
	add(text, "mapped_anonymous_bytes", sums.anonymous_bytes);
	add(text, "mapped_anonymous_count", sums.anonymous_count);
	add(text, "mapped_file_bytes", sums.file_bytes);
	add(text, "mapped_file_count", sums.file_count);
	add(text, "given_back_bytes", __atomic_load_n(&advised_bytes, __ATOMIC_RELAXED));
	add(text, "given_back_count", __atomic_load_n(&advised_count, __ATOMIC_RELAXED));
}
