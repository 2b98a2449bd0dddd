/* SPDX-License-Identifier: Apache-2.0 */
/* Reads RECENT; see recent.h. */
#include "analysis/measure/recent.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum {
	SCANNED_MOST = 1 << 22, /* records; a recording of the largest size has fewer */
	KEPT_MOST = 4096,       /* of a ring, before those of one time are merged */
	AWAY = 60               /* buckets between a burst and the level that it rises above */
};
#define SECOND_NS 1000000000ull

static uint64_t begin_ns(const struct cuf_recent *bucket, unsigned width)
{
	return cuf_recent_index(bucket->key) * cuf_recent_seconds(width) * SECOND_NS;
}

/* How long ago a bucket may be of use: an hour of seconds, three of tens, a day of minutes. */
static uint64_t reach_ns(unsigned width)
{
	static const uint32_t seconds[CUF_RECENT_WIDTHS] = { 3600, 3 * 3600, 24 * 3600 };

	return seconds[width] * SECOND_NS;
}

/* ---- reading ---- */

static bool is_sane_bucket(const struct cuf_recent *bucket)
{
	return bucket->live_min_bytes <= bucket->live_max_bytes &&
	       (bucket->live_max_bytes <= BYTES_SANE || bucket->live_max_bytes == CUF_UNKNOWN) &&
	       (bucket->live_last_bytes <= BYTES_SANE || bucket->live_last_bytes == CUF_UNKNOWN);
}

/* A copy of a bucket that kept its time meanwhile. False: there is none, or it is damaged. */
static bool copy_bucket(const struct reader *reader, uint64_t index, struct cuf_recent *out)
{
	const struct cuf_recent *at = reader_at(reader, CUF_SEC_RECENT, index);
	uint64_t key = __atomic_load_n(&at->key, __ATOMIC_ACQUIRE);

	if (!(key >> 63) || key == CUF_KEY_BUSY)
		return false;
	memcpy(out, at, sizeof *out);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	out->key = __atomic_load_n(&at->key, __ATOMIC_RELAXED);
	return out->key == key && is_sane_bucket(out);
}

/* Whether a bucket of this width counts at until_ns. */
static bool is_in_time(const struct cuf_recent *bucket, unsigned width, uint64_t until_ns)
{
	uint64_t most = UINT64_MAX / SECOND_NS / cuf_recent_seconds(width), at;

	if (cuf_recent_index(bucket->key) >= most)
		return false;
	at = begin_ns(bucket, width);
	return at <= until_ns && until_ns - at <= reach_ns(width);
}

static int by_key(const void *a, const void *b)
{
	const struct cuf_recent *left = a, *right = b;

	return compare_numbers(left->key, right->key);
}

/* In order; of several of one time, which only damage makes, one is kept. */
static void settle_ring(struct recent_ring *ring)
{
	size_t count = 0;

	if (ring->count)
		qsort(ring->buckets, ring->count, sizeof *ring->buckets, by_key);
	for (size_t i = 0; i < ring->count; i++)
		if (!count || ring->buckets[i].key != ring->buckets[count - 1].key)
			ring->buckets[count++] = ring->buckets[i];
	ring->count = count;
}

void recent_read(const struct reader *reader, uint64_t until_ns, struct recent *out)
{
	uint64_t count = least_of(reader_count(reader, CUF_SEC_RECENT), SCANNED_MOST);
	size_t room[CUF_RECENT_SUBJECTS][CUF_RECENT_WIDTHS] = { 0 };

	memset(out, 0, sizeof *out);
	for (uint64_t i = 0; i < count; i++) {
		struct cuf_recent bucket;
		unsigned number, subject, width;
		struct recent_ring *ring;

		if (!copy_bucket(reader, i, &bucket))
			continue;
		number = bucket.key >> 48 & 0x7fff;
		subject = number / CUF_RECENT_WIDTHS;
		width = number % CUF_RECENT_WIDTHS;
		if (subject >= CUF_RECENT_SUBJECTS || !is_in_time(&bucket, width, until_ns))
			continue;
		ring = &out->rings[subject][width];
		if (ring->count >= KEPT_MOST)
			continue;
		xalloc_grow(&ring->buckets, ring->count, &room[subject][width],
			    sizeof *ring->buckets);
		ring->buckets[ring->count++] = bucket;
	}
	if (count)
		reader_drop(reader, CUF_SEC_RECENT);
	for (unsigned s = 0; s < CUF_RECENT_SUBJECTS; s++)
		for (unsigned w = 0; w < CUF_RECENT_WIDTHS; w++)
			settle_ring(&out->rings[s][w]);
}

void recent_fini(struct recent *recent)
{
	for (unsigned s = 0; s < CUF_RECENT_SUBJECTS; s++)
		for (unsigned w = 0; w < CUF_RECENT_WIDTHS; w++)
			free(recent->rings[s][w].buckets);
}

/* ---- extremes ---- */

/* CUF_UNKNOWN is the largest number: it loses against any other as a minimum. */
static void raise(uint64_t *most, uint64_t value)
{
	if (value != CUF_UNKNOWN && (*most == CUF_UNKNOWN || value > *most))
		*most = value;
}

