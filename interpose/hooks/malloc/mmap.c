/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's maps: large anonymous ones and shared memory with large_maps=1, all with mmap=1.
 * They are blocks whose addresses differ from those of malloc's blocks (abi/host_blocks.h).
 *
 * Shared memory (memfd, a file of tmpfs, an anonymous shared map) counts for the process that maps
 * it while it is empty, and a segment of System V for its maker. Who maps it later finds its
 * maker's pages there. A process that maps it twice has it once (shared_views.c).
 *
 * A partial unmap splits a map: the old block is freed, and its pieces are restored with its stack
 * and time. A map without access is a reservation of addresses, not memory, until mprotect or
 * another map makes memory of its parts (map_blocks.h). Maps of the allocator behind us are not
 * recorded, because the blocks inside are. The recorder's maps bypass these hooks: it uses system
 * calls.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include "interpose/platform/options.h"
#include "interpose/platform/page.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/loader/table.h"
#include "interpose/hooks/malloc/allocator.h"
#include "interpose/hooks/malloc/map_blocks.h"

#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)

/* Calls of the allocator behind us are recognised by their return address. */
static bool is_recording_maps(const void *caller)
{
	return cuf_options.host != CUF_HOST_OFF &&
	       __builtin_expect(cuf_options.large_maps || cuf_options.mmap ||
				cuf_options.python_objects, 1) &&
	       !cuf_real_allocator_holds(caller) &&
	       (cuf_thread_is_attached() ||
		(cuf_recorder_status().is_on && cuf_process_is_recorded(true)));
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
static uint64_t end_of(const void *start, uint64_t bytes)
{
	const uint64_t page = cuf_page_bytes();

	return (uintptr_t)start + ((bytes + page - 1) & ~(page - 1));
}

/* The kernel refuses other addresses, so nothing is removed for them. */
static bool is_page(const void *addr) { return !((uintptr_t)addr % cuf_page_bytes()); }

/* ---- what kind of map it is ---- */

/* What a program asks of the kernel. */
struct request {
	size_t bytes;
	int prot, flags, fd;
	bool is_segment;         /* of System V: fd is its id */
	bool is_new;             /* this process made it, or nobody has it attached */
	uint64_t offset;
	const void *caller;
};

#define SYSTEM_V (UINT64_MAX - 1) /* the device of its segments; no file system has it */

/* What there is to know of a map. memory.inode is 0 unless it is shared memory. */
struct mapped {
	enum cuf_map_kind kind;
	struct cuf_shared_memory memory;
};

static void look_at_segment(const struct request *request, struct mapped *mapped)
{
	mapped->memory = (struct cuf_shared_memory){ .device = SYSTEM_V,
						     .inode = (uint64_t)request->fd + 1 };
	if (request->is_new || cuf_views_have(mapped->memory, request->bytes))
		mapped->kind = CUF_MAP_SHARED;
}

/*
 * Of a file of tmpfs, which is memory. It is new where less than half of it was there before, and
 * otherwise a view, where this process has mapped it already. Not inlined: its stack is free again
 * before the recorder needs some.
 */
static __attribute__((noinline)) void look_at_shared(const struct request *request,
						     struct mapped *mapped)
{
	enum { TMPFS = 0x01021994, BLOCK = 512 };
	struct statfs system;
	struct stat file;

	if (request->is_segment) {
		look_at_segment(request, mapped);
	} else if (request->flags & MAP_ANONYMOUS) {
		*mapped = (struct mapped){ CUF_MAP_SHARED, cuf_views_nameless() };
	} else if (!cuf_sys(SYS_fstatfs, request->fd, (long)&system, 0, 0, 0, 0) &&
		   system.f_type == TMPFS &&
		   !cuf_sys(SYS_fstat, request->fd, (long)&file, 0, 0, 0, 0)) {
		mapped->memory = (struct cuf_shared_memory){ file.st_dev, file.st_ino,
							     request->offset };
		if ((uint64_t)file.st_blocks * BLOCK < request->bytes / 2 ||
		    cuf_views_have(mapped->memory, request->bytes))
			mapped->kind = CUF_MAP_SHARED;
	}
}

/*
 * Private memory without a file. Without access it is a reservation; so it is, unless all maps are
 * recorded, where the kernel is to set nothing aside.
 */
static bool kind_of_anonymous(const struct request *request, bool was_reserved,
			      enum cuf_map_kind *kind)
{
	bool is_small = request->bytes < cuf_maps_bytes_min();

	*kind = CUF_MAP_ANONYMOUS;
	if (request->prot == PROT_NONE)
		*kind = CUF_MAP_RESERVED;
	else if (is_small)
		*kind = CUF_MAP_SMALL;
	else if (cuf_python_makes_arena(request->caller, request->bytes))
		*kind = CUF_MAP_ARENA;
	if (is_small || *kind == CUF_MAP_ARENA)
		return was_reserved || !is_small;
	return *kind == CUF_MAP_RESERVED || was_reserved || cuf_options.mmap ||
	       !(request->flags & MAP_NORESERVE);
}

/* false: not followed. */
static bool look_at(const struct request *request, bool was_reserved, struct mapped *mapped)
{
	bool is_shared = request->flags & MAP_SHARED;

	*mapped = (struct mapped){ .kind = CUF_MAP_FILE };
	if (request->flags & MAP_ANONYMOUS && !is_shared)
		return kind_of_anonymous(request, was_reserved, &mapped->kind) &&
		       (mapped->kind == CUF_MAP_ARENA || cuf_options.large_maps ||
			cuf_options.mmap);
	if (request->prot == PROT_NONE || request->bytes < cuf_maps_bytes_min())
		return false;
	if (is_shared)
		look_at_shared(request, mapped);
	return cuf_options.mmap || (cuf_options.large_maps && mapped->kind == CUF_MAP_SHARED &&
				    !(request->flags & MAP_NORESERVE));
}

/* ---- mmap, munmap ---- */

/* What a call of mmap is going to do, decided before the real call. */
struct mapping {
	bool recorded;
	struct cuf_maps_removed removed;
};

/* Maps at a fixed address replace what is there, without a munmap. */
static void mapping_begin(struct mapping *mapping, void *addr, size_t bytes, int flags,
			  const void *caller)
{
	int saved = errno;
	mapping->removed.count = 0;
	mapping->removed.was_reserved = false;
	mapping->recorded = is_recording_maps(caller);
	if (mapping->recorded && flags & MAP_FIXED && bytes && is_page(addr))
		cuf_maps_remove((uintptr_t)addr, end_of(addr, bytes), &mapping->removed);
	errno = saved;
}

/*
 * A file's map is refused where addresses are limited. Many ask for huge pages, or for more
 * addresses than there are, and do well with less. Where malloc asks in vain, the refusal of malloc
 * is the incident.
 */
static bool is_for_memory(const struct request *request)
{
	return request->prot != PROT_NONE && !(request->flags & (MAP_NORESERVE | MAP_HUGETLB));
}

static void add_map(void *at, size_t bytes, const struct mapped *mapped, const void *frame)
{
	if (mapped->memory.inode)
		cuf_views_add(mapped->memory, (uintptr_t)at, end_of(at, bytes), mapped->kind,
			      frame);
	else
		cuf_maps_add((uintptr_t)at, end_of(at, bytes), mapped->kind, frame);
}

/* Not inlined: a refusal needs the stack. */
static __attribute__((noinline)) void mapping_succeeded(const struct mapping *mapping, void *at,
							const struct request *request, void *frame)
{
	struct mapped mapped;
	cuf_views_ended(&mapping->removed);
	if (look_at(request, mapping->removed.was_reserved, &mapped))
		add_map(at, request->bytes, &mapped, frame);
	else if (request->bytes >= cuf_maps_bytes_min())
		cuf_note_object((uintptr_t)request->caller); /* an allocator of its own? */
}

static void *mapping_done(struct mapping *mapping, void *at, const struct request *request,
			  void *frame)
{
	int saved = errno;
	if (!mapping->recorded)
		return at;
	if (at != MAP_FAILED) {
		mapping_succeeded(mapping, at, request, frame);
	} else {
		cuf_maps_restore(&mapping->removed);
		if (is_for_memory(request))
			cuf_allocator_refused(request->bytes,
					      request->is_segment ? CUF_HOOK_shmat : CUF_HOOK_mmap,
					      saved, frame);
	}
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
	return mapping_done( \
		&mapping, at, \
		&(struct request){ .bytes = bytes, .prot = prot, .flags = flags, .fd = fd, \
				   .offset = (uint64_t)offset, .caller = CALLER }, FRAME)

/* Calls of the loader do not pass here: it maps objects by system calls of its own. */
void *cuf_hook_mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	MAP_BODY(mmap);
}

void *cuf_hook_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	MAP_BODY(mmap64);
}

