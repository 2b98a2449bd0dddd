/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family. The contract is libc's to the letter: the real function decides, its errno and its pointer are
 * handed on. Frees are recorded before the real call, because another thread may be given the address right after;
 * allocations after it.
 *
 * Some functions of libc call others of the family through the names that we export (reallocarray calls realloc), and
 * would be recorded twice: those are made of their parts here.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "interpose/hooks/malloc/boot_alloc.h"
#include "interpose/record/host.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/table.h"

#define FRAME __builtin_frame_address(0)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- before the real functions are known ---- */

/* True when slot can be called now. */
static __attribute__((noinline)) bool find_real(void *const *slot)
{
	if (!cuf_real_resolving())
		cuf_real_resolve();
	return cuf_slot_load(slot) != NULL;
}

#define HAVE(name) (__builtin_expect(cuf_real.name != NULL, 1) || find_real((void **)&cuf_real.name))

static void *boot_block(size_t bytes, size_t alignment)
{
	void *p = cuf_boot_alloc(bytes, alignment);
	if (p)
		cuf_host_keep(p); /* its free is ours, too */
	return p;
}

static void *boot(size_t bytes, size_t alignment)
{
	void *p = boot_block(bytes, alignment);
	if (!p)
		errno = ENOMEM;
	return p;
}

static void *boot_array(size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return boot(all, 16); /* the arena is zeroed and never used twice */
}

static bool is_power_of_two(size_t n) { return n && !(n & (n - 1)); }

/* ---- allocations ---- */

/*
 * Most calls need no record, and that is known before the real call: then the hook is a jump to it, and costs no frame.
 * The others go through a function of their own, whose caller is the program, since it is jumped to. Nothing is skipped
 * before the real functions are known, nor is the free of a block of the arena: see host.h.
 */
#define RECORDED static __attribute__((noinline))

/* What a refused request of this sort was, by enum cuf_host_op. */
static const uint16_t hook_of[] = {
	[CUF_HOST_ALLOC] = CUF_HOOK_malloc, [CUF_HOST_ZEROED] = CUF_HOOK_calloc, [CUF_HOST_RESIZED] = CUF_HOOK_realloc, [CUF_HOST_ALIGNED] = CUF_HOOK_posix_memalign,
};

static __attribute__((noinline, cold)) void refused(size_t bytes, unsigned op, int error, void *frame)
{
	if (error == ENOMEM)
		cuf_host_refused(bytes, hook_of[op], frame);
}

static inline void *born(void *p, size_t bytes, unsigned op, void *frame)
{
	if (__builtin_expect(p != NULL, 1))
		cuf_host_alloc(p, bytes, op, frame);
	else
		refused(bytes, op, errno, frame);
	return p;
}

/* The birth was not skipped. */
static inline void *recorded(void *p, size_t bytes, unsigned op, void *frame)
{
	if (__builtin_expect(p != NULL, 1)) {
		cuf_host_record_alloc(p, bytes, op, frame);
	} else {
		cuf_host_cancel(bytes);
		refused(bytes, op, errno, frame);
	}
	return p;
}

RECORDED void *malloc_recorded(size_t bytes)
{
	if (unlikely(!HAVE(malloc)))
		return boot(bytes, 16);
	return recorded(cuf_real.malloc(bytes), bytes, CUF_HOST_ALLOC, FRAME);
}

void *cuf_hook_malloc(size_t bytes)
{
	return cuf_host_skips_alloc(bytes) ? cuf_real.malloc(bytes) : malloc_recorded(bytes);
}

RECORDED void *calloc_recorded(size_t count, size_t bytes)
{
	size_t all;
	if (unlikely(!HAVE(calloc)))
		return boot_array(count, bytes);
	if (__builtin_mul_overflow(count, bytes, &all))
		all = SIZE_MAX;
	return recorded(cuf_real.calloc(count, bytes), all, CUF_HOST_ZEROED, FRAME);
}

void *cuf_hook_calloc(size_t count, size_t bytes)
{
	/* too much: refused, and skipped or not */
	return cuf_host_skips_alloc(count * bytes) ? cuf_real.calloc(count, bytes) : calloc_recorded(count, bytes);
}

int cuf_hook_posix_memalign(void **out, size_t alignment, size_t bytes)
{
	int result;
	if (unlikely(!HAVE(posix_memalign))) {
		if (!is_power_of_two(alignment) || alignment % sizeof(void *))
			return EINVAL;
		void *p = boot_block(bytes, alignment);
		if (!p)
			return ENOMEM;
		*out = p;
		return 0;
	}
	result = cuf_real.posix_memalign(out, alignment, bytes);
	if (!result)
		born(*out, bytes, CUF_HOST_ALIGNED, FRAME);
	else
		refused(bytes, CUF_HOST_ALIGNED, result, FRAME);
	return result;
}

