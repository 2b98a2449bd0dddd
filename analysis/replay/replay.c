/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes events, newest first, from the ledger back to a moment. */
#include "analysis/replay/replay.h"

#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

bool kind_is_device_memory(unsigned kind)
{
	return 1u << kind & (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_ASYNC | 1u << CUF_KIND_GRAPH |
			     1u << CUF_KIND_VMM | 1u << CUF_KIND_ARRAY);
}

bool kind_is_block(unsigned kind)
{
	return 1u << kind &
	       (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_MANAGED | 1u << CUF_KIND_PINNED |
		1u << CUF_KIND_REGISTERED | 1u << CUF_KIND_ASYNC | 1u << CUF_KIND_VMM |
		1u << CUF_KIND_ARRAY | 1u << CUF_KIND_IMPORTED);
}

bool replay_block(const struct reader *reader, uint64_t i, struct cuf_block *block)
{
	*block = *(const struct cuf_block *)reader_at(reader, CUF_SEC_LEDGER, i);
	return block->key && block->key != CUF_KEY_BUSY && block->kind &&
	       block->kind < CUF_KIND_MAX;
}

/* entries; the pages of a large ledger are released while it is read */
enum { DROP_EVERY = 1 << 16, LOOKS_MOST = 1 << 12 };

void replay_now(const struct reader *reader, struct liveset *live)
{
	uint64_t count = reader_count(reader, CUF_SEC_LEDGER);
	/* room for all: what is not used is never touched */
	struct cuf_block *blocks = xalloc_bytes((count + 1) * sizeof *blocks);
	size_t found = 0;
	for (uint64_t i = 0; i < count; i++) {
		if (i % DROP_EVERY == DROP_EVERY - 1)
			reader_drop_range(reader,
					  reader_at(reader, CUF_SEC_LEDGER, i + 1 - DROP_EVERY),
					  DROP_EVERY * (uint64_t)sizeof *blocks);
		found += replay_block(reader, i, &blocks[found]);
	}
	liveset_adopt(live, xalloc_resize(blocks, found, sizeof *blocks), found);
	reader_drop(reader, CUF_SEC_LEDGER);
}

static uint64_t key_of(const struct cuf_event *event)
{
	return cuf_key(cuf_kind_space(event->kind), event->addr);
}

/* The block of an event. A FREE has the stack and the age of its block, for this. */
static struct cuf_block block_of(const struct cuf_event *event)
{
	struct cuf_block block = {
		.key = key_of(event),
		.bytes = event->bytes,
		.aux = event->aux,
		.tid = event->tid,
		.references = 1,
		.kind = event->kind,
		.device = event->device,
		.flags = (uint8_t)(event->flags & ~CUF_EVENT_BULK),
	};
	uint64_t age_ns = (uint64_t)event->extra * 1000000u;

	if (event->op == CUF_OP_ALLOC) {
		block.seq = event->seq;
		block.time_ns = event->time_ns;
		block.stack = event->stack;
		block.hook = event->hook;
		block.label = event->label;
	} else {
		block.time_ns = subtract_to_zero(event->time_ns, age_ns);
		block.stack = event->alloc_stack;
	}
	return block;
}

/* Labels the block that is live at the address, unless it is younger than the label or has one
 * already. */
static void label_block(const struct liveset *live, const struct cuf_event *event, uint64_t key)
{
	struct cuf_block *block = liveset_find(live, key);
	if (block && !block->role && block->seq < event->seq && event->extra < CUF_ROLE_MAX)
		block->role = (uint8_t)event->extra;
}

static bool is_replayed(const struct cuf_event *event)
{
	return event->kind && (event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE ||
			       event->op == CUF_OP_RESTORE);
}

/* Events at one address follow each other, however many others are between them. */
struct earlier_index {
	struct events *events;
	struct hash_index last; /* event of each address, plus one */
	size_t at;
};

static void index_begin(struct earlier_index *index, struct events *events)
{
	*index = (struct earlier_index){ .events = events };
	hash_index_init(&index->last, 0);
	events->earlier = xalloc_zeroed(events->count, sizeof *events->earlier);
}

