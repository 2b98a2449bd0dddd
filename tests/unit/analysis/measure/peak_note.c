/* SPDX-License-Identifier: Apache-2.0 */
/* The note of the host's peak as it is read: the newest whole one, its sums, and nothing damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analysis/measure/peak_note.h"

static struct cuf_host_peak notes[2];
static struct reader reader = {
	.sections[CUF_SEC_HOST_PEAK] = { .at = (const uint8_t *)notes,
					 .count = 2,
					 .stride = sizeof *notes },
};

static int make_notes(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		notes[i] = (struct cuf_host_peak){
			.number = i + 1,
			.time_ns = 100 + i,
			.live_bytes = 5000 + i,
			.site_count = 1,
			.sites[0] = { .stack = 3, .exact_bytes = 1000, .exact_count = 2,
				      .sampled_bytes = 400, .sampled_count = 4,
				      .weight_bytes = 4000 },
			.rest[1] = { .is_python = 1, .exact_bytes = i, .exact_count = i },
		};
	return 0;
}

static void test_peak_note__the_newer_whole_note_is_read(void **state)
{
	struct cuf_host_peak note;
	(void)state;
	assert_true(peak_note_read(&reader, &note));
	assert_int_equal(note.number, 2);
	notes[1].number = 0;
	assert_true(peak_note_read(&reader, &note));
	assert_int_equal(note.number, 1);
	notes[0].number = 0;
	assert_false(peak_note_read(&reader, &note));
}

static void test_peak_note__what_cannot_be_is_no_note(void **state)
{
	struct cuf_host_peak note;
	(void)state;
	notes[0].number = 0;
	notes[1].site_count = CUF_PEAK_SITES + 1;
	assert_false(peak_note_read(&reader, &note));
	notes[1].site_count = 1;
	notes[1].sites[0].exact_bytes = UINT64_MAX;
	assert_false(peak_note_read(&reader, &note));
	notes[1].sites[0].exact_bytes = 1;
	notes[1].sites[0].sampled_count = 0; /* but bytes */
	assert_false(peak_note_read(&reader, &note));
	notes[1].sites[0].sampled_count = 1;
	notes[1].sites[0].weight_bytes = 1; /* less than what was sampled */
	assert_false(peak_note_read(&reader, &note));
	notes[1].sites[0].weight_bytes = 400;
	assert_true(peak_note_read(&reader, &note));
	notes[1].rest[0].is_python = 2;
	assert_false(peak_note_read(&reader, &note));
}

static void test_peak_note__sampled_blocks_count_by_their_weight(void **state)
{
	struct heap_totals totals = { 0 };
	struct cuf_host_peak note;
	struct sites sites;
	const struct site *site;
	(void)state;
	sites_init(&sites);
	assert_true(peak_note_read(&reader, &note));
	peak_note_add(&reader, &note, &sites, &totals);
	assert_int_equal(sites.count, 2);
	site = sites_get(&sites, CUF_KIND_HOST, CUF_DEVICE_NONE, 3);
	assert_int_equal(site->live_bytes, 5000);
	assert_int_equal(site->live_count, 2 + 40);
	assert_true(site->live_variance > 0);
	assert_int_equal(host_whole(totals.bytes.value), 5000);
	assert_int_equal(host_whole(totals.python_bytes.value), 1);
	sites_fini(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_peak_note__the_newer_whole_note_is_read, make_notes),
		cmocka_unit_test_setup(test_peak_note__what_cannot_be_is_no_note, make_notes),
		cmocka_unit_test_setup(test_peak_note__sampled_blocks_count_by_their_weight,
				       make_notes),
	};
	return cmocka_run_group_tests_name("peak_note", tests, NULL, NULL);
}
