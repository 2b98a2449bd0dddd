/* SPDX-License-Identifier: Apache-2.0 */
/* Puts private memory over the mappings of a file that is gone. */
#include "interpose/store/leave_file.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/store/recording.h"
#include "interpose/store/seal.h"
#include "interpose/platform/laws.h"

enum { PRIVATE_MEMORY = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

static bool is_in(uintptr_t start, uintptr_t address)
{
	return start && address - start < cuf_recording.bytes;
}

/* The file is marked where it still has a header. The kernel writes, which cannot be SIGBUS. */
static void mark_file_off(struct cuf_header *header)
{
	uint32_t state = CUF_OFF;
	struct iovec from = { &state, sizeof state }, to = { &header->state, sizeof state };

	_Static_assert(sizeof header->state == sizeof state, "the word that is written");
	if (!cuf_sandbox_entered())
		cuf_sys(SYS_process_vm_writev, cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0), (long)&from,
			1, (long)&to, 1, 0);
}

/*
 * The new memory is made elsewhere and moved, so that another thread that is inside the recorder
 * never finds no memory, nor a header without a layout. Its tables are empty.
 */
static bool replace_recording(void)
{
	struct cuf_recording *recording = &cuf_recording;
	long fresh = cuf_sys_mmap(NULL, recording->bytes, PROT_READ | PROT_WRITE, PRIVATE_MEMORY,
				  -1, 0);

	if (cuf_sys_failed(fresh))
		return false;
	mark_file_off(recording->header);
	cuf_recording_write_sealed((struct cuf_header *)fresh);
	((struct cuf_header *)fresh)->sample_interval_ns = CUF_SAMPLE_INTERVAL_NS;
	return !cuf_sys_failed(cuf_sys(SYS_mremap, fresh, (long)recording->bytes,
				       (long)recording->bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
				       (long)recording->base, 0));
}

bool cuf_recording_leave_file(uintptr_t address)
{
	uintptr_t copy = (uintptr_t)__atomic_load_n(&cuf_recording.copy, __ATOMIC_ACQUIRE);

	if (is_in(copy, address)) /* what is copied there is lost */
		return !cuf_sys_failed(cuf_sys_mmap((void *)copy, cuf_recording.bytes,
						    PROT_READ | PROT_WRITE,
						    PRIVATE_MEMORY | MAP_FIXED, -1, 0));
	return is_in((uintptr_t)cuf_recording.base, address) && replace_recording();
}
