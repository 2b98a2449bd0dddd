/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of refused requests that follow each other. */
#include "tests/unit/fixtures/recorder.h"
#include <pthread.h>
#include <sys/wait.h>
#include "interpose/incident/live_sums.h"
#include "interpose/store/ledger.h"

#define BASE 0x700000000000ull

static const struct cuf_incident *last(void)
{
	const struct cuf_incident *found = NULL;

	for (uint64_t i = 0; i < cuf_recording.incident_slots; i++) {
		const struct cuf_incident *incident = &cuf_recording.incidents[i];

		if (incident->number && (!found || incident->number > found->number))
			found = incident;
	}
	return found;
}

static void test_snapshot__the_same_blocks_have_the_same_holes(void **state)
{
	struct cuf_incident first;

	fixture_alloc(CUF_KIND_DEVICE, BASE, 512 << 10);
	fixture_fail(1ull << 40);
	first = *last();
	fixture_fail(1ull << 41);
	assert_true(last()->number > first.number);
	assert_int_equal(last()->page_hole_bytes, (2 << 20) - (512 << 10));
	assert_int_equal(last()->page_hole_bytes, first.page_hole_bytes);
	assert_int_equal(last()->pages_partial, 1);
	assert_int_equal(last()->site_count, first.site_count);
	assert_memory_equal(last()->sites, first.sites, sizeof first.sites);
	assert_true(fixture_free(CUF_KIND_DEVICE, BASE));
}

static void test_snapshot__a_change_between_refusals_is_seen(void **state)
{
	fixture_alloc(CUF_KIND_DEVICE, BASE, 512 << 10);
	fixture_fail(1ull << 40);
	fixture_alloc(CUF_KIND_DEVICE, BASE + (1 << 20), 512 << 10);
	fixture_fail(1ull << 40);
	assert_int_equal(last()->page_hole_bytes, 512 << 10);
	assert_int_equal(last()->page_free_bytes, 1 << 20);
	/* the same number of blocks and bytes, elsewhere */
	assert_true(fixture_free(CUF_KIND_DEVICE, BASE));
	fixture_alloc(CUF_KIND_DEVICE, BASE + (512 << 10), 512 << 10);
	fixture_fail(1ull << 40);
	assert_int_equal(last()->page_hole_bytes, 512 << 10);
	assert_true(fixture_free(CUF_KIND_DEVICE, BASE + (1 << 20)));
	fixture_fail(1ull << 40);
	assert_int_equal(last()->page_hole_bytes, 1 << 20);
	assert_true(fixture_free(CUF_KIND_DEVICE, BASE + (512 << 10)));
}

/* A program that allocates and is refused all day: no snapshot after a while, and none is wrong. */
static void test_snapshot__refusals_all_day_are_paced(void **state)
{
	unsigned unknown = 0, known = 0;

	for (unsigned i = 0; i < 20000; i++)
		fixture_alloc(CUF_KIND_MAPPING, BASE + ((uint64_t)i << 16), 4096);
	for (unsigned i = 0; i < 3000 && !unknown; i++) {
		fixture_alloc(CUF_KIND_DEVICE, BASE - (2 << 20), 4096);
		fixture_fail(1ull << 40);
		if (last()->page_hole_bytes == CUF_UNKNOWN) {
			unknown++;
			assert_int_equal(last()->pages, CUF_UNKNOWN);
			assert_int_equal(last()->vmm_mapped_bytes, CUF_UNKNOWN);
			assert_int_equal(last()->site_count, 0);
		} else {
			known++;
			assert_int_equal(last()->page_hole_bytes, (2 << 20) - 4096);
			assert_int_equal(last()->vmm_mapped_bytes, 20000 * 4096);
		}
		assert_true(fixture_free(CUF_KIND_DEVICE, BASE - (2 << 20)));
	}
	assert_true(known > 8); /* a ladder of attempts */
	assert_int_equal(unknown, 1);
}

enum { SITES = 700, BLOCKS = 5 };

static unsigned kind_of(uint32_t i) { return i % 2 ? CUF_KIND_ARRAY : CUF_KIND_DEVICE; }

static uint32_t stack_of(uint32_t site) { return 1 + site * 37; }

static uint64_t key_of(uint32_t i)
{
	return cuf_key(cuf_kind_space(kind_of(i)), BASE + ((uint64_t)i << 22));
}

/* Blocks of each site, of both kinds, in turn; larger ones for later sites. */
static void add_sites(void)
{
	for (uint32_t i = 0; i < SITES * BLOCKS * 2; i++) {
		const uint32_t stack = stack_of(i / 2 % SITES);
		struct cuf_block old, block = {
			.key = key_of(i), .bytes = stack, .stack = stack, .kind = (uint8_t)kind_of(i),
		};

		assert_true(cuf_ledger_add(&block, &old));
		cuf_live_sums_count(&block, 1);
	}
}