/* After the real call of munmap or mprotect. */
static int done(int result, const struct cuf_maps_removed *removed)
{
	int saved = errno;
	if (!removed->count)
		return result;
	if (result)
		cuf_maps_restore(removed);
	else
		cuf_views_ended(removed);
	errno = saved;
	return result;
}

/* Removed before the call, because another thread may get the addresses right after it. Restored
 * when the kernel refuses, for example at the limit of maps per process. */
int cuf_hook_munmap(void *addr, size_t bytes)
{
	struct cuf_maps_removed removed = { .count = 0 };
	int saved = errno;
	if (bytes && is_page(addr) && is_recording_maps(CALLER))
		cuf_maps_remove((uintptr_t)addr, end_of(addr, bytes), &removed);
	errno = saved;
	if (find_real((void **)&cuf_real.munmap))
		return done(cuf_real.munmap(addr, bytes), &removed);
	return done((int)libc_result(cuf_sys_munmap(addr, bytes)), &removed);
}

/* ---- System V ---- */

/*
 * Before it is attached. Not inlined, as look_at_shared. bytes stays 0 where there is none, and in
 * a sandbox, which may kill for a call that the program does not make.
 */
static __attribute__((noinline)) void ask_about_segment(struct request *request)
{
	struct shmid_ds state;
	int saved = errno;

	if (is_recording_maps(request->caller) && !cuf_sandbox_entered() &&
	    !cuf_sys(SYS_shmctl, request->fd, IPC_STAT, (long)&state, 0, 0, 0)) {
		request->bytes = state.shm_segsz;
		request->is_new = !state.shm_nattch ||
				  state.shm_cpid == cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
	}
	errno = saved;
}

