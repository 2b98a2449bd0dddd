/* SPDX-License-Identifier: Apache-2.0 */
/* 2 MiB pages: their holes and the call sites that pin them. Pools and reservations:
 * holes_ranges.c. */
#include "analysis/measure/holes.h"

#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/sort.h"

/* Blocks that the driver placed in host memory take no room on a device. */
static bool is_on_device(const struct cuf_block *block, unsigned kind, unsigned device)
{
	return block->kind == kind && (device == CUF_DEVICE_NONE || block->device == device) &&
	       !(block->flags & CUF_EVENT_HOST_LOCATION);
}

struct span *holes_collect(const struct liveset *live, unsigned kind, unsigned device,
			   size_t *count)
{
	struct span *found = NULL;
	size_t at = *count = 0, room = 0;
	if (!live->kinds[kind])
		return NULL;
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if (is_on_device(block, kind, device)) {
			xalloc_grow(&found, *count, &room, sizeof *found);
			found[(*count)++] =
				(struct span){ cuf_key_addr(block->key), block->bytes, block->aux,
					       block->stack, block->device };
		}
	sort_by_number(found, *count, sizeof *found, offsetof(struct span, addr));
	if (kind == CUF_KIND_ASYNC) /* by pool, then by address */
		sort_by_number(found, *count, sizeof *found, offsetof(struct span, aux));
	return found;
}

/* Largest class index for a hole of this size. */
static unsigned hole_class(uint64_t bytes)
{
	unsigned i = 0;
	while (i + 1 < FACT_HOLE_CLASSES && bytes >= (uint64_t)1024 << i)
		i++;
	return i;
}

/* A call site with blocks in pages that are not full. */
struct pinning {
	uint32_t stack;
	uint64_t pages;
	uint64_t open_bytes; /* free bytes in those pages */
	uint64_t bytes;      /* of its blocks in them */
	uint64_t count;
	uint64_t last_page;  /* number of the page counted last, plus 1; 0: none yet */
};

/* What a block occupies of a page that it does not fill. */
struct part {
	uint64_t at, bytes;
	uint32_t stack;
};

/* The pass over one device's blocks in order of address. */
struct pages {
	const struct reader *reader;
	struct part *parts;
	size_t part_count, part_room;
	bool out_of_order;    /* blocks overlap, which only damage causes */
	struct pinning *sites;
	size_t site_count, site_room;
	struct hash_index index; /* stack to a place in sites, plus one */
	struct fact_fragmentation *out;
	struct page_facts facts;
	uint64_t touched_end; /* first byte behind the last page that was counted */
};

static void add_part(struct pages *pages, uint64_t at, uint64_t bytes, uint32_t stack)
{
	pages->out_of_order |= pages->part_count && at < pages->parts[pages->part_count - 1].at;
	xalloc_grow(&pages->parts, pages->part_count, &pages->part_room, sizeof *pages->parts);
	pages->parts[pages->part_count++] = (struct part){ at, bytes, stack };
}

/*
 * Whole pages of a block have no free range. Only its first and last page can have one, so a block
 * adds at most two parts, whatever its size. Blocks come in order of address. A page that two of
 * them touch counts once.
 */