/* Hundreds of sites, each with two kinds: the largest are there with the sums of their blocks. */
static void test_snapshot__sites_have_the_sums_of_their_blocks(void **state)
{
	struct cuf_block old;

	add_sites();
	for (unsigned again = 0; again < 2; again++) {
		fixture_fail(1ull << 40);
		fixture_alloc(CUF_KIND_DEVICE, BASE - (2 << 20), 1); /* is measured anew */
		assert_int_equal(last()->site_count, CUF_INCIDENT_SITES);
		for (unsigned i = 0; i < CUF_INCIDENT_SITES; i++) {
			const struct cuf_site_level *site = &last()->sites[i];

			assert_int_equal(site->stack, stack_of(SITES - 1 - i / 2));
			assert_int_equal(site->bytes, BLOCKS * (uint64_t)site->stack);
			assert_int_equal(site->count, BLOCKS);
			assert_int_equal(site->kind, i % 2 ? CUF_KIND_ARRAY : CUF_KIND_DEVICE);
		}
	}
	assert_true(fixture_free(CUF_KIND_DEVICE, BASE - (2 << 20)));
	for (uint32_t i = 0; i < SITES * BLOCKS * 2; i++) {
		assert_true(cuf_ledger_take(key_of(i), &old));
		cuf_live_sums_count(&old, -1);
	}
	fixture_fail(1ull << 40);
	for (unsigned i = 0; i < last()->site_count; i++)
		assert_false(last()->sites[i].stack % 37 == 1 && last()->sites[i].bytes);
}

enum { UNIT = 512, PAGE = 2 << 20, PAGES = 6, SLOTS = 40 };

/* What the driver could have placed blocks into, unit by unit. */
struct truth {
	uint8_t used[PAGES * PAGE / UNIT];
	uint64_t bytes[PAGES];
};

/* Whole pages of a block leave no room, and are none of these. */
static void mark(struct truth *truth, uint64_t at, uint64_t bytes, int sign)
{
	for (uint64_t page = at / PAGE; page < PAGES; page++) {
		uint64_t from = at > page * PAGE ? at : page * PAGE;
		uint64_t to = at + bytes < (page + 1) * PAGE ? at + bytes : (page + 1) * PAGE;

		if (from >= to || to - from == PAGE)
			continue;
		truth->bytes[page] += sign > 0 ? to - from : from - to;
		for (uint64_t unit = from / UNIT; unit * UNIT < to; unit++)
			truth->used[unit] = sign > 0;
	}
}

static bool is_free(const struct truth *truth, uint64_t at, uint64_t bytes)
{
	for (uint64_t unit = at / UNIT; unit * UNIT < at + bytes; unit++)
		if (unit >= sizeof truth->used || truth->used[unit])
			return false;
	return true;
}

static void assert_truth(const struct truth *truth)
{
	uint64_t hole = 0, free_bytes = 0, pages = 0, partial = 0;

	for (unsigned page = 0; page < PAGES; page++) {
		uint64_t run = 0;

		if (!truth->bytes[page])
			continue;
		pages++;
		partial += truth->bytes[page] < PAGE;
		free_bytes += PAGE - truth->bytes[page];
		for (unsigned unit = 0; unit < PAGE / UNIT; unit++) {
			run = truth->used[page * (PAGE / UNIT) + unit] ? 0 : run + UNIT;
			hole = run > hole ? run : hole;
		}
	}
	fixture_fail(1ull << 40);
	assert_int_equal(last()->page_hole_bytes, hole);
	assert_int_equal(last()->page_free_bytes, free_bytes);
	assert_int_equal(last()->pages, pages);
	assert_int_equal(last()->pages_partial, partial);
}

/* Blocks of all sizes come and go. Their ends need not be whole units. */
static void test_snapshot__holes_are_what_blocks_leave(void **state)
{
	static struct truth truth;
	struct { uint64_t at, bytes; } blocks[SLOTS] = { 0 };

	srand(1);
	for (unsigned turn = 0; turn < 4000; turn++) {
		const unsigned slot = (unsigned)rand() % SLOTS;
		uint64_t at = (uint64_t)(rand() % (PAGES * PAGE / UNIT)) * UNIT;
		uint64_t bytes = 1 + (uint64_t)rand() % (rand() % 8 ? 200000 : 3 * PAGE / 2);

		if (blocks[slot].bytes) {
			assert_true(fixture_free(CUF_KIND_DEVICE, BASE + blocks[slot].at));
			mark(&truth, blocks[slot].at, blocks[slot].bytes, -1);
			blocks[slot].bytes = 0;
		} else if (is_free(&truth, at, bytes)) {
			fixture_alloc(CUF_KIND_DEVICE, BASE + at, bytes);
			mark(&truth, at, bytes, 1);
			blocks[slot].at = at;
			blocks[slot].bytes = bytes;
		}
		if (turn % 40 == 0)
			assert_truth(&truth);
	}
	for (unsigned slot = 0; slot < SLOTS; slot++)
		if (blocks[slot].bytes)
			assert_true(fixture_free(CUF_KIND_DEVICE, BASE + blocks[slot].at));
}

