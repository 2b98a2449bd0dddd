/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml's buffers, where ggml is a shared library. Each is one block of memory, and llama.cpp sets
 * the usage of some. Only buffers whose creation we saw are queried for their memory: a composed
 * buffer has none.
 */
#include <errno.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/resolve.h"
#include "interpose/hooks/loader/table.h"

#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)
#define NEXT(name, ret, params) \
	ret(*next) params = (ret(*) params)cuf_resolve_in_caller(CUF_HOOK_##name, CALLER)

/* ---- live buffers ---- */

/* A program has some dozens. One that does not fit is not recorded. */
enum { BUFFERS_MAX = 1024 };
static struct {
	const void *buffer;      /* NULL: free; an address that no buffer has: being filled */
	uint64_t addr, bytes;
} buffers[BUFFERS_MAX];

/* Linear. Buffers are created and freed seldom. The index of the buffer, or -1. */
static int find_buffer(const void *buffer)
{
	for (int i = 0; i < BUFFERS_MAX; i++)
		if (__atomic_load_n(&buffers[i].buffer, __ATOMIC_ACQUIRE) == buffer)
			return i;
	return -1;
}

/* Release: a thread that claims the slot next must not see the old fields after its own. */
static void drop_buffer(int at)
{
	if (at >= 0)
		__atomic_store_n(&buffers[at].buffer, NULL, __ATOMIC_RELEASE);
}

/* Returns false when an inner call has stored the buffer already. An entry of the same buffer with
 * other memory is replaced: its free was not seen. */
static bool keep_buffer(const void *buffer, uint64_t addr, uint64_t bytes)
{
	int known = find_buffer(buffer);
	if (known >= 0 && buffers[known].addr == addr && buffers[known].bytes == bytes)
		return false;
	drop_buffer(known);
	for (int i = 0; i < BUFFERS_MAX; i++) {
		const void *empty = NULL;
		if (!__atomic_compare_exchange_n(&buffers[i].buffer, &empty,
						 (const void *)buffers, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_RELAXED))
			continue;
		buffers[i].addr = addr;
		buffers[i].bytes = bytes;
		__atomic_store_n(&buffers[i].buffer, buffer, __ATOMIC_RELEASE);
		break;
	}
	return true;
}

/* ---- creation ---- */

/* Queries the memory of a buffer through the object that contains its maker. */
static void query_buffer(const void *maker, void *buffer, uint64_t *addr, uint64_t *bytes)
{
	struct cuf_dso dso;
	void *(*base)(void *);
	size_t (*size)(void *);
	if (!cuf_dso_at(maker, &dso))
		return;
	*(void **)&base =
		cuf_elf_symbol(dso.map->l_addr, dso.map->l_ld, "ggml_backend_buffer_get_base");
	*(void **)&size =
		cuf_elf_symbol(dso.map->l_addr, dso.map->l_ld, "ggml_backend_buffer_get_size");
	if (!base || !size)
		return;
	*bytes = size(buffer);
	if (*bytes) /* ggml aborts when the base of an empty buffer is requested */
		*addr = (uint64_t)(uintptr_t)base(buffer);
}

/* The role is the thread's at this time: COMPUTE while a graph's tensors are placed. */
static void record_buffer(const void *maker, void *buffer, unsigned hook, const void *frame)
{
	uint64_t addr = 0, bytes = 0;
	int saved = errno;
	if (!buffer)
		return;
	query_buffer(maker, buffer, &addr, &bytes);
	/* back-ends without addresses return small numbers */
	if (addr > CUF_PAGE_BYTES && keep_buffer(buffer, addr, bytes))
		cuf_role_assign(addr, bytes, CUF_ROLE_NONE, hook, frame);
	errno = saved;
}

/* Allocates a buffer of a type: device, pinned or host memory. Called by the loader of a model for
 * each device and by the scheduler for each graph. */
void *cuf_hook_ggml_backend_buft_alloc_buffer(void *type, size_t bytes)
{
	NEXT(ggml_backend_buft_alloc_buffer, void *, (void *, size_t));
	void *buffer = NULL;
	if (next)
		buffer = next(type, bytes);
	record_buffer((const void *)next, buffer, CUF_HOOK_ggml_backend_buft_alloc_buffer, FRAME);
	return buffer;
}

/* Wraps memory of the program, such as a mapped model file. */
void *cuf_hook_ggml_backend_dev_buffer_from_host_ptr(void *device, void *ptr, size_t bytes,
						     size_t tensor_bytes_max)
{
	NEXT(ggml_backend_dev_buffer_from_host_ptr, void *, (void *, void *, size_t, size_t));
	void *buffer = NULL;
	if (next)
		buffer = next(device, ptr, bytes, tensor_bytes_max);
	record_buffer((const void *)next, buffer, CUF_HOOK_ggml_backend_dev_buffer_from_host_ptr,
		      FRAME);
	return buffer;
}

/* The same for the CPU back-end. */
void *cuf_hook_ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t bytes)
{
	NEXT(ggml_backend_cpu_buffer_from_ptr, void *, (void *, size_t));
	void *buffer = NULL;
	if (next)
		buffer = next(ptr, bytes);
	record_buffer((const void *)next, buffer, CUF_HOOK_ggml_backend_cpu_buffer_from_ptr, FRAME);
	return buffer;
}

/* ---- usage and free ---- */

/* llama.cpp calls it after the allocation, so the role of the block changes then. The buffer is
 * looked up before the real call and the role assigned after it. */
void cuf_hook_ggml_backend_buffer_set_usage(void *buffer, int usage)
{
	static const uint8_t roles[] = {
		[GGML_USAGE_ANY] = CUF_ROLE_NONE,
		[GGML_USAGE_WEIGHTS] = CUF_ROLE_WEIGHTS,
		[GGML_USAGE_COMPUTE] = CUF_ROLE_COMPUTE,
	};
	NEXT(ggml_backend_buffer_set_usage, void, (void *, int));
	int at = -1;
	if (buffer && usage > 0 && usage < (int)sizeof roles)
		at = find_buffer(buffer);
	if (next)
		next(buffer, usage);
	if (at >= 0)
		cuf_role_assign(buffers[at].addr, buffers[at].bytes, roles[usage],
				CUF_HOOK_ggml_backend_buffer_set_usage, FRAME);
}

/* The memory itself is freed through the driver or malloc, and is recorded there. */
void cuf_hook_ggml_backend_buffer_free(void *buffer)
{
	NEXT(ggml_backend_buffer_free, void, (void *));
	if (buffer)
		drop_buffer(find_buffer(buffer));
	if (next)
		next(buffer);
}