static void add_block(struct pages *pages, const struct span *span)
{
	uint64_t at = span->addr, most = ((uint64_t)1 << CUF_KEY_SHIFT) - at;
	uint64_t bytes = least_of(span->bytes, most), end = at + bytes;
	uint64_t first = at / CUF_PAGE_BYTES * CUF_PAGE_BYTES,
		 last = (end + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
	if (!bytes)
		return;
	pages->facts.block_count++;
	pages->facts.block_bytes += bytes;
	if (first < pages->touched_end)
		first = pages->touched_end;
	if (last > first) {
		pages->facts.touched_bytes += last - first;
		pages->touched_end = last;
	}
	if (at / CUF_PAGE_BYTES == (end - 1) / CUF_PAGE_BYTES) {
		if (bytes < CUF_PAGE_BYTES)
			add_part(pages, at, bytes, span->stack);
		return;
	}
	if (at % CUF_PAGE_BYTES)
		add_part(pages, at, CUF_PAGE_BYTES - at % CUF_PAGE_BYTES, span->stack);
	if (end % CUF_PAGE_BYTES)
		add_part(pages, end - end % CUF_PAGE_BYTES, end % CUF_PAGE_BYTES, span->stack);
}

static void count_hole(struct fact_fragmentation *out, uint64_t bytes)
{
	unsigned class = hole_class(bytes);
	out->hole_count[class]++;
	out->hole_bytes[class] += bytes;
	if (bytes > out->page_largest_hole_bytes)
		out->page_largest_hole_bytes = bytes;
}

/* Each page counts once for each call site that has a block in it. */
static void add_pin(struct pages *pages, const struct part *part, uint64_t page,
		    uint64_t free_bytes)
{
	uint32_t stack = reader_call_site(pages->reader, part->stack);
	uint32_t *place = hash_index_place(&pages->index, stack);
	struct pinning *site;
	if (!*place) {
		xalloc_grow(&pages->sites, pages->site_count, &pages->site_room,
			    sizeof *pages->sites);
		pages->sites[pages->site_count++] = (struct pinning){ .stack = stack };
		*place = (uint32_t)pages->site_count;
	}
	site = &pages->sites[*place - 1];
	site->bytes += part->bytes;
	site->count++;
	if (site->last_page != page + 1) {
		site->last_page = page + 1;
		site->pages++;
		site->open_bytes += free_bytes;
	}
}

/* Returns the bytes of the range [from, to). Its hole begins where a block can, as in incidents. */
static uint64_t count_gap(struct fact_fragmentation *out, uint64_t from, uint64_t to)
{
	const uint64_t place = round_up_to(from, CUF_PLACE_BYTES);
	if (to > place)
		count_hole(out, to - place);
	return to > from ? to - from : 0;
}

/* Measures one page; the parts [from, to) are in it. The edges of the page end a free range: the
 * driver maps and releases whole pages. */
static void measure_page(struct pages *pages, size_t from, size_t to)
{
	uint64_t page = pages->parts[from].at / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
	uint64_t at = page, free_bytes = 0;
	struct fact_fragmentation *out = pages->out;
	for (size_t i = from; i < to; i++) {
		const struct part *part = &pages->parts[i];
		free_bytes += count_gap(out, at, part->at);
		at = most_of(part->at + part->bytes, at);
	}
	free_bytes += count_gap(out, at, page + CUF_PAGE_BYTES);
	out->pages++;
	out->pages_partial += free_bytes != 0;
	out->pages_sparse += free_bytes > CUF_PAGE_BYTES / 10 * 9;
	out->page_free_bytes += free_bytes;
	for (size_t i = from; free_bytes && i < to; i++)
		add_pin(pages, &pages->parts[i], page, free_bytes);
}

int pins_by_open_bytes(const void *a, const void *b)
{
	const struct fact_pin *left = a, *right = b;
	if (left->open_bytes != right->open_bytes)
		return compare_numbers(right->open_bytes, left->open_bytes);
	return compare_numbers(left->stack.id, right->stack.id);
}

/* Moves the sites to the arena, as sorted rows. */
static void settle_pins(struct pages *pages, uint32_t process, struct arena *arena)
{
	struct fact_pin *pins = arena_zeroed(arena, pages->site_count, sizeof *pins);

	for (size_t i = 0; i < pages->site_count; i++) {
		const struct pinning *site = &pages->sites[i];
		pins[i] = (struct fact_pin){ { .process = process, .id = site->stack },
					     site->pages,
					     site->open_bytes,
					     site->bytes,
					     site->count };
	}
	if (pages->site_count)
		qsort(pins, pages->site_count, sizeof *pins, pins_by_open_bytes);
	pages->out->pins = pins;
	pages->out->pin_count = pages->site_count;
}

struct page_facts holes_pages(const struct device_blocks *blocks, struct arena *arena,
			      struct fact_fragmentation *out)
{
	size_t count;
	struct span *spans =
		holes_collect(blocks->live, CUF_KIND_DEVICE, blocks->device, &count);
	struct pages pages = { .reader = blocks->reader, .out = out };
	hash_index_init(&pages.index, 0);
	for (size_t i = 0; i < count; i++)
		add_block(&pages, &spans[i]);
	if (pages.out_of_order)
		sort_by_number(pages.parts, pages.part_count, sizeof *pages.parts,
			       offsetof(struct part, at));
	for (size_t from = 0, to; from < pages.part_count; from = to) {
		for (to = from + 1;
		     to < pages.part_count &&
		     pages.parts[to].at / CUF_PAGE_BYTES == pages.parts[from].at / CUF_PAGE_BYTES;
		     to++)
			;
		measure_page(&pages, from, to);
	}
	settle_pins(&pages, blocks->process, arena);
	hash_index_fini(&pages.index);
	free(pages.sites);
	free(pages.parts);
	free(spans);
	return pages.facts;
}

void holes_layers(const struct fact_fragmentation *fragmentation, const struct page_facts *pages,
		  struct fact_layer layers[LAYER_MAX])
{
	struct fact_layer *page = &layers[LAYER_PAGE], *pool = &layers[LAYER_POOL],
			  *vmm = &layers[LAYER_VMM];
	for (unsigned i = 0; i < LAYER_MAX; i++)
		layers[i] = (struct fact_layer){ CUF_UNKNOWN, "" };
	if (pages->block_count)
		*page = (struct fact_layer){ fragmentation->page_largest_hole_bytes, "exact" };
	for (size_t i = 0; i < fragmentation->pool_count; i++) {
		uint64_t gap = fragmentation->pools[i].largest_gap_bytes;
		if (!fragmentation->pools[i].pool)
			continue; /* the graph pool does not report addresses */
		if (pool->bytes == CUF_UNKNOWN)
			*pool = (struct fact_layer){ 0, "bound" };
		if (gap != CUF_UNKNOWN && gap > pool->bytes)
			pool->bytes = gap;
	}
	for (size_t i = 0; i < fragmentation->vmm_count; i++) {
		if (vmm->bytes == CUF_UNKNOWN)
			*vmm = (struct fact_layer){ 0, "exact" };
		if (fragmentation->vmm[i].largest_unmapped_bytes > vmm->bytes)
			vmm->bytes = fragmentation->vmm[i].largest_unmapped_bytes;
	}
}