static void *boot_aligned(size_t alignment, size_t bytes)
{
	if (is_power_of_two(alignment))
		return boot(bytes, alignment);
	errno = EINVAL;
	return NULL;
}

void *cuf_hook_aligned_alloc(size_t alignment, size_t bytes)
{
	if (unlikely(!HAVE(aligned_alloc)))
		return boot_aligned(alignment, bytes);
	return born(cuf_real.aligned_alloc(alignment, bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

void *cuf_hook_memalign(size_t alignment, size_t bytes)
{
	if (unlikely(!HAVE(memalign)))
		return boot_aligned(alignment, bytes);
	return born(cuf_real.memalign(alignment, bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

void *cuf_hook_valloc(size_t bytes)
{
	if (unlikely(!HAVE(valloc)))
		return boot_aligned((size_t)sysconf(_SC_PAGESIZE), bytes);
	return born(cuf_real.valloc(bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

void *cuf_hook_pvalloc(size_t bytes)
{
	if (unlikely(!HAVE(pvalloc)))
		return boot_aligned((size_t)sysconf(_SC_PAGESIZE), bytes);
	return born(cuf_real.pvalloc(bytes), bytes, CUF_HOST_ALIGNED, FRAME);
}

/* ---- frees ---- */

RECORDED void free_recorded(void *p)
{
	struct cuf_host_undo undo;
	if (cuf_boot_owns(p) || !HAVE(free))
		return;
	cuf_host_record_free(p, CUF_HOST_FREE, &undo);
	cuf_real.free(p);
}

static inline void release(void *p)
{
	if (cuf_host_skips_free(p))
		cuf_real.free(p);
	else
		free_recorded(p);
}

void cuf_hook_free(void *p) { release(p); }

/* The block belongs to whoever defines free first. An allocator in front of us may define free only. */
static void free_by_its_owner(void *block)
{
	if (HAVE(free) && cuf_front.free)
		cuf_front.free(block);
	else
		release(block);
}

/* Old and new spellings of free, present whether libc has them or not. The sizes are hints. */
void cuf_hook_cfree(void *block) { free_by_its_owner(block); }
void cuf_hook_free_sized(void *block, size_t bytes) { free_by_its_owner(block); }
void cuf_hook_free_aligned_sized(void *block, size_t alignment, size_t bytes) { free_by_its_owner(block); }

size_t cuf_hook_malloc_usable_size(void *p)
{
	if (unlikely(cuf_boot_owns(p)))
		return cuf_boot_size(p);
	return p && HAVE(malloc_usable_size) ? cuf_real.malloc_usable_size(p) : 0;
}

/* ---- resizing ---- */

/* A block of the arena moves out of it at the first chance. */
static void *resize_boot(void *p, size_t bytes, void *frame)
{
	size_t old = cuf_boot_size(p);
	void *moved = HAVE(malloc) ? born(cuf_real.malloc(bytes), bytes, CUF_HOST_RESIZED, frame) : boot(bytes, 16);
	return moved ? memcpy(moved, p, old < bytes ? old : bytes) : NULL;
}

/* Free before, alloc after; a refused resize leaves the old block as it was. With 0 bytes glibc frees the block and
 * returns NULL: no refusal. skips: what cuf_host_skips_alloc said. */
RECORDED void *resize_recorded(void *p, size_t bytes, bool skips)
{
	struct cuf_host_undo undo = { 0, 0 };
	void *moved;
	if (unlikely(cuf_boot_owns(p)))
		return resize_boot(p, bytes, FRAME);
	if (unlikely(!HAVE(realloc)))
		return p ? NULL : boot(bytes, 16);
	if (p)
		cuf_host_free(p, CUF_HOST_FREE_RESIZE, &undo);
	moved = cuf_real.realloc(p, bytes);
	if (moved && !skips)
		cuf_host_record_alloc(moved, bytes, p ? CUF_HOST_RESIZED : CUF_HOST_ALLOC, FRAME);
	if (!moved && bytes)
		cuf_host_restore(&undo);
	if (!moved && !skips) {
		cuf_host_cancel(bytes);
		refused(bytes, p ? CUF_HOST_RESIZED : CUF_HOST_ALLOC, errno, FRAME);
	}
	return moved;
}

static inline void *resize(void *p, size_t bytes)
{
	bool skips = cuf_host_skips_alloc(bytes);
	return __builtin_expect(skips, 1) && cuf_host_skips_free(p) ? cuf_real.realloc(p, bytes) : resize_recorded(p, bytes, skips);
}

void *cuf_hook_realloc(void *p, size_t bytes) { return resize(p, bytes); }

void *cuf_hook_reallocarray(void *p, size_t count, size_t bytes)
{
	size_t all;
	if (__builtin_mul_overflow(count, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	if (HAVE(realloc) && cuf_front.realloc) /* libc's reallocarray, too, calls the first realloc */
		return cuf_front.realloc(p, all);
	return resize(p, all);
}
