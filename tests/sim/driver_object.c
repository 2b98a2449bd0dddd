/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated driver's tables: objects in ordered trees, free address ranges, and real host
 * memory. Everything comes from mmap, because a malloc here would be recorded as the victim's.
 */
#include <sys/mman.h>

#include "tests/sim/driver.h"

/* far from what Linux maps on its own; one range for all devices, as with unified addressing */
#define ADDRESS_FIRST 0x200000000000ull
#define ADDRESS_BYTES (32ull << 40)
/* for the 32-bit forms: above what programs load at fixed addresses, below 4 GiB */
#define LOW_FIRST 0x90000000ull
#define LOW_BYTES 0x60000000ull
#define CHUNK_BYTES (256u << 10)

static int by_addr(const struct object *a, const struct object *b) { return a->addr < b->addr ? -1 : a->addr > b->addr; }

RB_HEAD(object_tree, object);
RB_GENERATE_INTERNAL(object_tree, object, link, by_addr, static __attribute__((unused)))

static struct object_tree memory = RB_INITIALIZER(&memory), reservations = RB_INITIALIZER(&reservations);
static struct object_tree handles = RB_INITIALIZER(&handles);
static struct range *addresses, *low_addresses;

struct slab { size_t bytes; void *free; };
static struct slab object_slab = {sizeof(struct object), NULL}, range_slab = {sizeof(struct range), NULL};
static struct slab page_slab = {sizeof(struct page), NULL};

static void *slab_take(struct slab *slab)
{
	if (!slab->free) {
		char *chunk = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (chunk == MAP_FAILED)
			__builtin_trap(); /* a simulator without memory has nothing left to say */
		for (size_t at = 0; at + slab->bytes <= CHUNK_BYTES; at += slab->bytes) {
			*(void **)(chunk + at) = slab->free;
			slab->free = chunk + at;
		}
	}
	void **piece = slab->free;
	slab->free = *piece;
	__builtin_memset(piece, 0, slab->bytes);
	return piece;
}

static void slab_give(struct slab *slab, void *piece)
{
	*(void **)piece = slab->free;
	slab->free = piece;
}

struct page *page_new(void) { return slab_take(&page_slab); }
void page_delete(struct page *page) { slab_give(&page_slab, page); }

static struct object_tree *tree_of(enum kind kind)
{
	if (kind < KIND_RESERVATION)
		return &memory;
	return kind == KIND_RESERVATION ? &reservations : &handles;
}

struct object *object_new(enum kind kind, uint64_t addr)
{
	static uint64_t last_id;
	struct object *object = slab_take(&object_slab);
	object->kind = kind;
	object->addr = addr ? addr : (uint64_t)(uintptr_t)object;
	object->id = ++last_id;
	RB_INSERT(object_tree, tree_of(kind), object);
	return object;
}

void object_delete(struct object *object)
{
	RB_REMOVE(object_tree, tree_of(object->kind), object);
	slab_give(&object_slab, object);
}

struct object *object_find(enum kind kind, uint64_t addr)
{
	struct object key = {.addr = addr}, *found = RB_FIND(object_tree, tree_of(kind), &key);
	return found && found->kind == kind ? found : NULL;
}

static struct object *covering(struct object_tree *tree, uint64_t addr)
{
	struct object *node = RB_ROOT(tree), *below = NULL;
	while (node) {
		if (node->addr <= addr) {
			below = node;
			node = RB_RIGHT(node, link);
		} else {
			node = RB_LEFT(node, link);
		}
	}
	return below && addr - below->addr < (below->bytes ? below->bytes : 1) ? below : NULL;
}

struct object *object_at(uint64_t addr) { return covering(&memory, addr); }

struct object *object_next(const struct object *after, bool in_memory)
{
	struct object_tree *tree = in_memory ? &memory : &handles;
	struct object key = {.addr = after ? after->addr + 1 : 0};
	return RB_NFIND(object_tree, tree, &key);
}

struct object *reservation_at(uint64_t addr, uint64_t bytes)
{
	struct object *found = covering(&reservations, addr);
	return found && bytes <= found->bytes && addr - found->addr <= found->bytes - bytes ? found : NULL;
}

static void range_drop(struct range **at)
{
	struct range *gone = *at;
	*at = gone->next;
	slab_give(&range_slab, gone);
}

/* Cuts [start, start + bytes) out of the range at *at, which contains it. */
static void range_cut(struct range **at, uint64_t start, uint64_t bytes)
{
	struct range *range = *at;
	uint64_t end = range->start + range->bytes;
	range->bytes = start - range->start;
	if (start + bytes < end) {
		struct range *rest = slab_take(&range_slab);
		*rest = (struct range){range->next, start + bytes, end - start - bytes};
		range->next = rest;
	}
	if (!range->bytes)
		range_drop(at);
}

uint64_t range_take(struct range **list, uint64_t bytes, uint64_t alignment)
{
	for (struct range **at = list; *at; at = &(*at)->next) {
		uint64_t start = round_up((*at)->start, alignment);
		uint64_t skipped = start - (*at)->start;
		if (skipped < (*at)->bytes && bytes <= (*at)->bytes - skipped) {
			range_cut(at, start, bytes);
			return start;
		}
	}
	return 0;
}

bool range_take_at(struct range **list, uint64_t start, uint64_t bytes)
{
	for (struct range **at = list; *at; at = &(*at)->next) {
		if (start >= (*at)->start && bytes <= (*at)->bytes && start - (*at)->start <= (*at)->bytes - bytes) {
			range_cut(at, start, bytes);
			return true;
		}
	}
	return false;
}

void range_give(struct range **list, uint64_t start, uint64_t bytes)
{
	struct range **at = list, *before = NULL;
	for (; *at && (*at)->start < start; at = &(*at)->next)
		before = *at;
	if (before && before->start + before->bytes == start) {
		before->bytes += bytes;
	} else {
		struct range *fresh = slab_take(&range_slab);
		*fresh = (struct range){*at, start, bytes};
		*at = fresh;
		before = fresh;
	}
	if (before->next && before->start + before->bytes == before->next->start) {
		before->bytes += before->next->bytes;
		range_drop(&before->next);
	}
}

static void addresses_prepare(void)
{
	static bool done;
	if (!done) {
		range_give(&addresses, ADDRESS_FIRST, ADDRESS_BYTES);
		range_give(&low_addresses, LOW_FIRST, LOW_BYTES);
	}
	done = true;
}

uint64_t address_take(uint64_t bytes, uint64_t alignment)
{
	addresses_prepare();
	return range_take(&addresses, bytes, alignment);
}

uint64_t address_take_low(uint64_t bytes, uint64_t alignment)
{
	addresses_prepare();
	return range_take(&low_addresses, bytes, alignment);
}

bool address_take_at(uint64_t addr, uint64_t bytes)
{
	addresses_prepare();
	return range_take_at(&addresses, addr, bytes);
}

void address_give(uint64_t addr, uint64_t bytes) { range_give(addr <= UINT32_MAX ? &low_addresses : &addresses, addr, bytes); }

/* Real memory, touched by nobody until the victim does. */
void *host_take(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

void host_give(uint64_t addr, uint64_t bytes) { munmap((void *)(uintptr_t)addr, bytes); }
