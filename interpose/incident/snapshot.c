/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scratch array of (key, value) pairs, sorted in place: by address for free ranges in 2 MiB
 * pages and reservations, by stack for sites. 100,000 blocks take some 15 ms, only on the failure
 * path.
 */
#include "interpose/incident/snapshot.h"

#include <stdbool.h>
#include <sys/mman.h>
#include "interpose/platform/sort.h"
#include "interpose/platform/sys.h"
#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static struct {
	struct cuf_pair *pairs;
	uint64_t room, used;
	bool is_full;        /* something did not fit: the pass is dropped */
	unsigned device;
} scratch;
static uint32_t is_taken;    /* one thread at a time */

/* A pair that does not fit is dropped, and the caller finds the scratch memory full. */
static void add_pair(uint64_t key, uint64_t value)
{
	if (scratch.used < scratch.room)
		scratch.pairs[scratch.used++] = (struct cuf_pair){ key, value };
	else
		scratch.is_full = true;
}

/* ---- 2 MiB pages ---- */

static uint64_t page_of(uint64_t addr) { return addr / CUF_PAGE_BYTES * CUF_PAGE_BYTES; }

/*
 * The parts of a block that leave room in a page: in the page of its head and in that of its tail,
 * as (address, bytes).
 */
static void add_partial_pages(const struct cuf_block *block, void *unused)
{
	uint64_t start = cuf_key_addr(block->key), end = start + block->bytes;
	uint64_t page_end = page_of(start) + CUF_PAGE_BYTES;
	(void)unused;
	if (block->kind != CUF_KIND_DEVICE || block->device != scratch.device || !block->bytes)
		return;
	if (end <= page_end) {
		if (block->bytes < CUF_PAGE_BYTES)
			add_pair(start, block->bytes);
		return;
	}
	if (start % CUF_PAGE_BYTES)
		add_pair(start, page_end - start);
	if (end % CUF_PAGE_BYTES)
		add_pair(page_of(end), end % CUF_PAGE_BYTES);
}

static void note_free_range(struct cuf_incident *incident, uint64_t bytes, uint64_t *page_free)
{
	if (bytes > incident->page_hole_bytes)
		incident->page_hole_bytes = bytes;
	*page_free += bytes;
}

/*
 * Free ranges of one page, whose blocks start at pairs[from]. Returns where the next page's start.
 */
static uint64_t measure_page(struct cuf_incident *incident, uint64_t from)
{
	const struct cuf_pair *pairs = scratch.pairs;
	uint64_t page = page_of(pairs[from].key), at = page, page_free = 0, i;
	for (i = from; i < scratch.used && page_of(pairs[i].key) == page; i++) {
		uint64_t end = pairs[i].key + pairs[i].value;
		if (pairs[i].key > at)
			note_free_range(incident, pairs[i].key - at, &page_free);
		if (end > at)
			at = end;
	}
	if (page + CUF_PAGE_BYTES > at)
		note_free_range(incident, page + CUF_PAGE_BYTES - at, &page_free);
	incident->pages++;
	incident->pages_partial += page_free != 0;
	incident->page_free_bytes += page_free;
	return i;
}

/* Pages that blocks fill completely have no pair and are not counted. */
static void measure_pages(struct cuf_incident *incident)
{
	cuf_sort_pairs(scratch.pairs, scratch.used);
	for (uint64_t at = 0; at < scratch.used;)
		at = measure_page(incident, at);
}

/* ---- reservations of addresses ---- */

/* Reservations and mappings in one address order. The lowest bit of the key marks a mapping. */
static void add_range(const struct cuf_block *block, void *unused)
{
	(void)unused;
	if (block->kind == CUF_KIND_RESERVATION)
		add_pair(cuf_key_addr(block->key) << 1, block->bytes);
	else if (block->kind == CUF_KIND_MAPPING)
		add_pair(cuf_key_addr(block->key) << 1 | 1, block->bytes);
}

/* The reservation being walked: its unmapped addresses from `at` on. */
struct reservation {
	uint64_t at, end;
};

static void note_unmapped(struct cuf_incident *incident, uint64_t from, uint64_t to)
{
	if (to > from && to - from > incident->vmm_hole_bytes)
		incident->vmm_hole_bytes = to - from;
}

/*
 * The largest unmapped run inside one reservation, its tail included. A mapping outside every
 * reservation counts as mapped only.
 */