static void index_event(struct earlier_index *index, const struct cuf_event *event)
{
	size_t i = index->at++;
	uint32_t *place;

	if (!is_replayed(event))
		return;
	place = hash_index_place(&index->last, key_of(event));
	index->events->earlier[i] = *place;
	if (event->op != CUF_OP_RESTORE || !*place)
		*place = (uint32_t)i + 1;
}

static void index_events(struct events *events)
{
	struct earlier_index index;

	index_begin(&index, events);
	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event event = events_get(events, i);

		events_passed(events, i);
		index_event(&index, &event);
	}
	hash_index_fini(&index.last);
}

struct replay_index { struct earlier_index rings[2]; };

static bool take_row(void *state, const struct sweep_row *row)
{
	struct replay_index *index = state;

	for (size_t i = 0; i < row->count; i++)
		index_event(&index->rings[row->is_framework[i]], &row->events[i]);
	return true;
}

struct replay_index *replay_index_begin(struct events *events, struct sweep_consumer *consumer)
{
	struct replay_index *index;

	*consumer = (struct sweep_consumer){ 0 };
	if (events->earlier || events->framework->earlier)
		return NULL;
	index = xalloc_zeroed(1, sizeof *index);
	index_begin(&index->rings[0], events);
	index_begin(&index->rings[1], events->framework);
	*consumer = (struct sweep_consumer){ take_row, index };
	return index;
}

void replay_index_end(struct replay_index *index)
{
	if (!index)
		return;
	hash_index_fini(&index->rings[0].last);
	hash_index_fini(&index->rings[1].last);
	free(index);
}

struct undo {
	struct liveset *live;
	struct events *events;
	size_t first; /* event after the moment: those before it stay */
	size_t looks; /* at earlier events */
	bool replaced;
};

/* The last ALLOC or FREE at the address before event i, plus one; 0: none, or it will be undone
 * itself. */
static size_t before(struct undo *undo, size_t i, struct cuf_event *event)
{
	struct events *events = undo->events;

	if (!events->earlier)
		index_events(events);
	if (!events->earlier[i] || events->earlier[i] > undo->first)
		return 0;
	*event = events_get(events, events->earlier[i] - 1);
	if (++undo->looks % LOOKS_MOST == 0)
		reader_drop(events->reader, events->ring);
	return events->earlier[i];
}

/* A FREE has its block, except where it was born: its ALLOC knows that. */
static void put_back_freed(struct undo *undo, size_t i, struct cuf_block *block)
{
	struct cuf_event earlier;
	size_t at = before(undo, i, &earlier);

	while (at && earlier.op != CUF_OP_ALLOC)
		at = before(undo, at - 1, &earlier);
	if (at) {
		struct cuf_block born = block_of(&earlier);

		block->seq = born.seq;
		block->time_ns = born.time_ns;
		block->tid = born.tid;
		block->hook = born.hook;
		block->label = born.label;
	}
	liveset_take(undo->live, block->key, NULL);
	liveset_put(undo->live, block);
}

/* Undoes event i, which is after the moment. A block allocated over a live one hides it: the hidden
 * one is known from its own ALLOC. Nothing is looked for unless the recorder counted such
 * replacements. */
static void undo_event(struct undo *undo, size_t i, const struct cuf_event *event)
{
	struct cuf_block block = block_of(event);
	struct cuf_event hidden;

	if (event->op == CUF_OP_FREE) {
		put_back_freed(undo, i, &block);
		return;
	}
	liveset_take(undo->live, block.key, NULL);
	if (!undo->replaced || !before(undo, i, &hidden) || hidden.op != CUF_OP_ALLOC)
		return;
	block = block_of(&hidden);
	liveset_put(undo->live, &block);
}

/* The labels of blocks of one ring, newest first. A label further back than the birth of a block is
 * that of an earlier block at its address. */
struct role_walk { const struct events *events; size_t left; bool framework; };

static void label_blocks_after(struct role_walk *walk, uint64_t seq, struct liveset *live)
{
	while (walk->left) {
		struct cuf_event event =
			events_get(walk->events, walk->events->roles.items[walk->left - 1]);
		if (event.seq <= seq)
			return;
		walk->left--;
		if (event.kind && (event.kind == CUF_KIND_FRAMEWORK) == walk->framework)
			label_block(live, &event, key_of(&event));
	}
}