void *cuf_hook_shmat(int id, const void *addr, int flags)
{
	struct request request = { .prot = PROT_READ | PROT_WRITE, .flags = MAP_SHARED, .fd = id,
				   .is_segment = true, .caller = CALLER };
	struct mapping mapping;
	void *at;

	ask_about_segment(&request);
	mapping_begin(&mapping, (void *)addr, request.bytes, flags & SHM_REMAP ? MAP_FIXED : 0,
		      CALLER);
	if (find_real((void **)&cuf_real.shmat))
		at = cuf_real.shmat(id, addr, flags);
	else
		at = (void *)libc_result(cuf_sys(SYS_shmat, id, (long)addr, flags, 0, 0, 0));
	return mapping_done(&mapping, at, &request, FRAME);
}

/* A segment is attached as one map, and detached as a whole. */
static void remove_segment(const void *addr, struct cuf_maps_removed *removed)
{
	struct cuf_map map;
	enum cuf_map_kind kind;

	if (!cuf_map_find((uintptr_t)addr, &map) || map.start != (uintptr_t)addr)
		return;
	kind = cuf_map_kind(map);
	if (kind == CUF_MAP_SHARED || kind == CUF_MAP_VIEW || kind == CUF_MAP_FILE)
		cuf_maps_remove(map.start, map.end, removed);
}

