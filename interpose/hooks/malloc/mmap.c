/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's maps: large anonymous ones and shared memory with large_maps=1, all with mmap=1.
 * They are blocks whose addresses differ from those of malloc's blocks (abi/host_blocks.h).
 *
 * Shared memory (memfd, a file of tmpfs, an anonymous shared map) counts for the process that maps
 * it while it is empty. Who maps it later finds its maker's pages there.
 *
 * A partial unmap splits a map: the old block is freed, and its pieces are restored with its stack
 * and time. A map without access is a reservation of addresses, not memory; memory that mprotect
 * makes of it later is not seen. Maps of the allocator behind us are not recorded, because the
 * blocks inside are. The recorder's maps bypass these hooks: it uses system calls.
 */
#include "interpose/hooks/malloc/mmap.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include "interpose/platform/options.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/malloc/allocator_stats.h"
#include "interpose/hooks/malloc/map_table.h"

#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)
#define PAGE 4096ull
#define LARGE_BYTES (256ull << 10)

/* Calls of the allocator behind us are recognised by their return address. */
static bool is_recording_maps(const void *caller)
{
	return __builtin_expect(cuf_options.large_maps || cuf_options.mmap ||
				cuf_options.python_objects, 1) &&
	       cuf_recorder_status().is_on && !cuf_real_allocator_holds(caller) &&
	       cuf_process_is_recorded(true);
}

/* While the real functions are searched, a map comes from that search. */
static bool find_real(void *const *slot)
{
	if (!cuf_slot_load(slot) && !cuf_real_resolving())
		cuf_real_resolve();
	return cuf_slot_load(slot) != NULL;
}

/* Converts the kernel's result to libc's. It serves where libc's function is not known yet. */
static long libc_result(long result)
{
	if (!cuf_sys_failed(result))
		return result;
	errno = (int)-result;
	return -1;
}

/* The kernel maps whole pages, and a length is rounded up. */
static uint64_t round_to_pages(uint64_t bytes) { return (bytes + PAGE - 1) & ~(PAGE - 1); }
/* The kernel refuses other addresses, so nothing is removed for them. */
static bool is_page(const void *addr) { return !((uintptr_t)addr % PAGE); }

/* In sampled mode, a smaller map would be counted as a sample that stands for many. */
static uint64_t recorded_bytes_min(void)
{
	if (!cuf_options.mmap)
		return LARGE_BYTES;
	return cuf_options.host == CUF_HOST_SAMPLED ? CUF_SAMPLE_EXACT_BYTES : PAGE;
}

/* ---- removing and restoring ---- */

enum { REMOVED_MAX = 4 };

/* The maps that a call is about to end, kept until the kernel accepts it. */
struct removed {
	uint64_t start, end;
	unsigned count;
	struct cuf_map maps[REMOVED_MAX];
	struct cuf_host_undo undo[REMOVED_MAX];
};

static uint64_t address_of(struct cuf_map map)
{
	static const uint8_t offsets[CUF_MAP_KINDS] = {
		[CUF_MAP_ANONYMOUS] = CUF_MAP_ANONYMOUS_OFFSET,
		[CUF_MAP_FILE] = CUF_MAP_FILE_OFFSET,
		[CUF_MAP_SHARED] = CUF_MAP_SHARED_OFFSET,
	};

	return map.start + offsets[map.kind];
}

/* Restores a part of a map, with the stack and time of the whole. */
static void restore_piece(const struct cuf_host_undo *undo, struct cuf_map piece)
{
	struct cuf_host_undo part;
	if (piece.end <= piece.start || piece.end - piece.start < recorded_bytes_min())
		return;
	if (piece.kind == CUF_MAP_ARENA)
		cuf_python_arena((int64_t)(piece.end - piece.start));
	if (piece.kind == CUF_MAP_ARENA || !undo->word0)
		return;
	part.word0 = address_of(piece) >> 3 << 19 | (undo->word0 & 0x7ffff);
	part.word1 = cuf_host_word1(cuf_host_stack(undo->word1), piece.end - piece.start);
	cuf_host_restore(&part);
}

/* An unknown map leaves *undo empty, and nothing is restored then. */
static void free_map(struct cuf_map map, struct cuf_host_undo *undo)
{
	*undo = (struct cuf_host_undo){ 0, 0 };
	if (map.kind == CUF_MAP_ARENA)
		cuf_python_arena((int64_t)map.start - (int64_t)map.end);
	else
		cuf_host_record_free((void *)(uintptr_t)address_of(map), CUF_HOST_MUNMAP, undo);
}

/* Ends the maps in the range. Their parts outside it stay. A call that ends more maps than can be
 * kept is not expected to fail, so only the last ones are kept. */
static void remove_range(struct removed *removed, uint64_t start, uint64_t bytes)
{
	removed->start = start;
	removed->end = start + round_to_pages(bytes);
	do {
		removed->count = cuf_map_remove(removed->start, removed->end, recorded_bytes_min(),
						removed->maps, REMOVED_MAX);
		for (unsigned i = 0; i < removed->count; i++) {
			struct cuf_map map = removed->maps[i];
			struct cuf_host_undo *undo = &removed->undo[i];
			free_map(map, undo);
			if (map.start < removed->start)
				restore_piece(undo, (struct cuf_map){ map.start, removed->start,
								      map.kind });
			if (map.end > removed->end)
				restore_piece(undo, (struct cuf_map){ removed->end, map.end,
								      map.kind });
		}
	} while (removed->count == REMOVED_MAX);
}