/* Undoes one ring. The keys of a ring are a name space of their own. */
static void undo_ring(struct events *events, const struct events *labels, uint64_t from,
		      uint64_t to, struct liveset *live)
{
	struct role_walk roles = { labels, labels->roles.count, events == labels };
	struct undo state = { .live = live,
			      .events = events,
			      .first = events_after(events, to),
			      .replaced = events->reader->header.replaced != 0 };
	size_t passed = 0;
	if (to >= events->last_seq || to >= from)
		return;
	for (size_t i = from >= events->last_seq ? events->count : events_after(events, from);
	     i-- > state.first;) {
		struct cuf_event event = events_get(events, i);
		events_passed(events, passed++);
		if (!is_replayed(&event))
			continue;
		label_blocks_after(&roles, event.seq, live);
		undo_event(&state, i, &event);
	}
	label_blocks_after(&roles, 0, live);
	reader_drop(events->reader, events->ring);
}

static bool is_complete(const struct events *events, uint64_t seq)
{
	return seq >= events->last_seq || events->complete_since <= seq;
}

void replay_ledger(const struct reader *reader, struct liveset *live, struct replay_exact *exact)
{
	const struct reader_section *ledger = &reader->sections[CUF_SEC_LEDGER];
	bool whole = ledger->bytes && ledger->count == ledger->planned;
	replay_now(reader, live);
	*exact = (struct replay_exact){ whole, whole };
}

void replay_at(const struct reader *reader, struct events *events, uint64_t seq,
	       struct liveset *live, struct replay_exact *exact)
{
	replay_ledger(reader, live, exact);
	undo_ring(events, events->framework, CUF_UNKNOWN, seq, live);
	undo_ring(events->framework, events->framework, CUF_UNKNOWN, seq, live);
	exact->device &= is_complete(events, seq);
	exact->framework &= is_complete(events->framework, seq);
}

bool replay_back(struct events *events, uint64_t from, uint64_t to, struct liveset *live,
		 struct replay_exact *exact)
{
	/* what a block hid is known only while its events are undone */
	if (events->reader->header.replaced || to > from)
		return false;
	undo_ring(events, events->framework, from, to, live);
	undo_ring(events->framework, events->framework, from, to, live);
	exact->device &= is_complete(events, to);
	exact->framework &= is_complete(events->framework, to);
	return true;
}

/* ---- a recording that is being written ---- */

enum { KINDS = sizeof((struct cuf_device *)0)->live_bytes / sizeof(uint64_t) };

/* Adds the blocks up by device and kind, as the recorder does. */
static bool is_sum_of(const struct reader *reader, const struct liveset *live)
{
	uint64_t sums[CUF_DEVICES_MAX][KINDS] = { { 0 } };
	size_t at = 0;

	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if (block->device < CUF_DEVICES_MAX && block->kind < KINDS &&
		    !(block->flags & CUF_EVENT_HOST_LOCATION))
			sums[block->device][block->kind] += block->bytes;
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		const struct cuf_device *device = reader_at(reader, CUF_SEC_DEVICES, d);

		for (unsigned kind = 0; device && kind < KINDS; kind++)
			if (kind_is_device_memory(kind) &&
			    device->live_bytes[kind] != sums[d][kind])
				return false;
	}
	return true;
}

void replay_keep_still(struct reader *reader, const struct liveset *live)
{
	struct cuf_block *blocks = xalloc_zeroed(live->count + 1, sizeof *blocks);
	size_t count = 0, at = 0;

	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		blocks[count++] = *block;
	reader_take_ledger(reader, blocks, count + 1); /* an empty table would be a missing one */
}

/* The ledger is read before the events, so that these have all that it has. */
bool replay_still(const struct reader *reader, const struct events_listener *listener,
		  struct events **events, struct liveset *live, struct replay_exact *exact)
{
	uint64_t seq = reader->until_seq;

	replay_ledger(reader, live, exact);
	*events = events_new(reader, listener);
	undo_ring(*events, (*events)->framework, CUF_UNKNOWN, seq, live);
	undo_ring((*events)->framework, (*events)->framework, CUF_UNKNOWN, seq, live);
	exact->device &= is_complete(*events, seq);
	exact->framework &= is_complete((*events)->framework, seq);
	events_cut(*events, seq);
	return is_sum_of(reader, live);
}
