/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family. libc's contract holds to the letter: the real function decides, and its errno
 * and pointer are returned. A free is recorded before the real call, because another thread may get
 * the address right after it. An allocation is recorded after the real call.
 *
 * Some functions of libc call others of the family through the names that we export (reallocarray
 * calls realloc). They would be recorded twice, so they are assembled from their parts here.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/table.h"
#include "interpose/hooks/malloc/allocator.h"
#include "interpose/hooks/malloc/boot_alloc.h"

#define FRAME __builtin_frame_address(0)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- before the real functions are known ---- */

/* Returns true when the slot can be called now. */
static __attribute__((noinline)) bool find_real(void *const *slot)
{
	if (!cuf_real_resolving())
		cuf_real_resolve();
	return cuf_slot_load(slot) != NULL;
}

#define HAVE(name) \
	(__builtin_expect(cuf_real.name != NULL, 1) || find_real((void **)&cuf_real.name))

/* NULL when the arena is full; errno is left to the caller, because posix_memalign returns its
 * error. */
static void *boot_block(size_t bytes, size_t alignment)
{
	void *p = cuf_boot_alloc(bytes, alignment);
	if (p)
		cuf_host_keep(p); /* its free must reach our hook, too */
	return p;
}

static void *boot_malloc(size_t bytes, size_t alignment)
{
	void *p = boot_block(bytes, alignment);
	if (!p)
		errno = ENOMEM;
	return p;
}

static void *boot_calloc(size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return boot_malloc(all, 16); /* the arena is zeroed and never reused */
}

/* 0 is none. */
static bool is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

/* libc returns EINVAL for a wrong alignment. */
static void *boot_aligned(size_t alignment, size_t bytes)
{
	if (is_power_of_two(alignment))
		return boot_malloc(bytes, alignment);
	errno = EINVAL;
	return NULL;
}

/* ---- allocations ---- */

/*
 * Most calls need no record, and that is decided before the real call. Then the hook jumps to the
 * real function (`unrecorded`) and needs no stack frame. The other calls go through a RECORDED
 * function. It is jumped to as well, so its caller is the program. Nothing is skipped before the
 * real functions are known, and neither is the free of a block of the boot arena: see
 * record/host.h.
 */
#define RECORDED static __attribute__((noinline))

/* The hook under which a refused request is recorded, by enum cuf_host_op. */
static const uint16_t hook_of_op[] = {
	[CUF_HOST_ALLOC] = CUF_HOOK_malloc,
	[CUF_HOST_ZEROED] = CUF_HOOK_calloc,
	[CUF_HOST_RESIZED] = CUF_HOOK_realloc,
	[CUF_HOST_ALIGNED] = CUF_HOOK_posix_memalign,
};

static void record_refusal(size_t bytes, unsigned op, int error, void *frame)
{
	cuf_allocator_refused(bytes, hook_of_op[op], error, frame);
}

/* ---- where no record is needed ---- */

static void *watched_malloc(size_t bytes)
{
	void *p = cuf_real.malloc(bytes);
	if (unlikely(!p))
		record_refusal(bytes, CUF_HOST_ALLOC, errno, FRAME);
	return p;
}

/* SIZE_MAX stands for a product that overflows. */
static size_t product_of(size_t count, size_t bytes)
{
	size_t all;
	return __builtin_mul_overflow(count, bytes, &all) ? SIZE_MAX : all;
}

static void *watched_calloc(size_t count, size_t bytes)
{
	void *p = cuf_real.calloc(count, bytes);
	if (unlikely(!p))
		record_refusal(product_of(count, bytes), CUF_HOST_ZEROED, errno, FRAME);
	return p;
}

/* With 0 bytes glibc frees the block and returns NULL, which is no refusal. */
static void *watched_realloc(void *old, size_t bytes)
{
	void *p = cuf_real.realloc(old, bytes);
	if (unlikely(!p && bytes))
		record_refusal(bytes, old ? CUF_HOST_RESIZED : CUF_HOST_ALLOC, errno, FRAME);
	return p;
}

/*
 * What a call is passed to that needs no record. The real functions, where nothing limits them: no
 * hook pays for a refusal that cannot be. Under a limit of addresses or private memory a small
 * request may be refused, too, so there, and until that is known, somebody looks at what comes
 * back.
 */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
} unrecorded = { watched_malloc, watched_calloc, watched_realloc };
static bool is_chosen; /* once; and again as memory grows: programs set limits of their own */