/* The call failed: everything is as before. */
static void restore_range(const struct removed *removed)
{
	struct cuf_map pieces[2];
	struct cuf_host_undo undo;
	for (unsigned i = 0; i < removed->count; i++) {
		struct cuf_map map = removed->maps[i];
		unsigned count = cuf_map_remove(map.start, map.end, recorded_bytes_min(), pieces,
						2);
		for (unsigned p = 0; p < count; p++)
			free_map(pieces[p], &undo);
		if (cuf_map_add(map))
			restore_piece(&removed->undo[i], map);
	}
}

/* Small maps are ignored in sampled mode, and reservations in all. */
static void record_map(void *at, size_t bytes, enum cuf_map_kind kind, void *frame)
{
	struct cuf_map map = { (uintptr_t)at, (uintptr_t)at + round_to_pages(bytes), kind };
	uint64_t map_bytes = map.end - map.start;
	if (map_bytes < recorded_bytes_min() || !cuf_map_add(map))
		return;
	if (kind == CUF_MAP_ARENA)
		cuf_python_arena((int64_t)map_bytes);
	else
		cuf_host_record_alloc((void *)(uintptr_t)address_of(map), map_bytes, CUF_HOST_MMAP,
				      frame);
}

/* ---- what kind of map it is ---- */

/* What a program asks of the kernel. */
struct request {
	size_t bytes;
	int prot, flags, fd;
	const void *caller;
};

/* True for a file of tmpfs, which is memory, of which less than half was there before. */
static bool is_new_memory_file(const struct request *request)
{
	enum { TMPFS = 0x01021994, BLOCK = 512 };
	struct statfs system;
	struct stat file;

	return !cuf_sys(SYS_fstatfs, request->fd, (long)&system, 0, 0, 0, 0) &&
	       system.f_type == TMPFS &&
	       !cuf_sys(SYS_fstat, request->fd, (long)&file, 0, 0, 0, 0) &&
	       (uint64_t)file.st_blocks * BLOCK < request->bytes / 2;
}

/*
 * false: not recorded. A map without access is a reservation, and so is one for which the kernel
 * is to set nothing aside, unless all maps are recorded.
 */
static bool kind_of(const struct request *request, enum cuf_map_kind *kind)
{
	bool is_shared = request->flags & MAP_SHARED;

	if (request->prot == PROT_NONE || request->bytes < recorded_bytes_min())
		return false;
	if (request->flags & MAP_ANONYMOUS && !is_shared &&
	    cuf_python_makes_arena(request->caller, request->bytes)) {
		*kind = CUF_MAP_ARENA;
		return true;
	}
	*kind = CUF_MAP_FILE;
	if (request->flags & MAP_ANONYMOUS)
		*kind = is_shared ? CUF_MAP_SHARED : CUF_MAP_ANONYMOUS;
	else if (is_shared && is_new_memory_file(request))
		*kind = CUF_MAP_SHARED;
	if (cuf_options.mmap)
		return true;
	return cuf_options.large_maps && *kind != CUF_MAP_FILE && !(request->flags & MAP_NORESERVE);
}

/* ---- mmap, munmap ---- */

/* What a call of mmap is going to do, decided before the real call. */
struct mapping {
	bool recorded;
	bool replaces;           /* MAP_FIXED ends what was there */
	struct removed removed;
};

/* Maps at a fixed address replace what is there, without a munmap. */
static void mapping_begin(struct mapping *mapping, void *addr, size_t bytes, int flags,
			  const void *caller)
{
	int saved = errno;
	mapping->recorded = is_recording_maps(caller);
	mapping->replaces = mapping->recorded && flags & MAP_FIXED && bytes && is_page(addr);
	if (mapping->replaces)
		remove_range(&mapping->removed, (uintptr_t)addr, bytes);
	errno = saved;
}

static void *mapping_done(struct mapping *mapping, void *at, const struct request *request,
			  void *frame)
{
	int saved = errno;
	enum cuf_map_kind kind;
	if (mapping->replaces && at == MAP_FAILED)
		restore_range(&mapping->removed);
	if (mapping->recorded && at != MAP_FAILED && kind_of(request, &kind))
		record_map(at, request->bytes, kind, frame);
	errno = saved;
	return at;
}

/* mmap and mmap64 differ only in the type of the offset. */
#define MAP_BODY(name) \
	struct mapping mapping; \
	void *at; \
	mapping_begin(&mapping, addr, bytes, flags, CALLER); \
	if (find_real((void **)&cuf_real.name)) \
		at = cuf_real.name(addr, bytes, prot, flags, fd, offset); \
	else \
		at = (void *)libc_result( \
			cuf_sys_mmap(addr, bytes, prot, flags, fd, (uint64_t)offset)); \
	return mapping_done(&mapping, at, &(struct request){ bytes, prot, flags, fd, CALLER }, \
			    FRAME)