enum { THREADS = 4, TURNS = 5000 };

/* Neighbours in one word of a page's map, and of one call site. */
static void *allocate_and_free(void *number)
{
	const uint64_t at = BASE + (uint64_t)(uintptr_t)number * UNIT;

	for (unsigned turn = 0; turn < TURNS; turn++) {
		fixture_alloc(CUF_KIND_DEVICE, at, UNIT);
		if (!fixture_free(CUF_KIND_DEVICE, at))
			return NULL;
	}
	fixture_alloc(CUF_KIND_DEVICE, at, UNIT);
	return number;
}

static void test_snapshot__threads_share_a_page(void **state)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_false(pthread_create(&threads[i], NULL, allocate_and_free,
					    (void *)(i * 2 + 1)));
	for (uintptr_t i = 0; i < THREADS; i++) {
		void *number;

		assert_false(pthread_join(threads[i], &number));
		assert_non_null(number);
	}
	fixture_fail(1ull << 40);
	assert_int_equal(last()->pages, 1);
	assert_int_equal(last()->page_free_bytes, PAGE - THREADS * UNIT);
	assert_int_equal(last()->page_hole_bytes, PAGE - 2 * THREADS * UNIT);
	for (unsigned i = 0; i < THREADS; i++)
		assert_true(fixture_free(CUF_KIND_DEVICE, BASE + (i * 2 + 1) * UNIT));
}

static void test_snapshot__a_child_has_blocks_of_its_own(void **state)
{
	int status;
	pid_t child;

	fixture_alloc(CUF_KIND_DEVICE, BASE, UNIT);
	child = fork();
	if (!child) {
		fixture_alloc(CUF_KIND_DEVICE, BASE + PAGE, 2 * UNIT);
		fixture_fail(1ull << 40);
		_exit(!last() || last()->pages != 1 ||
		      last()->page_free_bytes != PAGE - 2 * UNIT || last()->sites[0].count != 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	fixture_fail(1ull << 40);
	assert_int_equal(last()->page_free_bytes, PAGE - UNIT);
	assert_true(fixture_free(CUF_KIND_DEVICE, BASE));
}

/* The end of a block that the ledger had no place for is not known. It leaves nothing behind. */
static void test_snapshot__of_a_full_ledger_all_ends_are_seen(void **state)
{
	const uint64_t count = cuf_recording.ledger_mask + 1000;

	for (uint64_t i = 0; i < count; i++)
		fixture_alloc(CUF_KIND_DEVICE, BASE + i * UNIT, UNIT);
	assert_true(cuf_recording.header->lost[CUF_LOST_LEDGER] >= 999);
	for (uint64_t i = 0; i < count; i++)
		fixture_free(CUF_KIND_DEVICE, BASE + i * UNIT);
	fixture_fail(1ull << 40);
	assert_int_equal(last()->pages, 0);
	assert_int_equal(last()->site_count, 0);
}

/* More pages than there is room for: no figure is wrong, none is given, and what is in no page's
 * figures is counted. The last test. */
static void test_snapshot__too_many_pages_are_unknown(void **state)
{
	const uint64_t *lost = &cuf_recording.header->lost[CUF_LOST_SMALL], before = *lost;
	enum { BEYOND = 3 };

	/* earlier tests used some pages */
	for (uint64_t i = 0; *lost - before < BEYOND && i <= cuf_recording.ledger_mask / 2 + BEYOND; i++)
		fixture_alloc(CUF_KIND_DEVICE, BASE + i * PAGE, UNIT);
	assert_int_equal(*lost - before, BEYOND);
	fixture_fail(1ull << 40);
	assert_int_equal(last()->page_hole_bytes, CUF_UNKNOWN);
	assert_int_equal(last()->page_free_bytes, CUF_UNKNOWN);
	assert_int_equal(last()->pages, CUF_UNKNOWN);
	assert_int_equal(last()->site_count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshot__sites_have_the_sums_of_their_blocks),
		cmocka_unit_test(test_snapshot__the_same_blocks_have_the_same_holes),
		cmocka_unit_test(test_snapshot__a_change_between_refusals_is_seen),
		cmocka_unit_test(test_snapshot__holes_are_what_blocks_leave),
		cmocka_unit_test(test_snapshot__threads_share_a_page),
		cmocka_unit_test(test_snapshot__a_child_has_blocks_of_its_own),
		cmocka_unit_test(test_snapshot__refusals_all_day_are_paced),
		cmocka_unit_test(test_snapshot__of_a_full_ledger_all_ends_are_seen),
		cmocka_unit_test(test_snapshot__too_many_pages_are_unknown),
	};

	fixture_start("size=64MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