int cuf_hook_shmdt(const void *addr)
{
	struct cuf_maps_removed removed = { .count = 0 };
	int saved = errno;
	if (is_recording_maps(CALLER))
		remove_segment(addr, &removed);
	errno = saved;
	if (find_real((void **)&cuf_real.shmdt))
		return done(cuf_real.shmdt(addr), &removed);
	return done((int)libc_result(cuf_sys(SYS_shmdt, (long)addr, 0, 0, 0, 0, 0)), &removed);
}

/* ---- mprotect ---- */

static int real_mprotect(void *addr, size_t bytes, int prot)
{
	if (find_real((void **)&cuf_real.mprotect))
		return cuf_real.mprotect(addr, bytes, prot);
	return (int)libc_result(cuf_sys(SYS_mprotect, (long)addr, (long)bytes, prot, 0, 0, 0));
}

/*
 * Heaps of managed languages reserve addresses and make them memory when they need it, here or by a
 * map over them. Who only changes the kind of access passes with a look at the table.
 */
int cuf_hook_mprotect(void *addr, size_t bytes, int prot)
{
	struct cuf_maps_removed removed = { .count = 0 };
	uint64_t start = (uintptr_t)addr, end = end_of(addr, bytes);
	bool recorded = bytes && is_page(addr) && is_recording_maps(CALLER);
	int result, saved = errno;
	if (recorded && prot == PROT_NONE)
		cuf_maps_decommit(start, end, &removed);
	errno = saved;
	result = real_mprotect(addr, bytes, prot);
	if (recorded && prot != PROT_NONE && !result && cuf_map_count(CUF_MAP_RESERVED)) {
		cuf_maps_commit(start, end, FRAME);
		errno = saved;
	} else if (result && recorded && prot & PROT_WRITE && bytes >= cuf_maps_bytes_min()) {
		cuf_allocator_refused(bytes, CUF_HOOK_mprotect, errno, FRAME);
	}
	return done(result, &removed);
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
	struct cuf_maps_removed old = { .count = 0 }, covered = { .count = 0 };
	bool recorded = is_page(addr) && is_recording_maps(CALLER);
	bool old_stays = flags & MREMAP_DONTUNMAP || !old_bytes;
	struct mapped mapped = { .kind = CUF_MAP_ANONYMOUS };
	int saved = errno;
	void *at;
	if (recorded && cuf_views_at((uintptr_t)addr, &mapped.memory))
		mapped.kind = CUF_MAP_SHARED;
	if (recorded && !old_stays)
		cuf_maps_remove((uintptr_t)addr, end_of(addr, old_bytes), &old);
	if (recorded && flags & MREMAP_FIXED && bytes && is_page(fixed))
		cuf_maps_remove((uintptr_t)fixed, end_of(fixed, bytes), &covered);
	errno = saved;
	at = real_mremap(addr, old_bytes, bytes, flags, fixed);
	saved = errno;
	if (recorded && at == MAP_FAILED) {
		cuf_maps_restore(&covered);
		cuf_maps_restore(&old);
		if (bytes > old_bytes && bytes - old_bytes >= cuf_maps_bytes_min())
			cuf_allocator_refused(bytes, CUF_HOOK_mremap, saved, FRAME);
	} else if (recorded && (old.count || old_stays)) {
		cuf_views_ended(&covered);
		cuf_views_ended(&old);
		if (old.count && cuf_map_kind(old.maps[0]) != CUF_MAP_VIEW)
			mapped.kind = cuf_map_kind(old.maps[0]);
		add_map(at, bytes, &mapped, FRAME);
	}
	errno = saved;
	return at;
}

/* ---- madvise ---- */

/* Released pages stay part of their map, so only sums are kept. */
int cuf_hook_madvise(void *addr, size_t bytes, int advice)
{
	bool releases = advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE;
	int result;
	if (find_real((void **)&cuf_real.madvise))
		result = cuf_real.madvise(addr, bytes, advice);
	else
		result = (int)libc_result(cuf_sys_madvise(addr, bytes, advice));
	if (!result && releases && is_recording_maps(CALLER))
		cuf_maps_advised(bytes);
	return result;
}
