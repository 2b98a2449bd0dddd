/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the ledger sums up call sites by a hash table, and fills scratch arrays of
 * (address, bytes) pairs, which are sorted for free ranges in 2 MiB pages and reservations. 100,000
 * blocks take some 4 ms (tests/bench/README.md), only on the failure path. Programs that ask until
 * they are refused get a snapshot for each refusal only as long as snapshots take a fiftieth of the
 * time.
 */
#include "interpose/incident/snapshot.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sort.h"
#include "interpose/platform/sys.h"
#include "interpose/store/ledger.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

/* Pairs of one kind, from the ledger. */
struct list {
	struct cuf_pair *pairs;
	uint64_t used;
};

/* What one call site holds of one kind. place: of its number in the index */
struct site {
	struct cuf_site_level level;
	uint32_t place;
};

/*
 * For one thread at a time. A block makes two pairs of pages, or one of ranges, and at most one
 * site. So there is room for a full ledger. `index` is a hash table of numbers of sites, from 1,
 * half empty at least; it is all 0 between snapshots.
 */
static struct {
	struct list pages, ranges;
	struct cuf_pair *room, *spare; /* all of it; what sorting may overwrite */
	struct site *sites;
	uint32_t *index;
	uint32_t index_mask, site_count;
	unsigned device;
} scratch;
static uint32_t is_taken;

static void add_pair(struct list *list, uint64_t key, uint64_t value)
{
	list->pairs[list->used++] = (struct cuf_pair){ key, value };
}

/* What was sorted may lie where the spare room was. */
static void sort_list(struct list *list)
{
	struct cuf_pair *sorted = cuf_sort_pairs_using(list->pairs, scratch.spare, list->used);

	if (sorted != list->pairs)
		scratch.spare = list->pairs;
	list->pairs = sorted;
}

/* ---- 2 MiB pages ---- */

static uint64_t page_of(uint64_t addr) { return addr / CUF_PAGE_BYTES * CUF_PAGE_BYTES; }

/*
 * The parts of a block that leave room in a page: in the page of its head and in that of its tail,
 * as (address, bytes).
 */
