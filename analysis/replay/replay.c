/* SPDX-License-Identifier: Apache-2.0 */
/* Undoing and doing events. */
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

static bool ledger_block(const struct reader *reader, uint64_t i, struct cuf_block *block)
{
	*block = *(const struct cuf_block *)reader_at(reader, CUF_SEC_LEDGER, i);
	return block->key && block->key != CUF_KEY_BUSY && block->kind &&
	       block->kind < CUF_KIND_MAX;
}

enum { DROP_EVERY = 1 << 16 }; /* entries: the pages of a large ledger are given back as it is read */

void replay_now(const struct reader *reader, struct liveset *live)
{
	uint64_t count = reader_count(reader, CUF_SEC_LEDGER);
	size_t blocks = 0;
	for (int counting = 1; counting >= 0; counting--) {
		if (!counting)
			liveset_init(live, blocks);
		for (uint64_t i = 0; i < count; i++) {
			struct cuf_block block;
			if (i % DROP_EVERY == DROP_EVERY - 1)
				reader_drop_range(
					reader,
					reader_at(reader, CUF_SEC_LEDGER, i + 1 - DROP_EVERY),
					DROP_EVERY * (uint64_t)sizeof block);
			if (!ledger_block(reader, i, &block))
				continue;
			if (counting)
				blocks++;
			else
				liveset_put(live, &block);
		}
	}
	reader_drop(reader, CUF_SEC_LEDGER);
}

static uint64_t key_of(const struct cuf_event *event)
{
	return cuf_key(cuf_kind_space(event->kind), event->addr);
}

static struct cuf_block block_of(const struct cuf_event *event)
{
	uint64_t age_ns = event->op == CUF_OP_ALLOC ? 0 : (uint64_t)event->extra * 1000000u;
	return (struct cuf_block){
		.key = key_of(event),
		.bytes = event->bytes,
		.aux = event->aux,
		.seq = event->op == CUF_OP_ALLOC ? event->seq : 0,
		.time_ns = subtract_to_zero(event->time_ns, age_ns),
		.stack = event->op == CUF_OP_ALLOC ? event->stack : event->alloc_stack,
		.tid = event->tid,
		.references = 1,
		.hook = event->op == CUF_OP_ALLOC ? event->hook : 0,
		.label = event->op == CUF_OP_ALLOC ? event->label : 0,
		.kind = event->kind,
		.device = event->device,
		.flags = (uint8_t)(event->flags & ~CUF_EVENT_BULK),
	};
}

/* What the block that lives there is for, unless it is a later one, or somebody has said. */
static void tell_role(const struct liveset *live, const struct cuf_event *event, uint64_t key)
{
	struct cuf_block *block = liveset_find(live, key);
	if (block && !block->role && block->seq < event->seq && event->extra < CUF_ROLE_MAX)
		block->role = (uint8_t)event->extra;
}

void replay_apply(struct liveset *live, const struct cuf_event *event)
{
	struct cuf_block block = block_of(event);
	if (!event->kind)
		return;
	switch (event->op) {
	case CUF_OP_ALLOC: case CUF_OP_RESTORE: liveset_put(live, &block); break;
	case CUF_OP_FREE: liveset_take(live, block.key, NULL); break;
	case CUF_OP_ROLE: tell_role(live, event, block.key); break;
	default: break;
	}
}

/*
 * A block allocated over a live one hides it: the hidden one's own ALLOC, further back, says what it was. Empty unless
 * the recorder counted such replacements. unborn: blocks put back by a FREE whose ALLOC was not met yet.
 */
struct undo { struct liveset *live, hidden; size_t unborn; bool replaced; };

static void take(struct undo *undo, uint64_t key)
{
	struct cuf_block was;
	if (liveset_take(undo->live, key, &was) && !was.seq && undo->unborn)
		undo->unborn--;
}

static void put(struct undo *undo, const struct cuf_block *block)
{
	take(undo, block->key);
	if (liveset_put(undo->live, block))
		undo->unborn += !block->seq;
}

/* Events of after the moment are undone. */
static void undo(struct undo *undo, const struct cuf_event *event, const struct cuf_block *block)
{
	if (event->op == CUF_OP_FREE) {
		put(undo, block);
		return;
	}
	take(undo, block->key);
	if (undo->replaced)
		liveset_put(&undo->hidden, block);
}

/* Events of before it only tell about blocks that undoing brought back. */
static void learn(struct undo *undo, const struct cuf_event *event, const struct cuf_block *block)
{
	struct cuf_block *known, was;
	if (event->op == CUF_OP_RESTORE)
		return;
	if (undo->replaced && liveset_take(&undo->hidden, block->key, &was) &&
	    event->op == CUF_OP_ALLOC)
		put(undo, block);
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

/* What blocks were said to be for, of those of one ring, from the newest on. An event further back than a block's own
 * birth was of another one at its address. */
struct role_walk { const struct events *events; size_t left; bool framework; };

static void tell_roles_after(struct role_walk *walk, uint64_t seq, struct liveset *live)
{
	while (walk->left) {
		struct cuf_event event =
			events_get(walk->events, walk->events->roles[walk->left - 1]);
		if (event.seq <= seq)
			return;
		walk->left--;
		if (event.kind && (event.kind == CUF_KIND_FRAMEWORK) == walk->framework)
			tell_role(live, &event, key_of(&event));
	}
}

/* One ring: its keys are a name space of their own, so each is undone by itself. */
static void undo_ring(const struct events *events, const struct events *said, uint64_t from,
		      uint64_t to, struct liveset *live)
{
	struct role_walk roles = { said, said->role_count, events == said };
	struct undo u = { .live = live, .replaced = events->reader->header.replaced != 0 };
	size_t passed = 0;
	if (to >= events->last_seq || to >= from)
		return;
	liveset_init(&u.hidden, 0);
	for (size_t i = from >= events->last_seq ? events->count : events_after(events, from);
	     i--;) {
		struct cuf_event event = events_get(events, i);
		struct cuf_block block;
		events_passed(events, passed++);
		if (event.seq <= to && !u.unborn && !u.hidden.count)
			break;
		if (!is_replayed(&event))
			continue;
		tell_roles_after(&roles, event.seq, live);
		block = block_of(&event);
		(event.seq > to ? undo : learn)(&u, &event, &block);
	}
	tell_roles_after(&roles, 0, live);
	reader_drop(events->reader, events->ring);
	liveset_fini(&u.hidden);
}

static bool is_complete(const struct events *events, uint64_t seq)
{
	return seq >= events->last_seq || events->complete_since <= seq;
}

void replay_at(const struct reader *reader, const struct events *events, uint64_t seq,
	       struct liveset *live, struct replay_exact *exact)
{
	const struct reader_section *ledger = &reader->sections[CUF_SEC_LEDGER];
	bool whole = ledger->bytes && ledger->count == ledger->planned;
	replay_now(reader, live);
	undo_ring(events, events->framework, CUF_UNKNOWN, seq, live);
	undo_ring(events->framework, events->framework, CUF_UNKNOWN, seq, live);
	*exact = (struct replay_exact){ whole && is_complete(events, seq),
					whole && is_complete(events->framework, seq) };
}

bool replay_back(const struct events *events, uint64_t from, uint64_t to, struct liveset *live,
		 struct replay_exact *exact)
{
	/* what a block hid is known only while its own events are being undone */
	if (events->reader->header.replaced || to > from)
		return false;
	undo_ring(events, events->framework, from, to, live);
	undo_ring(events->framework, events->framework, from, to, live);
	exact->device &= is_complete(events, to);
	exact->framework &= is_complete(events->framework, to);
	return true;
}
