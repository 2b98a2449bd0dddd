/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear, pitched and managed memory, and the pages behind them. A request of at most 1 MiB takes
 * slots of 512 bytes in a 2 MiB page that it shares (first fit by address). A larger one takes
 * whole pages, and small ones may use the tail of its last page. A page is released when nothing is
 * left in it. Pages belong to one context.
 */
#include "tests/sim/driver.h"

#define SLOTS ((int)(PAGE_BYTES / SLOT_BYTES))

static struct page *open_pages; /* with room, by address */
static bool narrow;             /* the call in progress has a 32-bit form: its address must fit */

static bool bit_get(const struct page *page, int slot) { return page->bits[slot / 64] >> (slot % 64) & 1; }

static void bits_set(struct page *page, int first, int count, bool used)
{
	for (int slot = first; slot < first + count; slot++) {
		uint64_t bit = 1ull << (slot % 64);
		page->bits[slot / 64] = used ? page->bits[slot / 64] | bit : page->bits[slot / 64] & ~bit;
	}
	page->used_slots += used ? count : -count;
}

static int run_find(const struct page *page, int count)
{
	int run = 0;
	for (int slot = 0; slot < SLOTS; slot++) {
		if (!(slot % 64) && page->bits[slot / 64] == UINT64_MAX) {
			run = 0;
			slot += 63;
			continue;
		}
		run = bit_get(page, slot) ? 0 : run + 1;
		if (run == count)
			return slot - count + 1;
	}
	return -1;
}

static void page_unlist(struct page *page)
{
	struct page **at = &open_pages;
	while (*at != page)
		at = &(*at)->next;
	*at = page->next;
	page->listed = false;
}

static void page_list(struct page *page)
{
	struct page **at = &open_pages;
	while (*at && (*at)->addr < page->addr)
		at = &(*at)->next;
	page->next = *at;
	*at = page;
	page->listed = true;
}

static void page_mark(struct page *page, int first, int count, bool used)
{
	bits_set(page, first, count, used);
	if (!used)
		page->run_bound = SLOTS;
	if (page->listed && page->used_slots == SLOTS)
		page_unlist(page);
	else if (!page->listed && page->used_slots < SLOTS)
		page_list(page);
}

static struct page *page_open(struct object *context, uint64_t addr)
{
	struct page *page = page_new();
	page->addr = addr;
	page->context = context;
	page->device = context->device;
	page->run_bound = SLOTS;
	return page;
}

