/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tables in private memory. A site has the bytes and the number of its live blocks. A page has
 * the bytes of its blocks, and a map of them in units of 512 bytes, where the driver puts blocks:
 * a hole is whole units, which is what a request can have. An entry is never removed, and one
 * without blocks counts for nothing.
 */
#include "interpose/incident/live_sums.h"

#include <stddef.h>
#include <sys/mman.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/sys.h"
#include "interpose/store/dropped.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { UNIT = CUF_PLACE_BYTES, UNITS = CUF_PAGE_BYTES / UNIT, WORD_BITS = 64 };

/* key: 0 an entry that nobody uses */
struct site {
	uint64_t key, bytes, count;
};

struct page {
	uint64_t key, bytes;
	uint64_t units[UNITS / WORD_BITS]; /* 1: a block is there */
};

/* index: numbers of entries, from 1, at their key's hash; twice as many places as entries. */
struct table {
	uint32_t *index;
	char *entries;
	uint32_t entry_bytes, index_mask, room, used;
	bool is_full;
};

struct sums {
	struct table sites, pages;
	uint64_t ranges; /* reservations and mappings of addresses */
};
static struct sums *sums; /* NULL: not mapped yet */
/* where the map is refused */
static struct sums none = { { .is_full = true }, { .is_full = true }, 0 };

/* The parent's memory stays where it is, as a copy that nobody touches. */
static void forget_sums(void)
{
	sums = NULL;
	none.ranges = 0;
}
CUF_AT_FORK_CHILD(forget_sums);

/* ---- entries by key ---- */

static void *entry_at(const struct table *table, uint32_t number)
{
	return table->entries + (uint64_t)(number - 1) * table->entry_bytes;
}

/* A key is the first word of each entry. */
static uint64_t key_at(const struct table *table, uint32_t number)
{
	return *(const uint64_t *)entry_at(table, number);
}

/* A new entry; 0 when there is no room: what it was for is in no sum. */
static uint32_t new_number(struct table *table, uint64_t key)
{
	uint32_t number = 0;

	if (__atomic_load_n(&table->used, __ATOMIC_RELAXED) < table->room)
		number = __atomic_add_fetch(&table->used, 1, __ATOMIC_RELAXED);
	if (!number || number > table->room) {
		__atomic_store_n(&table->is_full, true, __ATOMIC_RELAXED);
		cuf_count_dropped(CUF_LOST_SMALL);
		return 0;
	}
	*(uint64_t *)entry_at(table, number) = key;
	return number;
}

static uint32_t *place_of(const struct table *table, uint64_t key, uint32_t probe)
{
	const uint32_t hash = (uint32_t)((key * 0x9E3779B97F4A7C15ull) >> 32);

	return &table->index[(hash + probe) & table->index_mask];
}

