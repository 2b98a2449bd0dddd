/* SPDX-License-Identifier: Apache-2.0 */
/* See driver_pages.h. Free address ranges and shared pages are trees by address: whoever asks gets
 * the lowest that fits. */
#include "analysis/what_if/driver_pages.h"

#include <bsd/sys/tree.h>
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/what_if/allocator_model.h"

#define SLOT_BYTES 512u
#define SMALL_BYTES (1ull << 20) /* at most this: shares a page */
#define FIRST_ADDR (1ull << 36)
#define SLOTS ((unsigned)(CUF_PAGE_BYTES / SLOT_BYTES))

struct range {
	RB_ENTRY(range) node;
	uint64_t addr, bytes;
};
RB_HEAD(range_tree, range);

/* A page that blocks share; bit i: slot i is taken. */
struct page {
	RB_ENTRY(page) node;
	uint64_t addr;
	unsigned used_slots;
	unsigned run_bound; /* no free run is longer */
	uint64_t bits[SLOTS / 64];
};
RB_HEAD(page_tree, page);

struct driver_pages {
	struct driver_figures figures;
	uint64_t granularity_bytes;
	uint64_t end_addr;        /* no range or block is behind it */
	struct range_tree ranges; /* free ones; none reaches end_addr */
	struct page_tree pages;   /* with at least one taken slot */
};

static int range_order(const struct range *a, const struct range *b)
{
	return compare_numbers(a->addr, b->addr);
}

static int page_order(const struct page *a, const struct page *b)
{
	return compare_numbers(a->addr, b->addr);
}

/* of the tree's functions some are not used */
#define UNUSED static __attribute__((unused))
RB_GENERATE_INTERNAL(range_tree, range, node, range_order, UNUSED)
RB_GENERATE_INTERNAL(page_tree, page, node, page_order, UNUSED)

struct driver_pages *driver_pages_new(uint64_t capacity_bytes, uint64_t granularity_bytes)
{
	struct driver_pages *driver = xalloc_zeroed(1, sizeof *driver);
	driver->figures.capacity_bytes = capacity_bytes;
	driver->granularity_bytes = granularity_bytes;
	if (!is_known(granularity_bytes) || granularity_bytes < CUF_PAGE_BYTES ||
	    granularity_bytes > 512 * CUF_PAGE_BYTES)
		driver->granularity_bytes = CUF_PAGE_BYTES;
	driver->end_addr = FIRST_ADDR;
	RB_INIT(&driver->ranges);
	RB_INIT(&driver->pages);
	return driver;
}

void driver_pages_free(struct driver_pages *driver)
{
	if (!driver)
		return;
	for (struct range *range; (range = RB_ROOT(&driver->ranges));) {
		RB_REMOVE(range_tree, &driver->ranges, range);
		free(range);
	}
	for (struct page *page; (page = RB_ROOT(&driver->pages));) {
		RB_REMOVE(page_tree, &driver->pages, page);
		free(page);
	}
	free(driver);
}

/* Memory without addresses. */
static bool memory_take(struct driver_pages *driver, uint64_t bytes)
{
	struct driver_figures *figures = &driver->figures;
	if (bytes > subtract_to_zero(figures->capacity_bytes, figures->used_bytes)) {
		figures->refused++;
		return false;
	}
	figures->used_bytes += bytes;
	figures->peak_bytes = most_of(figures->peak_bytes, figures->used_bytes);
	return true;
}

static void memory_give(struct driver_pages *driver, uint64_t bytes)
{
	driver->figures.used_bytes = subtract_to_zero(driver->figures.used_bytes, bytes);
}

static uint64_t addresses_take(struct driver_pages *driver, uint64_t bytes)
{
	struct range *range;
	uint64_t addr;
	RB_FOREACH(range, range_tree, &driver->ranges)
		if (range->bytes >= bytes)
			break;
	if (!range) {
		addr = driver->end_addr;
		driver->end_addr += bytes;
		return addr;
	}
	addr = range->addr;
	range->addr += bytes; /* still before the next range */
	range->bytes -= bytes;
	if (!range->bytes) {
		RB_REMOVE(range_tree, &driver->ranges, range);
		free(range);
	}
	return addr;
}

