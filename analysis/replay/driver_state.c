/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what the driver reported last before a moment, and what changed since. */
#include "analysis/replay/driver_state.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/replay/replay.h"

struct scan {
	const struct cuf_device *device; /* NULL: the recording does not describe it */
	int64_t since_bytes;      /* allocated from the driver since its last report */
	uint64_t turned_bytes;    /* allocated and freed since then, added up */
	bool seen, moved, record_used;
	struct driver_state state; /* last, so that a copy can end after its pools */
};

static struct pool_level *pool_of(struct driver_state *state, uint64_t pool)
{
	for (size_t i = 0; i < state->pool_count; i++)
		if (state->pools[i].pool == pool)
			return &state->pools[i];
	if (state->pool_count == DRIVER_STATE_POOLS_MAX)
		return NULL;
	state->pools[state->pool_count] =
		(struct pool_level){ pool, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, false };
	return &state->pools[state->pool_count++];
}

/* A query by the driver replaces what was counted. */
static void set_pools(struct driver_state *state, const struct cuf_pool_level *pools,
		       uint64_t count)
{
	for (uint64_t i = 0; i < count && i < CUF_POOLS_MAX; i++) {
		struct pool_level *pool = pool_of(state, pools[i].pool);
		if (pool)
			*pool = (struct pool_level){ pools[i].pool, pools[i].reserved_bytes,
						     pools[i].used_bytes, pools[i].threshold_bytes,
						     true };
	}
}

static void set_free(struct scan *scan, uint64_t free_bytes, uint64_t total_bytes, uint64_t time_ns)
{
	if (free_bytes == CUF_UNKNOWN)
		return;
	scan->state.free_bytes = free_bytes;
	scan->state.free_ns = time_ns;
	if (total_bytes && total_bytes != CUF_UNKNOWN)
		scan->state.total_bytes = total_bytes;
	scan->seen = true;
	scan->moved = false;
	scan->since_bytes = 0;
	scan->turned_bytes = 0;
}

/* What the recorder kept of the device, at the time it was read. A recording that has figures of
 * the end has the pools of the end. */
static void use_record(struct scan *scan)
{
	const struct cuf_device *device = scan->device;
	scan->record_used = true;
	set_free(scan, device->free_bytes, device->total_bytes, device->free_ns);
	if (device->end_free_bytes == CUF_UNKNOWN)
		set_pools(&scan->state, device->end_pools, device->pool_count);
}

/* The record was written at a known time, perhaps without an event. time_ns: of the next event. */
static void use_record_before(struct scan *scan, uint64_t time_ns)
{
	if (scan->device && !scan->record_used && scan->device->free_ns &&
	    time_ns > scan->device->free_ns)
		use_record(scan);
}

/* Memory of a pool is already reserved: its blocks do not change what the driver has free. */
static void count_block(struct scan *scan, const struct cuf_event *event)
{
	bool takes = event->op == CUF_OP_ALLOC || event->op == CUF_OP_RESTORE;
	struct pool_level *pool;
	uint64_t change;

	if (!takes && event->op != CUF_OP_FREE)
		return;
	if (event->kind == CUF_KIND_ASYNC) {
		pool = pool_of(&scan->state, event->aux);
		if (pool)
			pool->fresh = false;
		return;
	}
	if (!kind_is_device_memory(event->kind) || (event->flags & CUF_EVENT_HOST_LOCATION))
		return;
	scan->moved = true;
	scan->turned_bytes += least_of(event->bytes, (uint64_t)1 << 52);
	change = takes ? event->bytes : -event->bytes;
	scan->since_bytes = (int64_t)((uint64_t)scan->since_bytes + change);
}

/* Events are applied in the order of their numbers, up to the requested moment. */
static void apply_event(struct scan *scan, const struct cuf_event *event)
{
	struct pool_level *pool;
	use_record_before(scan, event->time_ns);
	switch (event->op) {
	case CUF_OP_FREE_MEMORY:
		set_free(scan, event->bytes, event->aux, event->time_ns);
		break;
	case CUF_OP_POOL_LEVEL:
		pool = pool_of(&scan->state, event->addr);
		if (pool)
			*pool = (struct pool_level){ event->addr, event->bytes, event->aux,
						     CUF_UNKNOWN, true };
		break;
	default: count_block(scan, event);
	}
}

/* The record, where it was not used yet and its time is before this one. */
static bool record_is_next(const struct scan *scan, uint64_t time_ns)
{
	return scan->device && !scan->record_used && scan->device->free_ns &&
	       is_known(scan->device->free_bytes) && time_ns > scan->device->free_ns;
}