static CUresult pages_take(int device, uint64_t bytes, uint64_t *addr)
{
	*addr = narrow ? address_take_low(bytes, PAGE_BYTES) : address_take(bytes, PAGE_BYTES);
	if (!*addr)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (device_take(device, bytes))
		return 0;
	address_give(*addr, bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void pages_give(int device, uint64_t addr, uint64_t bytes)
{
	address_give(addr, bytes);
	device_give(device, bytes);
}

static CUresult small_take(struct object *context, uint64_t bytes, struct place *out)
{
	int count = (int)(bytes / SLOT_BYTES), first = -1;
	struct page *page;
	for (page = open_pages; page; page = page->next) {
		if (page->context != context || (page->addr <= UINT32_MAX) != narrow || SLOTS - page->used_slots < count || page->run_bound < count)
			continue;
		first = run_find(page, count);
		if (first >= 0)
			break;
		page->run_bound = count - 1;
	}
	if (!page) {
		uint64_t addr;
		if (pages_take(context->device, PAGE_BYTES, &addr))
			return CUDA_ERROR_OUT_OF_MEMORY;
		page = page_open(context, addr);
		first = 0;
	}
	page_mark(page, first, count, true);
	*out = (struct place){page->addr + (uint64_t)first * SLOT_BYTES, bytes, page};
	return 0;
}

CUresult place_take(struct object *context, uint64_t bytes, struct place *out)
{
	uint64_t addr, tail;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > settings.total_bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes = round_up(bytes, SLOT_BYTES);
	if (bytes <= SMALL_BYTES)
		return small_take(context, bytes, out);
	if (pages_take(context->device, round_up(bytes, PAGE_BYTES), &addr))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*out = (struct place){addr, bytes, NULL};
	tail = bytes % PAGE_BYTES;
	if (tail) {
		out->page = page_open(context, addr + bytes - tail);
		page_mark(out->page, 0, (int)(tail / SLOT_BYTES), true);
	}
	return 0;
}

void place_give(int device, const struct place *place)
{
	struct page *page = place->page;
	uint64_t whole = place->bytes > SMALL_BYTES ? place->bytes / PAGE_BYTES * PAGE_BYTES : 0;
	if (whole)
		pages_give(device, place->addr, whole);
	if (!page)
		return;
	page_mark(page, (int)((place->addr + whole - page->addr) / SLOT_BYTES), (int)((place->bytes - whole) / SLOT_BYTES), false);
	if (!page->used_slots) {
		page_unlist(page);
		pages_give(device, page->addr, PAGE_BYTES);
		page_delete(page);
	}
}

static CUresult linear_alloc(CUdeviceptr *out, uint64_t bytes)
{
	struct object *context;
	struct place place;
	CUresult result = out ? context_current(&context) : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = place_take(context, bytes, &place);
	if (result)
		return result;
	struct object *block = object_new(KIND_LINEAR, place.addr);
	block->bytes = place.bytes;
	block->requested = bytes;
	block->device = context->device;
	block->context = context;
	block->place = place;
	*out = place.addr;
	return 0;
}

static CUresult pitch_alloc(CUdeviceptr *out, size_t *pitch, size_t width, size_t height)
{
	size_t row = round_up(width, SLOT_BYTES);
	if (!width || !height || !pitch)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = linear_alloc(out, row * height);
	if (!result)
		*pitch = row;
	return result;
}

static CUresult managed_alloc(CUdeviceptr *out, uint64_t bytes, unsigned flags)
{
	struct object *context;
	CUresult result = out && bytes && (flags == 1 || flags == 2) ? context_current(&context) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	void *p = host_take(round_up(bytes, 4096));
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct object *block = object_new(KIND_MANAGED, (uint64_t)(uintptr_t)p);
	block->bytes = round_up(bytes, 4096);
	block->requested = bytes;
	block->device = context->device;
	block->context = context;
	*out = block->addr;
	return 0;
}

/* Unmaps host memory, returns device memory, forgets registrations and imports: the ends of all
 * address-like objects. */
void memory_free(struct object *block)
{
	switch (block->kind) {
	case KIND_LINEAR:
		place_give(block->device, &block->place);
		break;
	case KIND_MANAGED:
	case KIND_PINNED:
		host_give(block->addr, block->bytes);
		break;
	case KIND_IMPORTED:
		address_give(block->addr, block->bytes);
		break;
	case KIND_ASYNC:
		pool_block_free(block);
		return;
	case KIND_NODE_MEMORY:
		node_memory_free(block);
		return;
	default: /* registered: the memory is its owner's */
		break;
	}
	object_delete(block);
}

static CUresult linear_free(CUdeviceptr ptr)
{
	if (!ptr)
		return 0;
	for (enum kind kind = KIND_LINEAR; kind <= KIND_IMPORTED; kind++) {
		struct object *block = kind == KIND_PINNED || kind == KIND_REGISTERED || kind == KIND_MAPPING ? NULL : object_find(kind, ptr);
		/* IPC: close, not free */
		if (block && !(kind == KIND_IMPORTED && !block->owner && block->imported.handle[0])) {
			memory_free(block);
			return 0;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) CALL("cuMemAlloc", CALL_UNSAFE, linear_alloc(out, bytes))
CUresult cuMemFree_v2(CUdeviceptr ptr) CALL("cuMemFree", CALL_UNSAFE, linear_free(ptr))
CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned int element)
	CALL("cuMemAllocPitch", CALL_UNSAFE, pitch_alloc(out, pitch, width, height))
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned int flags)
	CALL("cuMemAllocManaged", CALL_UNSAFE, managed_alloc(out, bytes, flags))

/* The 32-bit forms, with addresses that fit them; a real driver has none left on a 64-bit system
 * [not verified]. */
static CUresult pitch_narrow(CUdeviceptr_v1 *out, unsigned int *pitch, size_t width, size_t height)
{
	CUdeviceptr wide = 0;
	size_t wide_pitch = 0;
	narrow = true;
	CUresult result = pitch_alloc(&wide, &wide_pitch, width, height);
	narrow = false;
	if (!result) {
		*out = (CUdeviceptr_v1)wide;
		*pitch = (unsigned int)wide_pitch;
	}
	return result;
}

static CUresult alloc_narrow(CUdeviceptr_v1 *out, unsigned int bytes)
{
	CUdeviceptr wide = 0;
	narrow = true;
	CUresult result = linear_alloc(&wide, bytes);
	narrow = false;
	if (!result)
		*out = (CUdeviceptr_v1)wide;
	return result;
}

CUresult cuMemAlloc(CUdeviceptr_v1 *out, unsigned int bytes) CALL("cuMemAlloc", CALL_UNSAFE, alloc_narrow(out, bytes))
CUresult cuMemAllocPitch(CUdeviceptr_v1 *out, unsigned int *pitch, unsigned int width, unsigned int height, unsigned int element)
	CALL("cuMemAllocPitch", CALL_UNSAFE, pitch_narrow(out, pitch, width, height))
CUresult cuMemFree(CUdeviceptr_v1 ptr) CALL("cuMemFree", CALL_UNSAFE, linear_free(ptr))