static __attribute__((noinline, cold)) void choose_unrecorded(void)
{
	bool watches = cuf_host_may_refuse();
	__atomic_store_n(&unrecorded.malloc, watches ? watched_malloc : cuf_real.malloc,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&unrecorded.calloc, watches ? watched_calloc : cuf_real.calloc,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&unrecorded.realloc, watches ? watched_realloc : cuf_real.realloc,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&is_chosen, true, __ATOMIC_RELAXED);
}

/* ---- where one is ---- */

/* Here the thread is outside of its allocator. */
static inline void look_at_books(void *frame)
{
	bool is_due = cuf_live_change_is_due();
	if (unlikely(is_due || !__atomic_load_n(&is_chosen, __ATOMIC_RELAXED)))
		choose_unrecorded();
	if (unlikely(is_due))
		cuf_allocator_read_running(frame);
}

/* After the real call, when nothing was decided before it. */
static inline void *record_alloc(void *p, size_t bytes, unsigned op, void *frame)
{
	if (__builtin_expect(p != NULL, 1)) {
		cuf_host_alloc(p, bytes, op, frame);
		look_at_books(frame);
	} else {
		record_refusal(bytes, op, errno, frame);
	}
	return p;
}

/* After the real call of an allocation that was not skipped before it. */
static inline void *record_chosen(void *p, size_t bytes, unsigned op, void *frame)
{
	if (__builtin_expect(p != NULL, 1)) {
		cuf_host_record_alloc(p, bytes, op, frame);
		look_at_books(frame);
	} else {
		cuf_host_cancel(bytes);
		record_refusal(bytes, op, errno, frame);
	}
	return p;
}

/* The stack of the block starts at the caller of malloc, since this function was jumped to. */
RECORDED void *malloc_recorded(size_t bytes)
{
	if (unlikely(!HAVE(malloc)))
		return boot_malloc(bytes, 16);
	cuf_python_objects_poll();
	return record_chosen(cuf_real.malloc(bytes), bytes, CUF_HOST_ALLOC, FRAME);
}

/* Six instructions when nothing is recorded. */
void *cuf_hook_malloc(size_t bytes)
{
	return cuf_host_skips_alloc(bytes) ? unrecorded.malloc(bytes) : malloc_recorded(bytes);
}

/* An overflowing product is passed on to the real function, which refuses it. */
RECORDED void *calloc_recorded(size_t count, size_t bytes)
{
	if (unlikely(!HAVE(calloc)))
		return boot_calloc(count, bytes);
	return record_chosen(cuf_real.calloc(count, bytes), product_of(count, bytes),
			     CUF_HOST_ZEROED, FRAME);
}

/* Zeroed blocks are recorded with the product, which is what the program requested. */
void *cuf_hook_calloc(size_t count, size_t bytes)
{
	/* a product that overflows is refused by the real function, whether it is skipped or not */
	return cuf_host_skips_alloc(count * bytes) ? unrecorded.calloc(count, bytes)
						   : calloc_recorded(count, bytes);
}

/* Unlike the others of the family it returns the error and leaves errno as it is. */
static int boot_posix_memalign(void **out, size_t alignment, size_t bytes)
{
	void *p;
	if (!is_power_of_two(alignment) || alignment % sizeof(void *))
		return EINVAL;
	p = boot_block(bytes, alignment);
	if (!p)
		return ENOMEM;
	*out = p;
	return 0;
}

/* The aligned functions are rare, so they decide after the real call, and need no jump. */
int cuf_hook_posix_memalign(void **out, size_t alignment, size_t bytes)
{
	int result;
	if (unlikely(!HAVE(posix_memalign)))
		return boot_posix_memalign(out, alignment, bytes);
	result = cuf_real.posix_memalign(out, alignment, bytes);
	if (!result)
		record_alloc(*out, bytes, CUF_HOST_ALIGNED, FRAME);
	else
		record_refusal(bytes, CUF_HOST_ALIGNED, result, FRAME);
	return result;
}

/* Alignments are not checked here. The real function decides, and a refusal for EINVAL is no
 * failure for lack of memory. */
void *cuf_hook_aligned_alloc(size_t alignment, size_t bytes)
{
	if (unlikely(!HAVE(aligned_alloc)))
		return boot_aligned(alignment, bytes);
	return record_alloc(cuf_real.aligned_alloc(alignment, bytes), bytes, CUF_HOST_ALIGNED,
			    FRAME);
}