static void measure_reservations(struct cuf_incident *incident)
{
	struct reservation open = { 0, 0 };
	cuf_sort_pairs(scratch.pairs, scratch.used);
	for (uint64_t i = 0; i < scratch.used; i++) {
		uint64_t start = scratch.pairs[i].key >> 1, bytes = scratch.pairs[i].value;
		if (!(scratch.pairs[i].key & 1)) {
			note_unmapped(incident, open.at, open.end);
			open = (struct reservation){ start, start + bytes };
			continue;
		}
		incident->vmm_mapped_bytes += bytes;
		if (start <= open.end)
			note_unmapped(incident, open.at, start);
		if (start + bytes > open.at)
			open.at = start + bytes;
	}
	note_unmapped(incident, open.at, open.end);
}

/* ---- call sites ---- */

/* Framework blocks are inside other blocks, and millions of them would leave no room for these. */
static bool is_site_memory(unsigned kind)
{
	return kind != CUF_KIND_MAPPING && kind != CUF_KIND_RESERVATION && kind != CUF_KIND_POOL &&
	       kind != CUF_KIND_FRAMEWORK;
}

static void add_site(const struct cuf_block *block, void *unused)
{
	(void)unused;
	if (block->device == scratch.device && is_site_memory(block->kind))
		add_pair((uint64_t)block->stack << 8 | block->kind, block->bytes);
}

/* Keeps the incident's sites sorted, largest first. */
static void keep_largest(struct cuf_incident *incident, const struct cuf_site_level *site)
{
	unsigned at = (unsigned)incident->site_count;
	if (at == CUF_INCIDENT_SITES && incident->sites[at - 1].bytes >= site->bytes)
		return;
	if (at < CUF_INCIDENT_SITES)
		incident->site_count++;
	else
		at--;
	for (; at > 0 && incident->sites[at - 1].bytes < site->bytes; at--)
		incident->sites[at] = incident->sites[at - 1];
	incident->sites[at] = *site;
}

/* Blocks of one site and kind are neighbours after the sort. The sort costs n log n once per
 * incident, and no memory. */
static void find_largest_sites(struct cuf_incident *incident)
{
	cuf_sort_pairs(scratch.pairs, scratch.used);
	for (uint64_t i = 0; i < scratch.used;) {
		uint64_t key = scratch.pairs[i].key;
		struct cuf_site_level site = { (uint32_t)(key >> 8), (uint32_t)(key & 255), 0, 0 };
		for (; i < scratch.used && scratch.pairs[i].key == key; i++) {
			site.bytes += scratch.pairs[i].value;
			site.count++;
		}
		keep_largest(incident, &site);
	}
}

/* ---- the snapshot ---- */

/* One pass over the ledger. False: the scratch memory was too small. */
static bool collect(void (*visit)(const struct cuf_block *, void *))
{
	scratch.used = 0;
	scratch.is_full = false;
	cuf_ledger_each(visit, NULL);
	return !scratch.is_full;
}

/* A block makes two pairs at most. */
static bool have_scratch(void)
{
	long at;
	if (scratch.pairs)
		return true;
	scratch.room = 2 * (cuf_recording.ledger_mask + 1);
	at = cuf_sys_mmap(NULL, scratch.room * sizeof *scratch.pairs, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (cuf_sys_failed(at))
		return false;
	scratch.pairs = (struct cuf_pair *)at;
	return true;
}

/* Three passes over the ledger with the same scratch memory, one after the other. */
static void take(struct cuf_incident *incident)
{
	scratch.device = incident->device;
	if (collect(add_partial_pages))
		measure_pages(incident);
	if (collect(add_range))
		measure_reservations(incident);
	if (collect(add_site))
		find_largest_sites(incident);
}

void cuf_snapshot_take(struct cuf_incident *incident)
{
	bool is_mine = !__atomic_exchange_n(&is_taken, 1, __ATOMIC_ACQUIRE);
	if (is_mine && have_scratch()) {
		take(incident);
	} else {
		incident->page_hole_bytes = incident->page_free_bytes = CUF_UNKNOWN;
		incident->pages = incident->pages_partial = CUF_UNKNOWN;
		incident->vmm_hole_bytes = incident->vmm_mapped_bytes = CUF_UNKNOWN;
	}
	if (is_mine)
		__atomic_store_n(&is_taken, 0, __ATOMIC_RELEASE);
}
