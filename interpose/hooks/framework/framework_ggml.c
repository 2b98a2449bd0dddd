/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ggml's buffers, where ggml is a shared library: each is one block of memory, and llama.cpp says of some what they are
 * for. A buffer's memory is asked only of those that we saw being made: of composed ones ggml has none to tell.
 */
#include <errno.h>
#include "interpose/platform/elf_symbol.h"
#include "interpose/record/framework.h"
#include "interpose/hooks/loader/bound.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/table.h"

#define FRAME __builtin_frame_address(0)
#define CALLER __builtin_return_address(0)
#define NEXT(name, ret, params) ret(*next) params = (ret(*) params)cuf_bound_find(CUF_HOOK_##name, CALLER)

/* Buffers that are alive. A program has some dozens; one that finds no place is not told of. */
enum { BUFFERS_MAX = 1024 };
static struct { const void *buffer; uint64_t addr, bytes; } buffers[BUFFERS_MAX];

static int find_buffer(const void *buffer)
{
	for (int i = 0; i < BUFFERS_MAX; i++)
		if (__atomic_load_n(&buffers[i].buffer, __ATOMIC_ACQUIRE) == buffer)
			return i;
	return -1;
}

static void drop_buffer(int at)
{
	if (at >= 0)
		__atomic_store_n(&buffers[at].buffer, NULL, __ATOMIC_RELEASE);
}

/* False: it is known so already, by an inner call. One that was freed unseen gives way. An entry is claimed with an
 * address that no buffer has. */
static bool keep_buffer(const void *buffer, uint64_t addr, uint64_t bytes)
{
	int known = find_buffer(buffer);
	if (known >= 0 && buffers[known].addr == addr && buffers[known].bytes == bytes)
		return false;
	drop_buffer(known);
	for (int i = 0; i < BUFFERS_MAX; i++) {
		const void *empty = NULL;
		if (!__atomic_compare_exchange_n(&buffers[i].buffer, &empty, (const void *)buffers, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		buffers[i].addr = addr;
		buffers[i].bytes = bytes;
		__atomic_store_n(&buffers[i].buffer, buffer, __ATOMIC_RELEASE);
		break;
	}
	return true;
}

/* ggml's own words on a buffer, from the object whose function made it. */
static void ask_buffer(const void *maker, void *buffer, uint64_t *addr, uint64_t *bytes)
{
	struct cuf_dso dso;
	void *(*base)(void *);
	size_t (*size)(void *);
	if (!cuf_dso_at(maker, &dso))
		return;
	*(void **)&base = cuf_elf_symbol(dso.map->l_addr, dso.map->l_ld, "ggml_backend_buffer_get_base");
	*(void **)&size = cuf_elf_symbol(dso.map->l_addr, dso.map->l_ld, "ggml_backend_buffer_get_size");
	if (base && size && (*bytes = size(buffer)) != 0) /* one of no bytes has no base, and says so by aborting */
		*addr = (uint64_t)(uintptr_t)base(buffer);
}

static void made(const void *maker, void *buffer, unsigned hook, const void *frame)
{
	uint64_t addr = 0, bytes = 0;
	int saved = errno;
	if (!buffer)
		return;
	ask_buffer(maker, buffer, &addr, &bytes);
	if (addr > CUF_PAGE_BYTES && keep_buffer(buffer, addr, bytes)) /* back-ends without addresses give small numbers */
		cuf_role_assign(addr, bytes, cuf_role_now(), hook, frame);
	errno = saved;
}

void *cuf_hook_ggml_backend_buft_alloc_buffer(void *type, size_t bytes)
{
	NEXT(ggml_backend_buft_alloc_buffer, void *, (void *, size_t));
	void *buffer = next ? next(type, bytes) : NULL;
	made((const void *)next, buffer, CUF_HOOK_ggml_backend_buft_alloc_buffer, FRAME);
	return buffer;
}

void *cuf_hook_ggml_backend_dev_buffer_from_host_ptr(void *device, void *ptr, size_t bytes, size_t tensor_bytes_max)
{
	NEXT(ggml_backend_dev_buffer_from_host_ptr, void *, (void *, void *, size_t, size_t));
	void *buffer = next ? next(device, ptr, bytes, tensor_bytes_max) : NULL;
	made((const void *)next, buffer, CUF_HOOK_ggml_backend_dev_buffer_from_host_ptr, FRAME);
	return buffer;
}

void *cuf_hook_ggml_backend_cpu_buffer_from_ptr(void *ptr, size_t bytes)
{
	NEXT(ggml_backend_cpu_buffer_from_ptr, void *, (void *, size_t));
	void *buffer = next ? next(ptr, bytes) : NULL;
	made((const void *)next, buffer, CUF_HOOK_ggml_backend_cpu_buffer_from_ptr, FRAME);
	return buffer;
}

void cuf_hook_ggml_backend_buffer_set_usage(void *buffer, int usage)
{
	static const uint8_t roles[] = {
		[GGML_USAGE_ANY] = CUF_ROLE_NONE, [GGML_USAGE_WEIGHTS] = CUF_ROLE_WEIGHTS, [GGML_USAGE_COMPUTE] = CUF_ROLE_COMPUTE,
	};
	NEXT(ggml_backend_buffer_set_usage, void, (void *, int));
	int at = buffer && usage > 0 && usage < (int)sizeof roles ? find_buffer(buffer) : -1;
	if (next)
		next(buffer, usage);
	if (at >= 0)
		cuf_role_assign(buffers[at].addr, buffers[at].bytes, roles[usage], CUF_HOOK_ggml_backend_buffer_set_usage, FRAME);
}

void cuf_hook_ggml_backend_buffer_free(void *buffer)
{
	NEXT(ggml_backend_buffer_free, void, (void *));
	drop_buffer(buffer ? find_buffer(buffer) : -1);
	if (next)
		next(buffer);
}
