/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events change the bucket of their second. When the first event of another second comes, the
 * second before it is put into the coarser buckets.
 */
#include "interpose/incident/recent.h"

#include <stdbool.h>
#include <string.h>
#include "interpose/incident/device.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/laws.h"

/* The key of the second that was begun last; 0: none. */
static uint64_t latest[CUF_RECENT_SUBJECTS];

static void forget_recent(void) { memset(latest, 0, sizeof latest); }
CUF_AT_FORK_CHILD(forget_recent);

static struct cuf_recent *bucket_at(unsigned subject, unsigned width, uint64_t index)
{
	uint64_t ring = subject * CUF_RECENT_WIDTHS + width, slots = cuf_recording.recent_mask + 1;

	return &cuf_recording.recent[ring * slots + (index & cuf_recording.recent_mask)];
}

/* ---- extremes ---- */

/* An unknown value changes nothing, and any value is better than an unknown one. */
static void raise(uint64_t *most, uint64_t value)
{
	uint64_t now = __atomic_load_n(most, __ATOMIC_RELAXED);

	while (value != CUF_UNKNOWN && (value > now || now == CUF_UNKNOWN))
		if (__atomic_compare_exchange_n(most, &now, value, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			break;
}

static void lower(uint64_t *least, uint64_t value)
{
	uint64_t now = __atomic_load_n(least, __ATOMIC_RELAXED);

	while (value < now)
		if (__atomic_compare_exchange_n(least, &now, value, true, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			break;
}

static void merge(struct cuf_recent *to, const struct cuf_recent *from)
{
	lower(&to->live_min_bytes, from->live_min_bytes);
	raise(&to->live_max_bytes, from->live_max_bytes);
	lower(&to->free_min_bytes, from->free_min_bytes);
	raise(&to->inner_max_bytes, from->inner_max_bytes);
	raise(&to->outer_max_bytes, from->outer_max_bytes);
	__atomic_store_n(&to->live_last_bytes, from->live_last_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&to->free_last_bytes, from->free_last_bytes, __ATOMIC_RELAXED);
}

/* ---- buckets ---- */

/* Of two threads one begins it. False: it is there, or a later one is, or somebody is at it. */
static bool begin(struct cuf_recent *bucket, uint64_t key)
{
	uint64_t had = __atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE);

	return had < key && had != CUF_KEY_BUSY &&
	       __atomic_compare_exchange_n(&bucket->key, &had, CUF_KEY_BUSY, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void publish(struct cuf_recent *bucket, const struct cuf_recent *content, uint64_t key)
{
	const size_t key_bytes = sizeof bucket->key;

	memcpy((char *)bucket + key_bytes, (const char *)content + key_bytes,
	       sizeof *bucket - key_bytes);
	__atomic_store_n(&bucket->key, key, __ATOMIC_RELEASE);
}

static void put_into(unsigned subject, unsigned width, const struct cuf_recent *second)
{
	const uint64_t index = cuf_recent_index(second->key) / cuf_recent_seconds(width);
	const uint64_t key = cuf_recent_key(subject, width, index);
	struct cuf_recent *bucket = bucket_at(subject, width, index);

	if (begin(bucket, key))
		publish(bucket, second, key);
	else if (__atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE) == key)
		merge(bucket, second);
}

static uint64_t device_free_bytes(unsigned subject)
{
	const struct cuf_device *device = &cuf_recording.devices[subject];

	return subject < CUF_RECENT_HOST && device->present && device->free_ns ? device->free_bytes
									       : CUF_UNKNOWN;
}

/*
 * The level before this event, or the last one of the second before, was the level when this
 * second began.
 */
static void open_second(struct cuf_recent *bucket, unsigned subject, uint64_t key,
			uint64_t live_bytes)
{
	uint64_t before = __atomic_exchange_n(&latest[subject], key, __ATOMIC_RELAXED);
	uint64_t was_bytes = before || live_bytes == CUF_UNKNOWN ? live_bytes : 0;
	uint64_t free_bytes = device_free_bytes(subject);
	struct cuf_framework_level level = { CUF_UNKNOWN, CUF_UNKNOWN };
	struct cuf_recent content = { 0 };
	const struct cuf_recent *closed = bucket_at(subject, CUF_RECENT_SECOND, before);

	/* the ring may have come round to the very place */
	if (before && (closed == bucket ||
		       __atomic_load_n(&closed->key, __ATOMIC_ACQUIRE) == before)) {
		memcpy(&content, closed, sizeof content);
		content.key = before;
		for (unsigned width = CUF_RECENT_TEN; width < CUF_RECENT_WIDTHS; width++)
			put_into(subject, width, &content);
		was_bytes = content.live_last_bytes;
	}
	if (subject < CUF_RECENT_HOST)
		level = cuf_framework_level(subject);
	content = (struct cuf_recent){
		.live_min_bytes = was_bytes < live_bytes ? was_bytes : live_bytes,
		.live_max_bytes = was_bytes > live_bytes ? was_bytes : live_bytes,
		.live_last_bytes = live_bytes, .free_min_bytes = free_bytes,
		.free_last_bytes = free_bytes, .inner_max_bytes = level.allocated_bytes,
		.outer_max_bytes = level.reserved_bytes
	};
	publish(bucket, &content, key);
}

/* The bucket of the second, if it is there. */
static struct cuf_recent *second_of(unsigned subject, uint64_t now_ns, uint64_t *key)
{
	uint64_t index = now_ns / 1000000000u;

	*key = cuf_recent_key(subject, CUF_RECENT_SECOND, index);
	return bucket_at(subject, CUF_RECENT_SECOND, index);
}

static void change(struct cuf_recent *bucket, uint64_t live_bytes)
{
	if (live_bytes > __atomic_load_n(&bucket->live_max_bytes, __ATOMIC_RELAXED))
		raise(&bucket->live_max_bytes, live_bytes);
	else if (live_bytes < __atomic_load_n(&bucket->live_min_bytes, __ATOMIC_RELAXED))
		lower(&bucket->live_min_bytes, live_bytes);
	__atomic_store_n(&bucket->live_last_bytes, live_bytes, __ATOMIC_RELAXED);
}

void cuf_recent_live(unsigned subject, uint64_t live_bytes, uint64_t now_ns)
{
	struct cuf_recent *bucket;
	uint64_t key;

	if (subject >= CUF_RECENT_SUBJECTS ||
	    (live_bytes > INT64_MAX && live_bytes != CUF_UNKNOWN))
		return;
	bucket = second_of(subject, now_ns, &key);
	if (__builtin_expect(__atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE) == key, 1)) {
		change(bucket, live_bytes);
		return;
	}
	if (!begin(bucket, key))
		return;
	open_second(bucket, subject, key, live_bytes);
	/* another thread's event may have found the bucket neither old nor ready */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (subject < CUF_RECENT_HOST)
		change(bucket, cuf_device_live_bytes(&cuf_recording.devices[subject]));
}

void cuf_recent_free(unsigned device, uint64_t free_bytes, uint64_t now_ns)
{
	struct cuf_recent *bucket;
	uint64_t key;

	if (device >= CUF_RECENT_HOST)
		return;
	bucket = second_of(device, now_ns, &key);
	if (__atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE) != key)
		cuf_recent_live(device, cuf_device_live_bytes(&cuf_recording.devices[device]),
				now_ns);
	if (__atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE) != key)
		return;
	lower(&bucket->free_min_bytes, free_bytes);
	__atomic_store_n(&bucket->free_last_bytes, free_bytes, __ATOMIC_RELAXED);
}

void cuf_recent_inner(unsigned subject, struct cuf_framework_level level, uint64_t now_ns)
{
	struct cuf_recent *bucket;
	uint64_t key;

	if (subject >= CUF_RECENT_SUBJECTS)
		return;
	bucket = second_of(subject, now_ns, &key);
	if (__atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE) != key && subject < CUF_RECENT_HOST)
		cuf_recent_live(subject, cuf_device_live_bytes(&cuf_recording.devices[subject]),
				now_ns);
	if (__atomic_load_n(&bucket->key, __ATOMIC_ACQUIRE) != key)
		return;
	raise(&bucket->inner_max_bytes, level.allocated_bytes);
	raise(&bucket->outer_max_bytes, level.reserved_bytes);
}
