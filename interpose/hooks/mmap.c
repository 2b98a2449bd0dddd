/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anonymous and file maps, recorded with mmap=1 alone. A map larger than what the program unmaps later is not split:
 * the record says where it began; what the analysis cannot pair it shows as still mapped.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "interpose/core/options.h"
#include "interpose/core/host.h"
#include "interpose/core/recorder.h"
#include "interpose/core/sys.h"
#include "interpose/hooks/real.h"

#define FRAME __builtin_frame_address(0)

static inline bool recording_maps(void) { return __builtin_expect(cuf_options.mmap != 0, 0) && cuf_state_is_on(); }

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

static void *mapped(void *at, size_t bytes, void *frame)
{
	if (recording_maps() && at != MAP_FAILED)
		cuf_host_born(at, bytes, CUF_HOST_MMAP, frame);
	return at;
}

void *cuf_hook_mmap(void *addr, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *at = find_real((void **)&cuf_real.mmap) ? cuf_real.mmap(addr, bytes, prot, flags, fd, offset)
						      : (void *)raw(cuf_sys_mmap(addr, bytes, prot, flags, fd, (uint64_t)offset));
	return mapped(at, bytes, FRAME);
}

void *cuf_hook_mmap64(void *addr, size_t bytes, int prot, int flags, int fd, off64_t offset)
{
	void *at = find_real((void **)&cuf_real.mmap64) ? cuf_real.mmap64(addr, bytes, prot, flags, fd, offset)
							: (void *)raw(cuf_sys_mmap(addr, bytes, prot, flags, fd, (uint64_t)offset));
	return mapped(at, bytes, FRAME);
}

int cuf_hook_munmap(void *addr, size_t bytes)
{
	struct cuf_host_undo undo = { 0, 0 };
	bool recorded = recording_maps();
	int result;
	if (recorded)
		cuf_host_freed(addr, CUF_HOST_MUNMAP, &undo);
	result = find_real((void **)&cuf_real.munmap) ? cuf_real.munmap(addr, bytes) : (int)raw(cuf_sys_munmap(addr, bytes));
	if (recorded && result != 0)
		cuf_host_restored(&undo);
	return result;
}