static void addresses_give(struct driver_pages *driver, uint64_t addr, uint64_t bytes)
{
	struct range key = { .addr = addr }, *next, *before, *range;
	next = RB_NFIND(range_tree, &driver->ranges, &key);
	before = next ? RB_PREV(range_tree, &driver->ranges, next) :
			RB_MAX(range_tree, &driver->ranges);
	if (next && addr + bytes == next->addr) {
		bytes += next->bytes;
		RB_REMOVE(range_tree, &driver->ranges, next);
		free(next);
	}
	if (before && before->addr + before->bytes == addr) {
		before->bytes += bytes;
		range = before;
	} else {
		range = xalloc_zeroed(1, sizeof *range);
		*range = (struct range){ .addr = addr, .bytes = bytes };
		RB_INSERT(range_tree, &driver->ranges, range);
	}
	if (range->addr + range->bytes == driver->end_addr) {
		driver->end_addr = range->addr;
		RB_REMOVE(range_tree, &driver->ranges, range);
		free(range);
	}
}

static bool pages_take(struct driver_pages *driver, uint64_t bytes, uint64_t *addr)
{
	if (!memory_take(driver, bytes))
		return false;
	*addr = addresses_take(driver, bytes);
	return true;
}

static void pages_give(struct driver_pages *driver, uint64_t addr, uint64_t bytes)
{
	memory_give(driver, bytes);
	addresses_give(driver, addr, bytes);
}

/* The first free run of so many slots; SLOTS: none. */
static unsigned run_find(const struct page *page, unsigned count)
{
	unsigned run = 0;
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (!(slot % 64) && page->bits[slot / 64] == UINT64_MAX) {
			run = 0;
			slot += 63;
			continue;
		}
		run = page->bits[slot / 64] >> slot % 64 & 1 ? 0 : run + 1;
		if (run == count)
			return slot - count + 1;
	}
	return SLOTS;
}

static void slots_set(struct page *page, unsigned first, unsigned count, bool taken)
{
	for (unsigned slot = first; slot < first + count; slot++) {
		uint64_t bit = 1ull << slot % 64;
		if (taken)
			page->bits[slot / 64] |= bit;
		else
			page->bits[slot / 64] &= ~bit;
	}
	if (taken) {
		page->used_slots += count;
	} else {
		page->used_slots -= count;
		page->run_bound = SLOTS;
	}
}

static struct page *page_open(struct driver_pages *driver, uint64_t addr)
{
	struct page *page = xalloc_zeroed(1, sizeof *page);
	page->addr = addr;
	page->run_bound = SLOTS;
	RB_INSERT(page_tree, &driver->pages, page);
	return page;
}

static bool small_take(struct driver_pages *driver, unsigned count, uint64_t *addr)
{
	struct page *page;
	unsigned first = 0;
	RB_FOREACH(page, page_tree, &driver->pages) {
		if (SLOTS - page->used_slots < count || page->run_bound < count)
			continue;
		first = run_find(page, count);
		if (first < SLOTS)
			break;
		page->run_bound = count - 1;
	}
	if (!page) {
		uint64_t at;
		if (!pages_take(driver, CUF_PAGE_BYTES, &at))
			return false;
		page = page_open(driver, at);
		first = 0;
	}
	slots_set(page, first, count, true);
	*addr = page->addr + (uint64_t)first * SLOT_BYTES;
	return true;
}

/* Slots of a page that is shared from addr on; the page goes when it was the last. */
static void slots_give(struct driver_pages *driver, uint64_t addr, uint64_t bytes)
{
	struct page key = { .addr = addr / CUF_PAGE_BYTES * CUF_PAGE_BYTES };
	struct page *page = RB_FIND(page_tree, &driver->pages, &key);
	if (!page)
		return;
	slots_set(page, (unsigned)((addr - page->addr) / SLOT_BYTES),
		  (unsigned)(bytes / SLOT_BYTES), false);
	if (page->used_slots)
		return;
	pages_give(driver, page->addr, CUF_PAGE_BYTES);
	RB_REMOVE(page_tree, &driver->pages, page);
	free(page);
}

