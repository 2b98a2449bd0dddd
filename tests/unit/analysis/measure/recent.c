/* SPDX-License-Identifier: Apache-2.0 */
/* Extremes of any stretch of time, from buckets that may be missing, in any place, or damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <string.h>
#include "analysis/measure/recent.h"

enum { PLACES = 512, DEVICE = 2 };
#define SECOND 1000000000ull
#define NOW_NS (100000 * SECOND)
#define MiB ((uint64_t)1 << 20)

struct scene { struct cuf_recent buckets[PLACES]; struct reader reader; size_t count; };

static void begin(struct scene *scene)
{
	memset(scene, 0, sizeof *scene);
	scene->reader.sections[CUF_SEC_RECENT] = (struct reader_section){
		.at = (void *)scene->buckets, .bytes = sizeof scene->buckets, .count = PLACES,
		.planned = PLACES, .stride = sizeof(struct cuf_recent) };
}

/* Of so many seconds before now, in MiB. */
static struct cuf_recent *put(struct scene *scene, unsigned width, unsigned before_s, uint64_t least,
			      uint64_t most, uint64_t last)
{
	/* places are taken from both ends */
	size_t place = scene->count % 2 ? PLACES - 1 - scene->count / 2 : scene->count / 2;
	struct cuf_recent *bucket = &scene->buckets[place];
	uint64_t index = (NOW_NS / SECOND - before_s) / cuf_recent_seconds(width);

	scene->count++;
	*bucket = (struct cuf_recent){ .key = cuf_recent_key(DEVICE, width, index),
				       .live_min_bytes = least * MiB, .live_max_bytes = most * MiB,
				       .live_last_bytes = last * MiB,
				       .free_min_bytes = (1000 - most) * MiB,
				       .free_last_bytes = (1000 - last) * MiB,
				       .inner_max_bytes = CUF_UNKNOWN,
				       .outer_max_bytes = CUF_UNKNOWN };
	return bucket;
}

static struct recent_extremes over(const struct scene *scene, unsigned seconds, uint64_t *burst)
{
	struct recent recent;
	struct recent_extremes out;

	recent_read(&scene->reader, NOW_NS, &recent);
	out = recent_extremes(&recent, DEVICE, NOW_NS - seconds * SECOND, NOW_NS);
	if (burst)
		*burst = recent_burst(&recent, DEVICE);
	recent_fini(&recent);
	return out;
}

static void test_recent__a_stretch_has_its_extremes_and_those_alone(void **state)
{
	struct scene scene;
	struct recent_extremes extremes;
	uint64_t burst;

	(void)state;
	begin(&scene);
	assert_false(over(&scene, 3600, NULL).known);
	put(&scene, CUF_RECENT_SECOND, 100, 10, 900, 20);
	put(&scene, CUF_RECENT_SECOND, 30, 20, 400, 25);
	put(&scene, CUF_RECENT_SECOND, 0, 25, 40, 40);
	extremes = over(&scene, 60, &burst);
	assert_true(extremes.known);
	assert_int_equal(extremes.live_max_bytes, 400 * MiB);
	assert_int_equal(extremes.live_min_bytes, 20 * MiB);
	assert_int_equal(extremes.live_last_bytes, 40 * MiB);
	assert_int_equal(extremes.free_min_bytes, 600 * MiB);
	assert_true(extremes.inner_max_bytes == CUF_UNKNOWN);
	/* 900 above the level after it; the last rise has not been given back */
	assert_int_equal(burst, 880 * MiB);
	assert_int_equal(over(&scene, 3600, NULL).live_max_bytes, 900 * MiB);
	/* nothing happened: the level is what the second before left */
	begin(&scene);
	put(&scene, CUF_RECENT_SECOND, 100, 10, 900, 20);
	extremes = over(&scene, 60, NULL);
	assert_true(extremes.known);
	assert_int_equal(extremes.live_max_bytes, 20 * MiB);
	assert_int_equal(extremes.live_min_bytes, 20 * MiB);
}

static void test_recent__what_seconds_have_lost_is_in_the_coarser_rings(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	put(&scene, CUF_RECENT_MINUTE, 3900, 10, 990, 10); /* before the hour */
	put(&scene, CUF_RECENT_MINUTE, 3000, 10, 800, 10);
	put(&scene, CUF_RECENT_TEN, 1200, 10, 700, 10);
	put(&scene, CUF_RECENT_MINUTE, 1200, 10, 700, 10);
	put(&scene, CUF_RECENT_SECOND, 20, 10, 60, 30);
	assert_int_equal(over(&scene, 3600, NULL).live_max_bytes, 800 * MiB);
	assert_int_equal(over(&scene, 1300, NULL).live_max_bytes, 700 * MiB);
	assert_int_equal(over(&scene, 60, NULL).live_max_bytes, 60 * MiB);
	assert_int_equal(over(&scene, 3600, NULL).live_last_bytes, 30 * MiB);
}

static void test_recent__loading_and_a_staircase_are_no_bursts(void **state)
{
	struct scene scene;
	uint64_t burst;

	(void)state;
	begin(&scene);
	put(&scene, CUF_RECENT_SECOND, 50, 0, 500, 500);
	for (unsigned before = 49; before; before--)
		put(&scene, CUF_RECENT_SECOND, before, 549 - before, 550 - before, 550 - before);
	over(&scene, 60, &burst);
	assert_int_equal(burst, 0);
	/* what is given back in the end is one: a request may take a minute */
	put(&scene, CUF_RECENT_SECOND, 0, 520, 549, 520);
	over(&scene, 60, &burst);
	assert_int_equal(burst, 29 * MiB);
}

static void test_recent__damage_is_left_out(void **state)
{
	struct scene scene;
	const struct cuf_recent *good;
	uint64_t burst;

	(void)state;
	begin(&scene);
	good = put(&scene, CUF_RECENT_SECOND, 10, 20, 50, 20);
	scene.buckets[100] = *good; /* the same second twice */
	put(&scene, CUF_RECENT_SECOND, 5, 60, 50, 20);
	put(&scene, CUF_RECENT_SECOND, 6, 0, 1, 1)->live_max_bytes = BYTES_SANE + 1;
	put(&scene, CUF_RECENT_SECOND, 7, 0, 900, 1)->key = CUF_KEY_BUSY;
	put(&scene, CUF_RECENT_SECOND, 7, 0, 900, 1)->key = UINT64_MAX;
	put(&scene, CUF_RECENT_SECOND, 7, 0, 900, 1)->key |= 0x7fffull << 48;
	put(&scene, CUF_RECENT_MINUTE, 7, 0, 900, 1)->key =
		cuf_recent_key(DEVICE, CUF_RECENT_MINUTE, (1ull << 48) - 1);
	put(&scene, CUF_RECENT_SECOND, 0, 0, 900, 1)->key++; /* after the moment */
	assert_int_equal(over(&scene, 60, &burst).live_max_bytes, 50 * MiB);
	assert_int_equal(burst, 30 * MiB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recent__a_stretch_has_its_extremes_and_those_alone),
		cmocka_unit_test(test_recent__what_seconds_have_lost_is_in_the_coarser_rings),
		cmocka_unit_test(test_recent__loading_and_a_staircase_are_no_bursts),
		cmocka_unit_test(test_recent__damage_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