enum { LOOK_AHEAD = 64 }; /* events */

/*
 * A report that comes later tells more where less changed until then: what is rounded up, and what
 * the driver takes for itself, is in no event. i: the first event after the moment.
 */
static void look_ahead(struct scan *scan, const struct events *events, size_t i, unsigned device)
{
	struct scan ahead = { .turned_bytes = 0 };
	struct cuf_event event = { .op = CUF_OP_FREE };
	size_t until = i + LOOK_AHEAD;
	bool found = false;

	for (; scan->moved && !found && i < until && ahead.turned_bytes < scan->turned_bytes; i++) {
		bool over = i == events->count;
		if (!over)
			event = events_near(events, i);
		if (record_is_next(scan, over ? CUF_UNKNOWN : event.time_ns)) {
			event.bytes = scan->device->free_bytes;
			event.aux = scan->device->total_bytes;
			event.time_ns = scan->device->free_ns;
			found = true;
		} else if (over) {
			return;
		} else if (event.device == device) {
			found = event.op == CUF_OP_FREE_MEMORY && is_known(event.bytes);
			if (!found)
				count_block(&ahead, &event);
		}
	}
	if (!found)
		return;
	set_free(scan, event.bytes, event.aux, event.time_ns);
	scan->since_bytes = -ahead.since_bytes;
	scan->moved = ahead.moved;
}

/* Subtracts what was allocated since the report. Rounding and pools make that an estimate. */
static void correct_free(struct scan *scan)
{
	struct driver_state *state = &scan->state;
	uint64_t since = (uint64_t)scan->since_bytes;
	if (!scan->seen)
		return;
	state->free_basis = BASIS_OBSERVED;
	if (scan->moved)
		state->free_basis = BASIS_ESTIMATED;
	if (scan->since_bytes >= 0)
		state->free_bytes = subtract_to_zero(state->free_bytes, since);
	else if (__builtin_add_overflow(state->free_bytes, -since, &state->free_bytes) ||
		 state->free_bytes > state->total_bytes)
		state->free_bytes = state->total_bytes;
}

/* Everything is unknown until an event or a record reports it. */
static void driver_state_init(struct driver_state *state)
{
	state->free_bytes = state->total_bytes = state->free_ns = CUF_UNKNOWN;
	state->free_basis = BASIS_NONE;
	state->pool_count = 0;
}

enum { NOTES_MAX = 256, NEAR = LOOK_AHEAD + 2 };

/* How a device stood before event `at` of the ring. */
struct note {
	size_t at;
	uint64_t seq;             /* of the event before */
	struct scan *scan;        /* without the pools that it does not have */
};

struct device_history {
	struct cuf_device described;
	struct scan scan;
	struct note *notes; size_t count, room;
};

struct driver_history {
	struct events *events;
	const uint64_t *seqs; size_t count; /* moments that will be asked for, ascending */
	size_t passed, stride;
	/* of each ring: the event, the moments up to it, and until where events are kept */
	size_t at[2], reached[2], kept[2];
	/* NULL: the recording neither describes it nor has an event of it */
	struct device_history *devices[CUF_DEVICES_MAX];
};

static void scan_init(struct scan *scan, const struct cuf_device *described)
{
	*scan = (struct scan){ .device = described };
	driver_state_init(&scan->state);
	if (described && described->total_bytes)
		scan->state.total_bytes = described->total_bytes;
}

static struct device_history *device_history_new(const struct cuf_device *described)
{
	struct device_history *history = xalloc_zeroed(1, sizeof *history);

	if (described)
		history->described = *described;
	scan_init(&history->scan, described ? &history->described : NULL);
	return history;
}

struct driver_history *driver_history_new(struct events *events, const uint64_t *seqs,
					  size_t count)
{
	struct driver_history *history = xalloc_zeroed(1, sizeof *history);

	history->events = events;
	history->seqs = seqs;
	history->count = count;
	history->stride = events->count / NOTES_MAX + 1;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		const struct cuf_device *device = reader_at(events->reader, CUF_SEC_DEVICES, d);

		if (device && device->present)
			history->devices[d] = device_history_new(device);
	}
	return history;
}

static size_t used_bytes(const struct scan *scan)
{
	return offsetof(struct scan, state.pools) +
	       scan->state.pool_count * sizeof *scan->state.pools;
}