bool driver_take(struct driver_pages *driver, uint64_t bytes, uint64_t *addr)
{
	uint64_t tail;
	driver->figures.calls++;
	if (bytes > driver->figures.capacity_bytes || bytes > UINT64_MAX / 2) {
		driver->figures.refused++;
		return false;
	}
	bytes = round_up_to(bytes ? bytes : 1, SLOT_BYTES);
	if (bytes <= SMALL_BYTES)
		return small_take(driver, (unsigned)(bytes / SLOT_BYTES), addr);
	if (!pages_take(driver, round_up_to(bytes, CUF_PAGE_BYTES), addr))
		return false;
	tail = bytes % CUF_PAGE_BYTES;
	if (tail)
		slots_set(page_open(driver, *addr + bytes - tail), 0, (unsigned)(tail / SLOT_BYTES),
			  true);
	return true;
}

void driver_give(struct driver_pages *driver, uint64_t addr, uint64_t bytes)
{
	uint64_t whole = 0;
	driver->figures.calls++;
	bytes = round_up_to(bytes ? bytes : 1, SLOT_BYTES);
	if (bytes > SMALL_BYTES)
		whole = bytes / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
	if (whole)
		pages_give(driver, addr, whole);
	if (bytes > whole)
		slots_give(driver, addr + whole, bytes - whole);
}

bool driver_create(struct driver_pages *driver, uint64_t bytes)
{
	driver->figures.calls++;
	return memory_take(driver, round_up_to(bytes, driver->granularity_bytes));
}

void driver_release(struct driver_pages *driver, uint64_t bytes)
{
	driver->figures.calls++;
	memory_give(driver, round_up_to(bytes, driver->granularity_bytes));
}

uint64_t driver_reserve(struct driver_pages *driver, uint64_t bytes)
{
	driver->figures.calls++;
	return addresses_take(driver, round_up_to(bytes, CUF_PAGE_BYTES));
}

void driver_unreserve(struct driver_pages *driver, uint64_t addr, uint64_t bytes)
{
	driver->figures.calls++;
	addresses_give(driver, addr, round_up_to(bytes, CUF_PAGE_BYTES));
}

struct driver_figures driver_look(const struct driver_pages *driver) { return driver->figures; }

/* ---- no allocator at all, as a model: each request goes to the driver, and each free ---- */


struct direct {
	struct driver_pages *driver;
	struct { uint64_t addr, bytes; } *blocks;
	struct model_figures figures;
};

static void *direct_open(const struct model_values *values, const struct model_ground *ground,
			 const char **why)
{
	struct direct *direct = xalloc_zeroed(1, sizeof *direct);
	direct->driver = ground->driver;
	direct->blocks = xalloc_zeroed(ground->block_count + 1, sizeof *direct->blocks);
	return direct;
}

static bool direct_alloc(void *state, const struct model_request *request)
{
	struct direct *direct = state;
	struct model_figures *figures = &direct->figures;
	uint64_t addr;
	if (!driver_take(direct->driver, request->bytes, &addr))
		return false;
	direct->blocks[request->block].addr = addr;
	direct->blocks[request->block].bytes = request->bytes;
	figures->allocated_bytes += request->bytes;
	figures->reserved_bytes += request->bytes;
	figures->peak_reserved_bytes =
		most_of(figures->peak_reserved_bytes, figures->reserved_bytes);
	return true;
}

static void direct_free(void *state, uint32_t block)
{
	struct direct *direct = state;
	if (!direct->blocks[block].addr)
		return;
	driver_give(direct->driver, direct->blocks[block].addr, direct->blocks[block].bytes);
	direct->figures.allocated_bytes -= direct->blocks[block].bytes;
	direct->figures.reserved_bytes = direct->figures.allocated_bytes;
	direct->blocks[block].addr = 0;
}

static struct model_figures direct_look(const void *state)
{
	return ((const struct direct *)state)->figures;
}

static void direct_close(void *state)
{
	struct direct *direct = state;
	free(direct->blocks);
	free(direct);
}

static const struct model_setting settings[] = {
	{ "PYTORCH_NO_CUDA_MEMORY_CACHING", SETTING_FLAG, 0, 0, NULL },
};

const struct allocator_model driver_model = {
	.name = "the driver's pages",
	.settings = settings,
	.setting_count = sizeof settings / sizeof *settings,
	.kinds = 1u << CUF_KIND_FRAMEWORK | 1u << CUF_KIND_DEVICE,
	.open = direct_open,
	.alloc = direct_alloc,
	.free = direct_free,
	.look = direct_look,
	.close = direct_close,
};
