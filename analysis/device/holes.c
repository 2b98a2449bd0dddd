/* SPDX-License-Identifier: Apache-2.0 */
/* 2 MiB pages: holes and the sites that hold pages open. Pools and VMM: holes_ranges.c. */
#include "analysis/device/holes.h"

#include <stdlib.h>
#include <uthash.h>

static int by_addr(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static int by_pool(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	if (x->aux != y->aux)
		return x->aux < y->aux ? -1 : 1;
	return by_addr(a, b);
}

static bool is_wanted(const struct cuf_block *b, unsigned kind, unsigned device)
{
	return b->kind == kind && (device == CUF_DEVICE_NONE || b->device == device) && !(b->flags & CUF_EVENT_HOST_LOCATION);
}

struct span *holes_collect(const struct liveset *live, unsigned kind, unsigned device, size_t *count)
{
	struct span *found = NULL;
	size_t at = *count = 0, room = 0;
	for (const struct cuf_block *b; (b = liveset_next(live, &at));)
		if (is_wanted(b, kind, device)) {
			xalloc_grow(&found, *count, &room, sizeof *found);
			found[(*count)++] = (struct span){ cuf_key_addr(b->key), b->bytes, b->aux, b->stack, b->device };
		}
	if (*count)
		qsort(found, *count, sizeof *found, kind == CUF_KIND_ASYNC ? by_pool : by_addr);
	return found;
}

unsigned hole_class(uint64_t bytes)
{
	unsigned i = 0;
	while (i + 1 < FACT_HOLE_CLASSES && bytes >= (uint64_t)1024 << i)
		i++;
	return i;
}

struct pinning {
	uint32_t stack;
	uint64_t pages, open_bytes, bytes, count;
	uint64_t last_page;       /* + 1: the page that was counted last */
	UT_hash_handle hh;
};

struct part { uint64_t at, bytes; uint32_t stack; }; /* of a block: what it takes of a page that it does not fill */

struct pages {
	struct part *parts; size_t part_count, part_room;
	bool out_of_order;        /* blocks overlap, as only a damaged recording's do */
	struct pinning *sites;
	struct fact_fragmentation *out;
	struct page_facts facts;
	uint64_t touched_end;     /* first byte behind the last page that was counted */
};

static void add_part(struct pages *p, uint64_t at, uint64_t bytes, uint32_t stack)
{
	p->out_of_order |= p->part_count && at < p->parts[p->part_count - 1].at;
	xalloc_grow(&p->parts, p->part_count, &p->part_room, sizeof *p->parts);
	p->parts[p->part_count++] = (struct part){ at, bytes, stack };
}

static void add_block(struct pages *p, const struct span *b)
{
	uint64_t at = b->addr, most = ((uint64_t)1 << CUF_KEY_SHIFT) - at;
	uint64_t bytes = b->bytes < most ? b->bytes : most, end = at + bytes;
	uint64_t first = at / CUF_PAGE_BYTES * CUF_PAGE_BYTES, last = (end + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
	if (!bytes)
		return;
	p->facts.block_count++;
	p->facts.block_bytes += bytes;
	if (first < p->touched_end)
		first = p->touched_end;
	if (last > first) {
		p->facts.touched_bytes += last - first;
		p->touched_end = last;
	}
	if (at / CUF_PAGE_BYTES == (end - 1) / CUF_PAGE_BYTES) {
		if (bytes < CUF_PAGE_BYTES)
			add_part(p, at, bytes, b->stack);
		return;
	}
	if (at % CUF_PAGE_BYTES)
		add_part(p, at, CUF_PAGE_BYTES - at % CUF_PAGE_BYTES, b->stack);
	if (end % CUF_PAGE_BYTES)
		add_part(p, end - end % CUF_PAGE_BYTES, end % CUF_PAGE_BYTES, b->stack);
}

static int by_at(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void see_hole(struct fact_fragmentation *out, uint64_t bytes)
{
	unsigned class = hole_class(bytes);
	out->hole_count[class]++;
	out->hole_bytes[class] += bytes;
	if (bytes > out->page_largest_hole_bytes)
		out->page_largest_hole_bytes = bytes;
}

static void blame(struct pages *p, const struct part *part, uint64_t page, uint64_t free_bytes)
{
	struct pinning *site;
	HASH_FIND(hh, p->sites, &part->stack, sizeof part->stack, site);
	if (!site) {
		site = xalloc_zeroed(1, sizeof *site);
		site->stack = part->stack;
		HASH_ADD(hh, p->sites, stack, sizeof site->stack, site);
	}
	site->bytes += part->bytes;
	site->count++;
	if (site->last_page != page + 1) {
		site->last_page = page + 1;
		site->pages++;
		site->open_bytes += free_bytes;
	}
}

/* The parts [from, to) lie in one page. */
static void see_page(struct pages *p, size_t from, size_t to)
{
	uint64_t page = p->parts[from].at / CUF_PAGE_BYTES * CUF_PAGE_BYTES, at = page, free_bytes = 0;
	struct fact_fragmentation *out = p->out;
	for (size_t i = from; i <= to; i++) {
		uint64_t next = i < to ? p->parts[i].at : page + CUF_PAGE_BYTES, end = i < to ? next + p->parts[i].bytes : next;
		if (next > at) {
			see_hole(out, next - at);
			free_bytes += next - at;
		}
		at = end > at ? end : at;
	}
	out->pages++;
	out->pages_partial += free_bytes != 0;
	out->pages_sparse += free_bytes > CUF_PAGE_BYTES / 10 * 9;
	out->page_free_bytes += free_bytes;
	for (size_t i = from; free_bytes && i < to; i++)
		blame(p, &p->parts[i], page, free_bytes);
}

static int by_open_bytes(const void *a, const void *b)
{
	const struct fact_pin *x = a, *y = b;
	if (x->open_bytes != y->open_bytes)
		return x->open_bytes > y->open_bytes ? -1 : 1;
	return x->stack.id < y->stack.id ? -1 : x->stack.id > y->stack.id;
}

static void settle_pins(struct pages *p, uint32_t process, struct arena *arena)
{
	size_t count = HASH_COUNT(p->sites), i = 0;
	struct fact_pin *pins = arena_zeroed(arena, count, sizeof *pins);
	struct pinning *site, *next;
	HASH_ITER(hh, p->sites, site, next) {
		pins[i++] = (struct fact_pin){ { .process = process, .id = site->stack }, site->pages, site->open_bytes, site->bytes, site->count };
		HASH_DEL(p->sites, site);
		free(site);
	}
	if (count)
		qsort(pins, count, sizeof *pins, by_open_bytes);
	p->out->pins = pins;
	p->out->pin_count = count;
}

struct page_facts holes_pages(const struct liveset *live, unsigned device, uint32_t process, struct arena *arena, struct fact_fragmentation *out)
{
	size_t count;
	struct span *blocks = holes_collect(live, CUF_KIND_DEVICE, device, &count);
	struct pages p = { .out = out };
	for (size_t i = 0; i < count; i++)
		add_block(&p, &blocks[i]);
	if (p.out_of_order)
		qsort(p.parts, p.part_count, sizeof *p.parts, by_at);
	for (size_t from = 0, to; from < p.part_count; from = to) {
		for (to = from + 1; to < p.part_count && p.parts[to].at / CUF_PAGE_BYTES == p.parts[from].at / CUF_PAGE_BYTES; to++)
			;
		see_page(&p, from, to);
	}
	settle_pins(&p, process, arena);
	free(p.parts);
	free(blocks);
	return p.facts;
}

void holes_layers(const struct fact_fragmentation *fragmentation, const struct page_facts *pages, struct fact_layer layers[LAYER_MAX])
{
	struct fact_layer *page = &layers[LAYER_PAGE], *pool = &layers[LAYER_POOL], *vmm = &layers[LAYER_VMM];
	for (unsigned i = 0; i < LAYER_MAX; i++)
		layers[i] = (struct fact_layer){ CUF_UNKNOWN, "" };
	if (pages->block_count)
		*page = (struct fact_layer){ fragmentation->page_largest_hole_bytes, "exact" };
	for (size_t i = 0; i < fragmentation->pool_count; i++) {
		uint64_t gap = fragmentation->pools[i].largest_gap_bytes;
		if (!fragmentation->pools[i].pool)
			continue; /* the graph pool shows no addresses */
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
