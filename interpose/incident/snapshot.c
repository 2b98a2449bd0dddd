/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scratch array of (key, value) pairs, sorted in place: by address for holes in 2 MiB pages and reservations, by
 * stack for sites. 100,000 blocks take some 15 ms, on the failure path alone.
 */
#include "interpose/incident/snapshot.h"

#include <stdbool.h>
#include <sys/mman.h>
#include "interpose/store/ledger.h"
#include "interpose/platform/sort.h"
#include "interpose/store/recording.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

static struct scratch {
	struct cuf_pair *pairs;
	uint64_t room, used;
	bool overflow;
	unsigned device, kind;
} scratch;
static uint32_t taken;

static void put(uint64_t key, uint64_t value)
{
	if (scratch.used < scratch.room)
		scratch.pairs[scratch.used++] = (struct cuf_pair){ key, value };
	else
		scratch.overflow = true;
}

/* The parts of a block that leave room in a page: its head's page and its tail's page, as (address, bytes). */
static void put_partial_pages(const struct cuf_block *b, void *unused)
{
	uint64_t at = cuf_key_addr(b->key), end = at + b->bytes, page_end;
	(void)unused;
	if (b->kind != CUF_KIND_DEVICE || b->device != scratch.device || !b->bytes)
		return;
	page_end = (at / CUF_PAGE_BYTES + 1) * CUF_PAGE_BYTES;
	if (end <= page_end) {
		if (b->bytes < CUF_PAGE_BYTES)
			put(at, b->bytes);
		return;
	}
	if (at % CUF_PAGE_BYTES)
		put(at, page_end - at);
	if (end % CUF_PAGE_BYTES)
		put(end - end % CUF_PAGE_BYTES, end % CUF_PAGE_BYTES);
}

static void see_hole(struct cuf_incident *i, uint64_t bytes, uint64_t *page_free)
{
	if (bytes > i->page_hole_bytes)
		i->page_hole_bytes = bytes;
	*page_free += bytes;
}

static void page_holes(struct cuf_incident *i)
{
	const struct cuf_pair *p = scratch.pairs;
	cuf_sort_pairs(scratch.pairs, scratch.used);
	for (uint64_t n = 0; n < scratch.used;) {
		uint64_t page = p[n].key / CUF_PAGE_BYTES * CUF_PAGE_BYTES, at = page, page_free = 0;
		for (; n < scratch.used && p[n].key / CUF_PAGE_BYTES * CUF_PAGE_BYTES == page; n++) {
			if (p[n].key > at)
				see_hole(i, p[n].key - at, &page_free);
			at = p[n].key + p[n].value > at ? p[n].key + p[n].value : at;
		}
		if (page + CUF_PAGE_BYTES > at)
			see_hole(i, page + CUF_PAGE_BYTES - at, &page_free);
		i->pages++;
		i->pages_partial += page_free != 0;
		i->page_free_bytes += page_free;
	}
}

/* Reservations and mappings in one address order; a reservation's start is marked in the lowest bit of the value. */
static void put_ranges(const struct cuf_block *b, void *unused)
{
	(void)unused;
	if (b->kind == CUF_KIND_RESERVATION)
		put(cuf_key_addr(b->key) << 1, b->bytes);
	else if (b->kind == CUF_KIND_MAPPING)
		put(cuf_key_addr(b->key) << 1 | 1, b->bytes);
}

static void vmm_holes(struct cuf_incident *i)
{
	uint64_t at = 0, end = 0;
	bool any = false;
	cuf_sort_pairs(scratch.pairs, scratch.used);
	for (uint64_t n = 0; n <= scratch.used; n++) {
		uint64_t start = n < scratch.used ? scratch.pairs[n].key >> 1 : 0, bytes = n < scratch.used ? scratch.pairs[n].value : 0;
		bool mapping = n < scratch.used && scratch.pairs[n].key & 1;
		if (mapping) {
			i->vmm_mapped_bytes += bytes;
			if (start >= at && start - at > i->vmm_hole_bytes && start <= end)
				i->vmm_hole_bytes = start - at;
			at = start + bytes > at ? start + bytes : at;
			continue;
		}
		if (any && end > at && end - at > i->vmm_hole_bytes)
			i->vmm_hole_bytes = end - at;
		at = start;
		end = start + bytes;
		any = true;
	}
}

static void put_sites(const struct cuf_block *b, void *unused)
{
	(void)unused;
	if (b->device == scratch.device && b->kind != CUF_KIND_MAPPING && b->kind != CUF_KIND_RESERVATION && b->kind != CUF_KIND_POOL &&
	    b->kind != CUF_KIND_FRAMEWORK) /* inside other blocks; and millions of them would leave these no room */
		put((uint64_t)b->stack << 8 | b->kind, b->bytes);
}

static void keep_largest(struct cuf_incident *i, const struct cuf_site_level *site)
{
	unsigned at = (unsigned)i->site_count;
	if (at == CUF_INCIDENT_SITES && i->sites[at - 1].bytes >= site->bytes)
		return;
	if (at < CUF_INCIDENT_SITES)
		i->site_count++;
	else
		at--;
	for (; at > 0 && i->sites[at - 1].bytes < site->bytes; at--)
		i->sites[at] = i->sites[at - 1];
	i->sites[at] = *site;
}

static void largest_sites(struct cuf_incident *i)
{
	cuf_sort_pairs(scratch.pairs, scratch.used);
	for (uint64_t n = 0; n < scratch.used;) {
		uint64_t key = scratch.pairs[n].key;
		struct cuf_site_level site = { (uint32_t)(key >> 8), (uint32_t)(key & 255), 0, 0 };
		for (; n < scratch.used && scratch.pairs[n].key == key; n++) {
			site.bytes += scratch.pairs[n].value;
			site.count++;
		}
		keep_largest(i, &site);
	}
}

static bool collect(void (*see)(const struct cuf_block *, void *))
{
	scratch.used = 0;
	scratch.overflow = false;
	cuf_ledger_each(see, NULL);
	return !scratch.overflow;
}

static bool have_scratch(void)
{
	long at;
	if (scratch.pairs)
		return true;
	scratch.room = 2 * (cuf_recording.ledger_mask + 1);
	at = cuf_sys_mmap(NULL, scratch.room * sizeof *scratch.pairs, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cuf_sys_failed(at))
		return false;
	scratch.pairs = (struct cuf_pair *)at;
	return true;
}

void cuf_snapshot_take(struct cuf_incident *i)
{
	bool mine = !__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE);
	if (!mine || !have_scratch()) {
		i->page_hole_bytes = i->pages = i->pages_partial = i->page_free_bytes = i->vmm_hole_bytes = i->vmm_mapped_bytes = CUF_UNKNOWN;
	} else {
		scratch.device = i->device;
		if (collect(put_partial_pages))
			page_holes(i);
		if (collect(put_ranges))
			vmm_holes(i);
		if (collect(put_sites))
			largest_sites(i);
	}
	if (mine)
		__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}
