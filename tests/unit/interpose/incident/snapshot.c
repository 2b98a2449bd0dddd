/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of refused requests that follow each other. */
#include "tests/unit/fixtures/recorder.h"
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
		fixture_alloc(CUF_KIND_DEVICE, BASE + ((uint64_t)i << 16), 4096);
	for (unsigned i = 0; i < 3000 && !unknown; i++) {
		fixture_alloc(CUF_KIND_DEVICE, BASE - (2 << 20), 4096);
		fixture_fail(1ull << 40);
		if (last()->page_hole_bytes == CUF_UNKNOWN) {
			unknown++;
			assert_int_equal(last()->pages, CUF_UNKNOWN);
			assert_int_equal(last()->site_count, 0);
		} else {
			known++;
			assert_int_equal(last()->page_hole_bytes, (2 << 20) - 4096);
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

		assert_false(cuf_ledger_add(&block, &old));
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
	for (uint32_t i = 0; i < SITES * BLOCKS * 2; i++)
		assert_true(cuf_ledger_take(key_of(i), &old));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_snapshot__sites_have_the_sums_of_their_blocks),
		cmocka_unit_test(test_snapshot__the_same_blocks_have_the_same_holes),
		cmocka_unit_test(test_snapshot__a_change_between_refusals_is_seen),
		cmocka_unit_test(test_snapshot__refusals_all_day_are_paced),
	};

	fixture_start("size=64MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
