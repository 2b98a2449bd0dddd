/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the last word of the driver before a moment, and what happened since. */
#include "analysis/replay/levels.h"

#include "analysis/replay/replay.h"

struct scan {
	struct levels *out;
	const struct cuf_device *device; /* NULL: not described */
	int64_t since_bytes;      /* taken from the driver since it was last asked */
	bool seen, moved, asked_used;
};

static struct pool_level *pool_of(struct levels *l, uint64_t pool)
{
	for (size_t i = 0; i < l->pool_count; i++)
		if (l->pools[i].pool == pool)
			return &l->pools[i];
	if (l->pool_count == LEVEL_POOLS_MAX)
		return NULL;
	l->pools[l->pool_count] = (struct pool_level){ pool, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, false };
	return &l->pools[l->pool_count++];
}

static void set_free(struct scan *s, uint64_t free_bytes, uint64_t total_bytes)
{
	if (free_bytes == CUF_UNKNOWN)
		return;
	s->out->free_bytes = free_bytes;
	if (total_bytes && total_bytes != CUF_UNKNOWN)
		s->out->total_bytes = total_bytes;
	s->seen = true;
	s->moved = false;
	s->since_bytes = 0;
}

static void see_block(struct scan *s, const struct cuf_event *e)
{
	bool takes = e->op == CUF_OP_ALLOC || e->op == CUF_OP_RESTORE;
	struct pool_level *pool;
	if (!takes && e->op != CUF_OP_FREE)
		return;
	if (e->kind == CUF_KIND_ASYNC) {
		pool = pool_of(s->out, e->aux);
		if (pool)
			pool->fresh = false;
		return;
	}
	if (!kind_is_device_memory(e->kind) || (e->flags & CUF_EVENT_HOST_LOCATION))
		return;
	s->moved = true;
	s->since_bytes = (int64_t)((uint64_t)s->since_bytes + (takes ? e->bytes : -e->bytes));
}

static void see_event(struct scan *s, const struct cuf_event *e)
{
	struct pool_level *pool;
	/* the device's record was written at a known time, perhaps without an event of its own */
	if (s->device && !s->asked_used && s->device->free_ns && e->time_ns > s->device->free_ns) {
		s->asked_used = true;
		set_free(s, s->device->free_bytes, s->device->total_bytes);
	}
	switch (e->op) {
	case CUF_OP_FREE_MEMORY: set_free(s, e->bytes, e->aux); break;
	case CUF_OP_POOL_LEVEL:
		pool = pool_of(s->out, e->addr);
		if (pool)
			*pool = (struct pool_level){ e->addr, e->bytes, e->aux, CUF_UNKNOWN, true };
		break;
	default: see_block(s, e);
	}
}

/* What was taken since the driver was asked, is taken off; rounding and pools make it an estimate. */
static void settle_free(struct scan *s)
{
	struct levels *l = s->out;
	uint64_t since = (uint64_t)s->since_bytes;
	if (!s->seen)
		return;
	l->free_basis = s->moved ? BASIS_ESTIMATED : BASIS_OBSERVED;
	if (s->since_bytes >= 0)
		l->free_bytes = l->free_bytes > since ? l->free_bytes - since : 0;
	else if (__builtin_add_overflow(l->free_bytes, -since, &l->free_bytes) || l->free_bytes > l->total_bytes)
		l->free_bytes = l->total_bytes;
}

static void take_pools(struct levels *l, const struct cuf_pool_level *pools, uint64_t count)
{
	for (uint64_t i = 0; i < count && i < CUF_POOLS_MAX; i++) {
		struct pool_level *pool = pool_of(l, pools[i].pool);
		if (pool)
			*pool = (struct pool_level){ pools[i].pool, pools[i].reserved_bytes, pools[i].used_bytes, pools[i].threshold_bytes, true };
	}
}

static void levels_init(struct levels *l)
{
	l->free_bytes = l->total_bytes = CUF_UNKNOWN;
	l->free_basis = BASIS_NONE;
	l->pool_count = 0;
}

void levels_at(const struct reader *reader, const struct events *events, unsigned device, uint64_t seq, bool at_end, struct levels *out)
{
	const struct cuf_device *at = reader_at(reader, CUF_SEC_DEVICES, device);
	struct cuf_device d;
	struct scan s = { .out = out };
	levels_init(out);
	if (at && at->present) {
		d = *at;
		s.device = &d;
		out->total_bytes = d.total_bytes ? d.total_bytes : CUF_UNKNOWN;
	}
	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event e = events_get(events, i);
		if (e.seq > seq)
			break;
		if (e.device == device)
			see_event(&s, &e);
	}
	reader_drop(reader, CUF_SEC_RING);
	if (s.device && !s.asked_used && s.device->free_ns && (seq == CUF_UNKNOWN || seq >= events->last_seq))
		set_free(&s, d.free_bytes, d.total_bytes);
	settle_free(&s);
	if (s.device && at_end && d.end_free_bytes != CUF_UNKNOWN && d.end_free_bytes <= d.total_bytes) {
		out->free_bytes = d.end_free_bytes;
		out->free_basis = BASIS_OBSERVED;
		take_pools(out, d.end_pools, d.pool_count);
	}
}

void levels_overlay(const struct cuf_incident *incident, struct levels *levels)
{
	if (incident->total_bytes != CUF_UNKNOWN && incident->total_bytes)
		levels->total_bytes = incident->total_bytes;
	if (incident->free_bytes != CUF_UNKNOWN) {
		levels->free_bytes = incident->free_bytes;
		levels->free_basis = BASIS_OBSERVED;
	}
	take_pools(levels, incident->pools, incident->pool_count);
}

/* 0: all events are later. */
static uint64_t last_at_time(const struct events *events, uint64_t time_ns)
{
	for (size_t i = events->count; i--;) {
		struct cuf_event e = events_get(events, i);
		if (e.time_ns <= time_ns)
			return e.seq;
		events_passed(events, events->count - i);
	}
	return 0;
}

uint64_t seq_at_time(const struct events *events, uint64_t time_ns)
{
	uint64_t device_seq = last_at_time(events, time_ns), framework_seq = last_at_time(events->framework, time_ns);
	return device_seq > framework_seq ? device_seq : framework_seq;
}