static void take_notes(struct driver_history *history, uint64_t seq)
{
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		struct device_history *device = history->devices[d];
		struct scan *copy;

		if (!device || (device->count &&
				device->notes[device->count - 1].at == history->at[0]))
			continue;
		copy = xalloc_bytes(used_bytes(&device->scan));
		memcpy(copy, &device->scan, used_bytes(&device->scan));
		xalloc_grow(&device->notes, device->count, &device->room, sizeof *device->notes);
		device->notes[device->count++] = (struct note){ history->at[0], seq, copy };
	}
}

/* What follows a moment will be looked at. */
static void keep_near(struct driver_history *history, unsigned ring, const struct cuf_event *event)
{
	while (history->reached[ring] < history->count &&
	       history->seqs[history->reached[ring]] <= event->seq) {
		history->reached[ring]++;
		history->kept[ring] = history->at[ring] + NEAR;
	}
	if (history->at[ring] < history->kept[ring])
		events_keep(ring ? history->events->framework : history->events, history->at[ring],
			    event);
}

static bool take_row(void *state, const struct sweep_row *row)
{
	struct driver_history *history = state;

	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];

		keep_near(history, row->is_framework[i], event);
		if (row->is_framework[i]) {
			history->at[1]++;
			continue;
		}
		while (history->passed < history->count &&
		       history->seqs[history->passed] < event->seq)
			take_notes(history, history->seqs[history->passed++]);
		if (event->device < CUF_DEVICES_MAX) {
			struct device_history **device = &history->devices[event->device];

			if (!*device)
				*device = device_history_new(NULL);
			apply_event(&(*device)->scan, event);
		}
		if (!(++history->at[0] % history->stride))
			take_notes(history, event->seq);
	}
	return true;
}

struct sweep_consumer driver_history_consumer(struct driver_history *history)
{
	return (struct sweep_consumer){ take_row, history };
}

void driver_history_free(struct driver_history *history)
{
	for (unsigned d = 0; history && d < CUF_DEVICES_MAX; d++) {
		struct device_history *device = history->devices[d];

		for (size_t i = 0; device && i < device->count; i++)
			free(device->notes[i].scan);
		if (device)
			free(device->notes);
		free(device);
	}
	free(history);
}

/* Continues from the last note up to the moment. Returns the place of the next event. */
static size_t continue_from_note(const struct device_history *device, uint64_t seq,
				 struct scan *scan)
{
	size_t low = 0, high = device->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (device->notes[middle].seq <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	memcpy(scan, device->notes[low - 1].scan, used_bytes(device->notes[low - 1].scan));
	return device->notes[low - 1].at;
}

void driver_state_at(const struct driver_history *history, unsigned device, uint64_t seq,
		     enum driver_word word, struct driver_state *out)
{
	const struct events *events = history->events;
	const struct device_history *from = history->devices[device];
	struct scan scan;
	size_t i = events->count;

	scan_init(&scan, from ? from->scan.device : NULL);
	if (from)
		i = continue_from_note(from, seq, &scan);
	for (; i < events->count; i++) {
		struct cuf_event event = events_near(events, i);
		if (event.seq > seq) {
			use_record_before(&scan, event.time_ns);
			break;
		}
		if (event.device == device)
			apply_event(&scan, &event);
	}
	if (word == DRIVER_NEAREST)
		look_ahead(&scan, events, i, device);
	reader_drop(events->reader, CUF_SEC_RING);
	if (seq == CUF_UNKNOWN || seq >= events->last_seq)
		use_record_before(&scan, CUF_UNKNOWN);
	correct_free(&scan);
	if (scan.device && word == DRIVER_AT_END && scan.device->end_free_bytes != CUF_UNKNOWN &&
	    scan.device->end_free_bytes <= scan.device->total_bytes) {
		scan.state.free_bytes = scan.device->end_free_bytes;
		scan.state.free_ns = scan.device->free_ns;
		scan.state.free_basis = BASIS_OBSERVED;
		set_pools(&scan.state, scan.device->end_pools, scan.device->pool_count);
	}
	*out = scan.state;
}

void driver_state_overlay(const struct cuf_incident *incident, struct driver_state *state)
{
	if (incident->total_bytes != CUF_UNKNOWN && incident->total_bytes)
		state->total_bytes = incident->total_bytes;
	if (incident->free_bytes != CUF_UNKNOWN) {
		state->free_bytes = incident->free_bytes;
		state->free_ns = incident->time_ns;
		state->free_basis = BASIS_OBSERVED;
	}
	set_pools(state, incident->pools, incident->pool_count);
}
