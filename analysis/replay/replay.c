/* SPDX-License-Identifier: Apache-2.0 */
/* Undoes events, newest first, from the ledger back to a moment. */
#include "analysis/replay/replay.h"

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
enum { DROP_EVERY = 1 << 16 };

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

/*
 * A block allocated over a live one hides it; the hidden block is known from its own ALLOC,
 * further back. Empty unless the recorder counted such replacements. unborn: blocks put back by a
 * FREE whose ALLOC was not reached yet.
 */
struct undo { struct liveset *live, hidden; size_t unborn; bool replaced; };

static void remove_block(struct undo *undo, uint64_t key)
{
	struct cuf_block was;
	if (liveset_take(undo->live, key, &was) && !was.seq && undo->unborn)
		undo->unborn--;
}

static void put_back(struct undo *undo, const struct cuf_block *block)
{
	remove_block(undo, block->key);
	if (liveset_put(undo->live, block))
		undo->unborn += !block->seq;
}

/* Undoes an event after the moment. */
static void undo(struct undo *undo, const struct cuf_event *event, const struct cuf_block *block)
{
	if (event->op == CUF_OP_FREE) {
		put_back(undo, block);
		return;
	}
	remove_block(undo, block->key);
	if (undo->replaced)
		liveset_put(&undo->hidden, block);
}

/* An event before the moment only completes blocks that were put back. */
static void complete_block(struct undo *undo, const struct cuf_event *event,
			   const struct cuf_block *block)
{
	struct cuf_block *known, was;
	if (event->op == CUF_OP_RESTORE)
		return;
	if (undo->replaced && liveset_take(&undo->hidden, block->key, &was) &&
	    event->op == CUF_OP_ALLOC)
		put_back(undo, block);
	known = liveset_find(undo->live, block->key);
	if (event->op == CUF_OP_ALLOC && known && !known->seq) {
		known->seq = block->seq;
		known->time_ns = block->time_ns;
		known->tid = block->tid;
		known->hook = block->hook;
		known->label = block->label;
		undo->unborn -= undo->unborn != 0;
	}
}

static bool is_replayed(const struct cuf_event *event)
{
	return event->kind && (event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE ||
			       event->op == CUF_OP_RESTORE);
}

/* The labels of blocks of one ring, newest first. A label further back than the birth of a block is
 * that of an earlier block at its address. */
struct role_walk { const struct events *events; size_t left; bool framework; };

static void label_blocks_after(struct role_walk *walk, uint64_t seq, struct liveset *live)
{
	while (walk->left) {
		struct cuf_event event =
			events_get(walk->events, walk->events->roles[walk->left - 1]);
		if (event.seq <= seq)
			return;
		walk->left--;
		if (event.kind && (event.kind == CUF_KIND_FRAMEWORK) == walk->framework)
			label_block(live, &event, key_of(&event));
	}
}

/* Undoes one ring. The keys of a ring are a name space of their own. */
static void undo_ring(const struct events *events, const struct events *labels, uint64_t from,
		      uint64_t to, struct liveset *live)
{
	struct role_walk roles = { labels, labels->role_count, events == labels };
	struct undo state = { .live = live, .replaced = events->reader->header.replaced != 0 };
	size_t passed = 0;
	if (to >= events->last_seq || to >= from)
		return;
	liveset_init(&state.hidden, 0);
	for (size_t i = from >= events->last_seq ? events->count : events_after(events, from);
	     i--;) {
		struct cuf_event event = events_get(events, i);
		struct cuf_block block;
		events_passed(events, passed++);
		if (event.seq <= to && !state.unborn && !state.hidden.count)
			break;
		if (!is_replayed(&event))
			continue;
		label_blocks_after(&roles, event.seq, live);
		block = block_of(&event);
		if (event.seq > to)
			undo(&state, &event, &block);
		else
			complete_block(&state, &event, &block);
	}
	label_blocks_after(&roles, 0, live);
	reader_drop(events->reader, events->ring);
	liveset_fini(&state.hidden);
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

void replay_at(const struct reader *reader, const struct events *events, uint64_t seq,
	       struct liveset *live, struct replay_exact *exact)
{
	replay_ledger(reader, live, exact);
	undo_ring(events, events->framework, CUF_UNKNOWN, seq, live);
	undo_ring(events->framework, events->framework, CUF_UNKNOWN, seq, live);
	exact->device &= is_complete(events, seq);
	exact->framework &= is_complete(events->framework, seq);
}

bool replay_back(const struct events *events, uint64_t from, uint64_t to, struct liveset *live,
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