static void add_partial_pages(const struct cuf_block *block)
{
	uint64_t start = cuf_key_addr(block->key), end = start + block->bytes;
	uint64_t page_end = page_of(start) + CUF_PAGE_BYTES;

	if (block->kind != CUF_KIND_DEVICE || block->device != scratch.device || !block->bytes)
		return;
	if (end <= page_end) {
		if (block->bytes < CUF_PAGE_BYTES)
			add_pair(&scratch.pages, start, block->bytes);
		return;
	}
	if (start % CUF_PAGE_BYTES)
		add_pair(&scratch.pages, start, page_end - start);
	if (end % CUF_PAGE_BYTES)
		add_pair(&scratch.pages, page_of(end), end % CUF_PAGE_BYTES);
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
	const struct cuf_pair *pairs = scratch.pages.pairs;
	uint64_t page = page_of(pairs[from].key), at = page, page_free = 0, i;

	for (i = from; i < scratch.pages.used && page_of(pairs[i].key) == page; i++) {
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
	sort_list(&scratch.pages);
	for (uint64_t at = 0; at < scratch.pages.used;)
		at = measure_page(incident, at);
}

/* ---- reservations of addresses ---- */

/* Reservations and mappings in one address order. The lowest bit of the key marks a mapping. */
static void add_range(const struct cuf_block *block)
{
	if (block->kind == CUF_KIND_RESERVATION)
		add_pair(&scratch.ranges, cuf_key_addr(block->key) << 1, block->bytes);
	else if (block->kind == CUF_KIND_MAPPING)
		add_pair(&scratch.ranges, cuf_key_addr(block->key) << 1 | 1, block->bytes);
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

	sort_list(&scratch.ranges);
	for (uint64_t i = 0; i < scratch.ranges.used; i++) {
		const struct cuf_pair *range = &scratch.ranges.pairs[i];
		uint64_t start = range->key >> 1, bytes = range->value;

		if (!(range->key & 1)) {
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

/* The number of the site in the index: 0 where it has none yet. */
static uint32_t *find_site(uint32_t stack, uint32_t kind)
{
	uint32_t place = (uint32_t)((((uint64_t)stack << 8 | kind) * 0x9E3779B97F4A7C15ull) >> 32);

	for (;; place++) {
		uint32_t *number = &scratch.index[place & scratch.index_mask];
		const struct cuf_site_level *level;

		if (!*number)
			return number;
		level = &scratch.sites[*number - 1].level;
		if (level->stack == stack && level->kind == kind)
			return number;
	}
}

static void add_site(const struct cuf_block *block)
{
	uint32_t *number;
	struct cuf_site_level *level;

	if (block->device != scratch.device || !is_site_memory(block->kind))
		return;
	number = find_site(block->stack, block->kind);
	if (!*number) {
		scratch.sites[scratch.site_count] = (struct site){
			{ .stack = block->stack, .kind = block->kind },
			(uint32_t)(number - scratch.index),
		};
		*number = ++scratch.site_count;
	}
	level = &scratch.sites[*number - 1].level;
	level->bytes += block->bytes;
	level->count++;
}

/* Of equal ones, the older stack and the lower kind come first, wherever the blocks lie. */
static bool is_larger(const struct cuf_site_level *a, const struct cuf_site_level *b)
{
	if (a->bytes != b->bytes)
		return a->bytes > b->bytes;
	return a->stack != b->stack ? a->stack < b->stack : a->kind < b->kind;
}

/* Keeps the incident's sites sorted, largest first. */
static void keep_largest(struct cuf_incident *incident, const struct cuf_site_level *site)
{
	unsigned at = (unsigned)incident->site_count;
	if (at == CUF_INCIDENT_SITES && !is_larger(site, &incident->sites[at - 1]))
		return;
	if (at < CUF_INCIDENT_SITES)
		incident->site_count++;
	else
		at--;
	for (; at > 0 && is_larger(site, &incident->sites[at - 1]); at--)
		incident->sites[at] = incident->sites[at - 1];
	incident->sites[at] = *site;
}

/* Leaves the index empty. */
static void find_largest_sites(struct cuf_incident *incident)
{
	for (uint32_t i = 0; i < scratch.site_count; i++) {
		keep_largest(incident, &scratch.sites[i].level);
		scratch.index[scratch.sites[i].place] = 0;
	}
	scratch.site_count = 0;
}

/* ---- the snapshot ---- */

static bool have_scratch(void)
{
	const uint64_t room = cuf_recording.ledger_mask + 1;

	if (!scratch.room) {
		uint64_t bytes = room * (6 * sizeof *scratch.room + sizeof(struct site));
		long at = cuf_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (cuf_sys_failed(at))
			return false;
		scratch.room = (struct cuf_pair *)at;
	}
	scratch.spare = scratch.room;
	scratch.pages = (struct list){ scratch.spare + 2 * room, 0 };
	scratch.ranges = (struct list){ scratch.spare + 4 * room, 0 };
	scratch.index = (uint32_t *)(scratch.spare + 5 * room);
	scratch.index_mask = (uint32_t)(2 * room - 1);
	scratch.sites = (struct site *)(scratch.spare + 6 * room);
	return true;
}

static void collect(const struct cuf_block *block, void *unused)
{
	(void)unused;
	add_partial_pages(block);
	add_range(block);
	add_site(block);
}

static void measure(struct cuf_incident *incident)
{
	scratch.device = incident->device;
	cuf_ledger_each(collect, NULL);
	measure_pages(incident);
	measure_reservations(incident);
	find_largest_sites(incident);
}

/* ---- repeated refusals ---- */

/* Of this process, about the last snapshot that was measured. The next one takes about as long. */
static struct {
	/* of the ledger; equal ones mean that nothing has changed since */
	uint64_t changes;
	uint64_t ended_ns, took_ns;
	/* what snapshots may still take; CUF_UNKNOWN: none was measured yet */
	uint64_t credit_ns;
	struct cuf_incident incident;
} last = { .credit_ns = CUF_UNKNOWN };

/* A ladder of attempts fits into the credit; a program that asks all day gets a fiftieth of it. */
enum { CREDIT_NS = 200000000, PACE = 50 };

/* A thread that is not in the child may have been measuring. */
static void forget_last(void)
{
	last.credit_ns = CUF_UNKNOWN;
	last.took_ns = 0;
	if (is_taken && scratch.index)
		memset(scratch.index, 0,
		       (scratch.index_mask + 1ull) * sizeof *scratch.index);
	scratch.site_count = 0;
	is_taken = 0;
}
CUF_AT_FORK_CHILD(forget_last);

static void copy_snapshot(struct cuf_incident *to, const struct cuf_incident *from)
{
	to->page_hole_bytes = from->page_hole_bytes;
	to->page_free_bytes = from->page_free_bytes;
	to->pages = from->pages;
	to->pages_partial = from->pages_partial;
	to->vmm_hole_bytes = from->vmm_hole_bytes;
	to->vmm_mapped_bytes = from->vmm_mapped_bytes;
	memcpy(to->sites, from->sites, sizeof to->sites);
	to->site_count = from->site_count;
}

static void leave_unknown(struct cuf_incident *incident)
{
	incident->page_hole_bytes = incident->page_free_bytes = CUF_UNKNOWN;
	incident->pages = incident->pages_partial = CUF_UNKNOWN;
	incident->vmm_hole_bytes = incident->vmm_mapped_bytes = CUF_UNKNOWN;
}

static uint64_t credit_at(uint64_t now_ns)
{
	uint64_t credit_ns;

	if (last.credit_ns == CUF_UNKNOWN)
		return CREDIT_NS;
	credit_ns = last.credit_ns + (now_ns - last.ended_ns) / PACE;
	return credit_ns < CREDIT_NS ? credit_ns : CREDIT_NS;
}

/* The same blocks have the same holes. Else they are measured, when it is affordable. */
static void take(struct cuf_incident *incident)
{
	const uint64_t changes = cuf_ledger_changes();
	const uint64_t credit_ns = credit_at(cuf_now_ns());
	uint64_t began_ns;

	if (last.credit_ns != CUF_UNKNOWN && last.changes == changes &&
	    last.incident.device == incident->device) {
		copy_snapshot(incident, &last.incident);
		return;
	}
	if (credit_ns < last.took_ns || !have_scratch()) {
		leave_unknown(incident);
		return;
	}
	/* of the processor: on a busy machine a program sees as much as on a quiet one */
	began_ns = cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	measure(incident);
	last.took_ns = cuf_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	copy_snapshot(&last.incident, incident);
	last.incident.device = incident->device;
	last.changes = changes;
	last.ended_ns = cuf_now_ns();
	if (last.took_ns > CREDIT_NS) /* more than that is never had */
		last.took_ns = CREDIT_NS;
	last.credit_ns = credit_ns > last.took_ns ? credit_ns - last.took_ns : 0;
}

static void take_on_stack(void *incident) { take(incident); }

void cuf_snapshot_take(struct cuf_incident *incident)
{
	if (__atomic_exchange_n(&is_taken, 1, __ATOMIC_ACQUIRE)) {
		leave_unknown(incident);
		return;
	}
	if (!cuf_on_side_stack(take_on_stack, incident))
		leave_unknown(incident);
	__atomic_store_n(&is_taken, 0, __ATOMIC_RELEASE);
}