static void add_bucket(struct recent_extremes *to, const struct cuf_recent *bucket)
{
	to->known = true;
	to->live_min_bytes = least_of(to->live_min_bytes, bucket->live_min_bytes);
	raise(&to->live_max_bytes, bucket->live_max_bytes);
	to->free_min_bytes = least_of(to->free_min_bytes, bucket->free_min_bytes);
	raise(&to->inner_max_bytes, bucket->inner_max_bytes);
	raise(&to->outer_max_bytes, bucket->outer_max_bytes);
}

/* Whether the ring of this width has what came after from_ns. The coarser one has all that it lost.
 * A minute's ring is of an hour or more in the smallest recording. */
static bool reaches(const struct recent_ring *rings, unsigned width, uint64_t from_ns)
{
	uint64_t oldest_ns;

	if (width == CUF_RECENT_MINUTE || !rings[width].count)
		return width == CUF_RECENT_MINUTE;
	oldest_ns = begin_ns(&rings[width].buckets[0], width);
	return oldest_ns <= from_ns || !rings[width + 1].count ||
	       begin_ns(&rings[width + 1].buckets[0], width + 1) +
			       cuf_recent_seconds(width + 1) * SECOND_NS > oldest_ns;
}

/* How the stretch began. */
static void add_level(struct recent_extremes *to, const struct cuf_recent *before)
{
	add_bucket(to, &(struct cuf_recent){ .live_min_bytes = before->live_last_bytes,
					     .live_max_bytes = before->live_last_bytes,
					     .free_min_bytes = before->free_last_bytes,
					     .inner_max_bytes = CUF_UNKNOWN,
					     .outer_max_bytes = CUF_UNKNOWN });
}

/* The buckets of the stretch; with edge, the one that it begins in, too, and what was before. */
static void add_ring(struct recent_extremes *to, const struct recent_ring *ring, unsigned width,
		     const uint64_t stretch_ns[2], bool edge)
{
	uint64_t length_ns = cuf_recent_seconds(width) * SECOND_NS;
	const struct cuf_recent *before = NULL, *last = NULL;

	for (size_t i = 0; i < ring->count; i++) {
		const struct cuf_recent *bucket = &ring->buckets[i];
		uint64_t at = begin_ns(bucket, width);

		if (at + length_ns <= stretch_ns[0])
			before = bucket;
		else if (at <= stretch_ns[1] && (edge || at >= stretch_ns[0]))
			add_bucket(to, last = bucket);
	}
	if (edge && before)
		add_level(to, before);
	if (last || (edge && before)) /* the narrowest ring comes last, and has the latest */
		to->live_last_bytes = (last ? last : before)->live_last_bytes;
}

struct recent_extremes recent_extremes(const struct recent *recent, unsigned subject,
				       uint64_t from_ns, uint64_t until_ns)
{
	const struct recent_ring *rings = recent->rings[subject];
	const uint64_t stretch_ns[2] = { from_ns, until_ns };
	struct recent_extremes out = { .live_min_bytes = CUF_UNKNOWN, .live_max_bytes = CUF_UNKNOWN,
				       .live_last_bytes = CUF_UNKNOWN,
				       .free_min_bytes = CUF_UNKNOWN,
				       .inner_max_bytes = CUF_UNKNOWN,
				       .outer_max_bytes = CUF_UNKNOWN };
	unsigned reach = CUF_RECENT_SECOND;

	while (!reaches(rings, reach, from_ns))
		reach++;
	for (unsigned width = CUF_RECENT_WIDTHS; width--;)
		add_ring(&out, &rings[width], width, stretch_ns, width <= reach);
	return out;
}

/* ---- bursts ---- */

/* The least level near bucket `at`, on one side of it. */
static uint64_t least_before(const struct recent_ring *ring, size_t at)
{
	uint64_t least = 0;

	if (at)
		least = ring->buckets[at - 1].live_last_bytes;
	for (size_t i = at; i-- && i + AWAY >= at;)
		least = least_of(least, ring->buckets[i].live_min_bytes);
	return least;
}

static uint64_t least_after(const struct recent_ring *ring, size_t at)
{
	uint64_t least = ring->buckets[at].live_last_bytes;

	for (size_t i = at + 1; i < ring->count && i <= at + AWAY; i++)
		least = least_of(least, ring->buckets[i].live_min_bytes);
	return least;
}

uint64_t recent_burst(const struct recent *recent, unsigned subject)
{
	uint64_t burst = 0;

	for (unsigned width = 0; width < CUF_RECENT_WIDTHS; width++) {
		const struct recent_ring *ring = &recent->rings[subject][width];

		for (size_t i = 0; i < ring->count; i++) {
			uint64_t most = ring->buckets[i].live_max_bytes, level;

			level = most_of(least_before(ring, i), least_after(ring, i));
			if (most != CUF_UNKNOWN)
				burst = most_of(burst, subtract_to_zero(most, level));
		}
	}
	return burst;
}