/* Obsolete. glibc accepts any alignment and rounds it up. */
void *cuf_hook_memalign(size_t alignment, size_t bytes)
{
	if (unlikely(!HAVE(memalign)))
		return boot_aligned(alignment, bytes);
	return record_alloc(cuf_real.memalign(alignment, bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

/* Obsolete, and still used. */
void *cuf_hook_valloc(size_t bytes)
{
	if (unlikely(!HAVE(valloc)))
		return boot_aligned((size_t)sysconf(_SC_PAGESIZE), bytes);
	return record_alloc(cuf_real.valloc(bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

void *cuf_hook_pvalloc(size_t bytes)
{
	if (unlikely(!HAVE(pvalloc)))
		return boot_aligned((size_t)sysconf(_SC_PAGESIZE), bytes);
	return record_alloc(cuf_real.pvalloc(bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

/* ---- frees ---- */

/* A block of the boot arena is never released: its memory is not reused. */
RECORDED void free_recorded(void *p)
{
	struct cuf_host_undo undo;
	if (cuf_boot_owns(p) || !HAVE(free))
		return;
	cuf_host_record_free(p, CUF_HOST_FREE, &undo);
	look_at_books(FRAME);
	cuf_real.free(p);
}

/* Nearly all frees take the first branch: ten instructions. */
static inline void free_block(void *p)
{
	if (cuf_host_skips_free(p))
		cuf_real.free(p);
	else
		free_recorded(p);
}

void cuf_hook_free(void *p) { free_block(p); }

/* The block belongs to the first definition of free in the process. An allocator in front of us may
 * define free but not these names. */
static void free_by_owner(void *p)
{
	if (HAVE(free) && cuf_front.free)
		cuf_front.free(p);
	else
		free_block(p);
}

/* Old and new spellings of free, present whether libc has them or not. The sizes are hints. */
void cuf_hook_cfree(void *p) { free_by_owner(p); }
void cuf_hook_free_sized(void *p, size_t bytes) { free_by_owner(p); }
void cuf_hook_free_aligned_sized(void *p, size_t alignment, size_t bytes) { free_by_owner(p); }

/* Interposed for blocks of the boot arena, which the real function must not see. */
size_t cuf_hook_malloc_usable_size(void *p)
{
	if (unlikely(cuf_boot_owns(p)))
		return cuf_boot_size(p);
	if (!p || !HAVE(malloc_usable_size))
		return 0;
	return cuf_real.malloc_usable_size(p);
}

/* ---- resizing ---- */

/* A block of the boot arena moves out of it as soon as malloc is known. */
static void *resize_boot(void *p, size_t bytes, void *frame)
{
	size_t old = cuf_boot_size(p);
	void *moved;
	if (HAVE(malloc))
		moved = record_alloc(cuf_real.malloc(bytes), bytes, CUF_HOST_RESIZED, frame);
	else
		moved = boot_malloc(bytes, 16);
	if (!moved)
		return NULL;
	return memcpy(moved, p, old < bytes ? old : bytes);
}

/*
 * Recorded as a free before the real call and an allocation after it. A refused resize leaves the
 * old block as it was. With 0 bytes glibc frees the block and returns NULL, which is no refusal.
 * skips: what cuf_host_skips_alloc returned.
 */
RECORDED void *resize_recorded(void *p, size_t bytes, bool skips)
{
	struct cuf_host_undo undo = { 0, 0 };
	unsigned op = p ? CUF_HOST_RESIZED : CUF_HOST_ALLOC;
	void *moved;
	if (unlikely(cuf_boot_owns(p)))
		return resize_boot(p, bytes, FRAME);
	if (unlikely(!HAVE(realloc)))
		return p ? NULL : boot_malloc(bytes, 16);
	if (p)
		cuf_host_free(p, CUF_HOST_FREE_RESIZE, &undo);
	moved = cuf_real.realloc(p, bytes);
	if (moved && !skips) {
		cuf_host_record_alloc(moved, bytes, op, FRAME);
		look_at_books(FRAME);
	}
	if (!moved && bytes)
		cuf_host_restore(&undo);
	if (!moved && !skips)
		cuf_host_cancel(bytes);
	if (!moved && bytes)
		record_refusal(bytes, op, errno, FRAME);
	return moved;
}

/* Both halves of a realloc must be skippable: the free of the old block and the new one. */
static inline void *resize(void *p, size_t bytes)
{
	bool skips = cuf_host_skips_alloc(bytes);
	if (__builtin_expect(skips, 1) && cuf_host_skips_free(p))
		return unrecorded.realloc(p, bytes);
	return resize_recorded(p, bytes, skips);
}

void *cuf_hook_realloc(void *p, size_t bytes) { return resize(p, bytes); }

/* Assembled here, since libc's function would call the exported realloc and be recorded twice. */
void *cuf_hook_reallocarray(void *p, size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	if (HAVE(realloc) && cuf_front.realloc) /* libc's function, too, calls the first realloc */
		return cuf_front.realloc(p, all);
	return resize(p, all);
}