static __attribute__((noinline)) void *find_or_make(struct table *table, uint64_t key)
{
	uint32_t mine = 0;

	for (uint32_t probe = 0;;) {
		uint32_t *at = place_of(table, key, probe);
		uint32_t number = __atomic_load_n(at, __ATOMIC_ACQUIRE);

		if (number && key_at(table, number) == key) {
			if (mine) /* another thread was first */
				*(uint64_t *)entry_at(table, mine) = 0;
			return entry_at(table, number);
		}
		if (number) {
			probe++;
			continue;
		}
		if (!mine && !(mine = new_number(table, key)))
			return NULL;
		if (__atomic_compare_exchange_n(at, &number, mine, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return entry_at(table, mine);
	}
}

/* The entry of a key, which is made where there is none. NULL: there is no room. */
static void *find(struct table *table, uint64_t key)
{
	const uint32_t number = __atomic_load_n(place_of(table, key, 0), __ATOMIC_ACQUIRE);

	if (__builtin_expect(number && key_at(table, number) == key, 1))
		return entry_at(table, number);
	return find_or_make(table, key);
}

/* ---- the tables ---- */

static uint64_t table_bytes(uint32_t room, uint32_t entry_bytes)
{
	return (uint64_t)room * (2 * sizeof(uint32_t) + entry_bytes);
}

static struct table place_table(char *at, uint32_t room, uint32_t entry_bytes)
{
	return (struct table){
		.index = (uint32_t *)(void *)at,
		.entries = at + 2ull * room * sizeof(uint32_t),
		.entry_bytes = entry_bytes,
		.index_mask = 2 * room - 1,
		.room = room,
	};
}

/* As many sites as twice the stacks, and a page for two blocks of a full ledger. */
static struct sums *map_sums(void)
{
	const uint32_t site_room = 2 * (cuf_recording.stack_mask + 1);
	const uint32_t page_room = (uint32_t)(cuf_recording.ledger_mask / 2 + 1);
	const uint64_t site_bytes = table_bytes(site_room, sizeof(struct site)),
		       page_bytes = table_bytes(page_room, sizeof(struct page));
	struct sums *mapped, *seen = NULL;
	long at = cuf_sys_mmap(NULL, sizeof *mapped + site_bytes + page_bytes,
			       PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (cuf_sys_failed(at)) {
		mapped = &none;
	} else {
		mapped = (struct sums *)at;
		mapped->sites = place_table((char *)(mapped + 1), site_room, sizeof(struct site));
		mapped->pages = place_table((char *)(mapped + 1) + site_bytes, page_room,
					    sizeof(struct page));
	}
	if (__atomic_compare_exchange_n(&sums, &seen, mapped, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return mapped;
	if (mapped != &none)
		cuf_sys_munmap(mapped, sizeof *mapped + site_bytes + page_bytes);
	return seen;
}

static struct sums *get_sums(void)
{
	struct sums *seen = __atomic_load_n(&sums, __ATOMIC_ACQUIRE);

	return __builtin_expect(seen != NULL, 1) ? seen : map_sums();
}

static void add(uint64_t *sum, uint64_t value)
{
	__atomic_fetch_add(sum, value, __ATOMIC_RELAXED);
}

/* ---- call sites ---- */

/* Framework blocks are inside other blocks; mappings, reservations and pools hold no memory. */
static bool is_site_memory(unsigned kind)
{
	return kind != CUF_KIND_MAPPING && kind != CUF_KIND_RESERVATION && kind != CUF_KIND_POOL &&
	       kind != CUF_KIND_FRAMEWORK;
}

/* Never 0: each block has a kind. */
static uint64_t site_key(const struct cuf_block *block)
{
	return (uint64_t)block->device << 40 | (uint64_t)block->kind << 32 | block->stack;
}

static void count_site(struct table *table, const struct cuf_block *block, int sign)
{
	struct site *site = find(table, site_key(block));

	if (site) {
		add(&site->bytes, sign < 0 ? -block->bytes : block->bytes);
		add(&site->count, (uint64_t)(int64_t)sign);
	}
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

static uint32_t entries_used(const struct table *table)
{
	const uint32_t used = __atomic_load_n(&table->used, __ATOMIC_ACQUIRE);

	return used < table->room ? used : table->room;
}

static void read_sites(const struct table *table, struct cuf_incident *incident)
{
	const uint32_t used = entries_used(table);

	for (uint32_t number = 1; number <= used; number++) {
		const struct site *site = entry_at(table, number);
		const struct cuf_site_level level = {
			.stack = (uint32_t)site->key, .kind = (uint8_t)(site->key >> 32),
			.bytes = __atomic_load_n(&site->bytes, __ATOMIC_RELAXED),
			.count = __atomic_load_n(&site->count, __ATOMIC_RELAXED),
		};

		if (level.count && site->key >> 40 == incident->device)
			keep_largest(incident, &level);
	}
}

/* ---- 2 MiB pages ---- */

static void mark_word(uint64_t *word, uint64_t bits, bool is_used)
{
	if (is_used)
		__atomic_fetch_or(word, bits, __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(word, ~bits, __ATOMIC_RELAXED);
}

/* Marks the units from `first` to `last`, or clears them. A word inside has no other block. */
static void mark_units(struct page *page, unsigned first, unsigned last, bool is_used)
{
	uint64_t *word = &page->units[first / WORD_BITS], *end = &page->units[last / WORD_BITS];
	const uint64_t head = ~0ull << first % WORD_BITS,
		       tail = ~0ull >> (WORD_BITS - 1 - last % WORD_BITS);

	if (word == end) {
		mark_word(word, head & tail, is_used);
		return;
	}
	mark_word(word, head, is_used);
	while (++word < end)
		__atomic_store_n(word, is_used ? ~0ull : 0, __ATOMIC_RELAXED);
	mark_word(end, tail, is_used);
}

/* [from, to) is in one page, and no whole page. */
static void count_part(struct table *table, unsigned device, uint64_t from, uint64_t to, int sign)
{
	const uint64_t start = from / CUF_PAGE_BYTES * CUF_PAGE_BYTES;
	struct page *page = find(table, start | device | UNIT);

	if (!page)
		return;
	add(&page->bytes, sign < 0 ? from - to : to - from);
	mark_units(page, (unsigned)((from - start) / UNIT),
		   (unsigned)((to - 1 - start) / UNIT), sign > 0);
}

/* The parts of a block that leave room in a page: in that of its head and in that of its tail. */
static void count_pages(struct table *table, const struct cuf_block *block, int sign)
{
	const uint64_t start = cuf_key_addr(block->key), end = start + block->bytes;
	const uint64_t head_end = (start / CUF_PAGE_BYTES + 1) * CUF_PAGE_BYTES;
	const uint64_t tail = end / CUF_PAGE_BYTES * CUF_PAGE_BYTES;

	if (end <= head_end) {
		if (block->bytes && block->bytes < CUF_PAGE_BYTES)
			count_part(table, block->device, start, end, sign);
		return;
	}
	if (start % CUF_PAGE_BYTES)
		count_part(table, block->device, start, head_end, sign);
	if (end != tail)
		count_part(table, block->device, tail, end, sign);
}

/* The most units in a row without a block. */
static unsigned longest_hole(const struct page *page)
{
	unsigned best = 0, run = 0;

	for (unsigned i = 0; i < UNITS / WORD_BITS; i++) {
		uint64_t used = __atomic_load_n(&page->units[i], __ATOMIC_RELAXED);
		unsigned left = WORD_BITS;

		/* each turn takes free units, then the used ones behind them */
		while (used) {
			const unsigned free_units = (unsigned)__builtin_ctzll(used);
			const uint64_t behind = ~(used >> free_units);
			const unsigned taken = behind ? (unsigned)__builtin_ctzll(behind) :
							WORD_BITS;

			run += free_units;
			best = run > best ? run : best;
			run = 0;
			left -= free_units + taken;
			used = left ? used >> (free_units + taken) : 0;
		}
		run += left;
	}
	return run > best ? run : best;
}

static void read_page(const struct page *page, struct cuf_incident *incident)
{
	const uint64_t bytes = __atomic_load_n(&page->bytes, __ATOMIC_RELAXED);
	const uint64_t free_bytes = bytes < CUF_PAGE_BYTES ? CUF_PAGE_BYTES - bytes : 0;

	if (!bytes)
		return;
	incident->pages++;
	incident->pages_partial += free_bytes != 0;
	incident->page_free_bytes += free_bytes;
	if (free_bytes > incident->page_hole_bytes) {
		const uint64_t hole = (uint64_t)longest_hole(page) * UNIT;

		if (hole > incident->page_hole_bytes)
			incident->page_hole_bytes = hole;
	}
}

static void read_pages(const struct table *table, struct cuf_incident *incident)
{
	const uint32_t used = entries_used(table);

	for (uint32_t number = 1; number <= used; number++) {
		const struct page *page = entry_at(table, number);

		if (page->key % UNIT == incident->device)
			read_page(page, incident);
	}
}

/* ---- both ---- */

void cuf_live_sums_count(const struct cuf_block *block, int sign)
{
	struct sums *mapped = get_sums();

	if (block->kind == CUF_KIND_MAPPING || block->kind == CUF_KIND_RESERVATION)
		add(&mapped->ranges, (uint64_t)(int64_t)sign);
	if (mapped == &none) {
		cuf_count_dropped(CUF_LOST_SMALL);
		return;
	}
	if (is_site_memory(block->kind))
		count_site(&mapped->sites, block, sign);
	if (block->kind == CUF_KIND_DEVICE)
		count_pages(&mapped->pages, block, sign);
}

void cuf_live_sums_read(struct cuf_incident *incident)
{
	const struct sums *mapped = get_sums();

	if (!mapped->sites.is_full)
		read_sites(&mapped->sites, incident);
	if (!mapped->pages.is_full) {
		read_pages(&mapped->pages, incident);
		return;
	}
	incident->page_hole_bytes = incident->page_free_bytes = CUF_UNKNOWN;
	incident->pages = incident->pages_partial = CUF_UNKNOWN;
}

bool cuf_live_sums_have_ranges(void)
{
	return __atomic_load_n(&get_sums()->ranges, __ATOMIC_RELAXED) != 0;
}