/* Calls of the loader do not pass here: it maps objects by system calls of its own. */
void *cuf_hook_mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	MAP_BODY(mmap);
}

void *cuf_hook_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	MAP_BODY(mmap64);
}

/* Removed before the call, because another thread may get the addresses right after it. Restored
 * when the kernel refuses, for example at the limit of maps per process. */
int cuf_hook_munmap(void *addr, size_t bytes)
{
	struct removed removed = { .count = 0 };
	int result, saved = errno;
	if (bytes && is_page(addr) && is_recording_maps(CALLER))
		remove_range(&removed, (uintptr_t)addr, bytes);
	errno = saved;
	if (find_real((void **)&cuf_real.munmap))
		result = cuf_real.munmap(addr, bytes);
	else
		result = (int)libc_result(cuf_sys_munmap(addr, bytes));
	if (result && removed.count) {
		saved = errno;
		restore_range(&removed);
		errno = saved;
	}
	return result;
}

/* ---- mremap ---- */

/* Passes the fifth argument always; the kernel ignores it without its flag. */
static void *real_mremap(void *addr, size_t old_bytes, size_t bytes, int flags, void *fixed)
{
	if (find_real((void **)&cuf_real.mremap))
		return cuf_real.mremap(addr, old_bytes, bytes, flags, fixed);
	return (void *)libc_result(cuf_sys(SYS_mremap, (long)addr, (long)old_bytes, (long)bytes,
					   flags, (long)fixed, 0));
}

/*
 * libc's mremap is variadic. The fifth argument is read when the flags state that it is there. The
 * resized map is attributed to the caller of mremap. A copy of a shared map (0 old bytes) and
 * MREMAP_DONTUNMAP leave the old map where it is. Order: both ranges are removed before the call.
 * After a failure the covered range is restored first, then the old map.
 */
void *cuf_hook_mremap(void *addr, size_t old_bytes, size_t bytes, int flags, void *fixed)
{
	struct removed old = { .count = 0 }, covered = { .count = 0 };
	bool recorded = is_page(addr) && is_recording_maps(CALLER);
	bool old_stays = flags & MREMAP_DONTUNMAP || !old_bytes;
	int saved = errno;
	void *at;
	if (recorded && !old_stays)
		remove_range(&old, (uintptr_t)addr, old_bytes);
	if (recorded && flags & MREMAP_FIXED && bytes && is_page(fixed))
		remove_range(&covered, (uintptr_t)fixed, bytes);
	errno = saved;
	at = real_mremap(addr, old_bytes, bytes, flags, fixed);
	saved = errno;
	if (recorded && at == MAP_FAILED) {
		restore_range(&covered);
		restore_range(&old);
	} else if (recorded && (old.count || old_stays)) {
		record_map(at, bytes, old.count ? old.maps[0].kind : CUF_MAP_ANONYMOUS, FRAME);
	}
	errno = saved;
	return at;
}

/* ---- madvise, statistics ---- */

static uint64_t advised_bytes, advised_count; /* pages released while their map stayed */

/* Released pages stay part of their map, so only sums are kept. */
int cuf_hook_madvise(void *addr, size_t bytes, int advice)
{
	bool releases = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
	int result;
	if (find_real((void **)&cuf_real.madvise))
		result = cuf_real.madvise(addr, bytes, advice);
	else
		result = (int)libc_result(cuf_sys_madvise(addr, bytes, advice));
	if (!result && releases && is_recording_maps(CALLER)) {
		__atomic_fetch_add(&advised_bytes, bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&advised_count, 1, __ATOMIC_RELAXED);
	}
	return result;
}

/* Key names are older than the words of today: given_back is what madvise released. */
void cuf_mmap_stats(struct cuf_text *text)
{
	struct cuf_map_sums sums;
	if (!cuf_options.mmap && !cuf_options.large_maps)
		return;
	cuf_map_sum(&sums);
	cuf_stats_add(text, "mapped_anonymous_bytes", sums.bytes[CUF_MAP_ANONYMOUS]);
	cuf_stats_add(text, "mapped_anonymous_count", sums.count[CUF_MAP_ANONYMOUS]);
	cuf_stats_add(text, "mapped_file_bytes", sums.bytes[CUF_MAP_FILE]);
	cuf_stats_add(text, "mapped_file_count", sums.count[CUF_MAP_FILE]);
	cuf_stats_add(text, "mapped_shared_bytes", sums.bytes[CUF_MAP_SHARED]);
	cuf_stats_add(text, "mapped_shared_count", sums.count[CUF_MAP_SHARED]);
	cuf_stats_add(text, "python_arena_bytes", sums.bytes[CUF_MAP_ARENA]);
	cuf_stats_add(text, "python_arena_count", sums.count[CUF_MAP_ARENA]);
	cuf_stats_add(text, "given_back_bytes", __atomic_load_n(&advised_bytes, __ATOMIC_RELAXED));
	cuf_stats_add(text, "given_back_count", __atomic_load_n(&advised_count, __ATOMIC_RELAXED));
}
