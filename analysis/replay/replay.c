/* SPDX-License-Identifier: Apache-2.0 */
/* Undoing and doing events. */
#include "analysis/replay/replay.h"

#include "analysis/base/xalloc.h"

bool kind_is_device_memory(unsigned kind)
{
	return 1u << kind & (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_ASYNC | 1u << CUF_KIND_GRAPH | 1u << CUF_KIND_VMM | 1u << CUF_KIND_ARRAY);
}

bool kind_is_block(unsigned kind)
{
	return 1u << kind & (1u << CUF_KIND_DEVICE | 1u << CUF_KIND_MANAGED | 1u << CUF_KIND_PINNED | 1u << CUF_KIND_REGISTERED |
			     1u << CUF_KIND_ASYNC | 1u << CUF_KIND_VMM | 1u << CUF_KIND_ARRAY | 1u << CUF_KIND_IMPORTED);
}

static bool ledger_block(const struct reader *reader, uint64_t i, struct cuf_block *b)
{
	*b = *(const struct cuf_block *)reader_at(reader, CUF_SEC_LEDGER, i);
	return b->key && b->key != CUF_KEY_BUSY && b->kind && b->kind < CUF_KIND_MAX;
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
			struct cuf_block b;
			if (i % DROP_EVERY == DROP_EVERY - 1)
				reader_drop_range(reader, reader_at(reader, CUF_SEC_LEDGER, i + 1 - DROP_EVERY), DROP_EVERY * (uint64_t)sizeof b);
			if (!ledger_block(reader, i, &b))
				continue;
			if (counting)
				blocks++;
			else
				liveset_put(live, &b);
		}
	}
	reader_drop(reader, CUF_SEC_LEDGER);
}

static uint64_t key_of(const struct cuf_event *e) { return cuf_key(cuf_kind_space(e->kind), e->addr); }

static struct cuf_block block_of(const struct cuf_event *e)
{
	uint64_t age_ns = e->op == CUF_OP_ALLOC ? 0 : (uint64_t)e->extra * 1000000u;
	return (struct cuf_block){
		.key = key_of(e), .bytes = e->bytes, .aux = e->aux, .seq = e->op == CUF_OP_ALLOC ? e->seq : 0,
		.time_ns = e->time_ns > age_ns ? e->time_ns - age_ns : 0,
		.stack = e->op == CUF_OP_ALLOC ? e->stack : e->alloc_stack, .tid = e->tid, .references = 1,
		.hook = e->op == CUF_OP_ALLOC ? e->hook : 0, .label = e->op == CUF_OP_ALLOC ? e->label : 0,
		.kind = e->kind, .device = e->device, .flags = (uint8_t)(e->flags & ~CUF_EVENT_BULK),
	};
}

/* What the block that lives there is for, unless it is a later one, or somebody has said. */
static void tell_role(const struct liveset *live, const struct cuf_event *e, uint64_t key)
{
	struct cuf_block *b = liveset_find(live, key);
	if (b && !b->role && b->seq < e->seq && e->extra < CUF_ROLE_MAX)
		b->role = (uint8_t)e->extra;
}

void replay_apply(struct liveset *live, const struct cuf_event *event)
{
	struct cuf_block b = block_of(event);
	if (!event->kind)
		return;
	switch (event->op) {
	case CUF_OP_ALLOC: case CUF_OP_RESTORE: liveset_put(live, &b); break;
	case CUF_OP_FREE: liveset_take(live, b.key, NULL); break;
	case CUF_OP_ROLE: tell_role(live, event, b.key); break;
	default: break;
	}
}

/*
 * A block allocated over a live one hides it: the hidden one's own ALLOC, further back, says what it was. Empty unless
 * the recorder counted such replacements. unborn: blocks put back by a FREE whose ALLOC was not met yet.
 */
struct undo { struct liveset *live, hidden; size_t unborn; bool replaced; };

static void take(struct undo *u, uint64_t key)
{
	struct cuf_block was;
	if (liveset_take(u->live, key, &was) && !was.seq && u->unborn)
		u->unborn--;
}

static void put(struct undo *u, const struct cuf_block *b)
{
	take(u, b->key);
	if (liveset_put(u->live, b))
		u->unborn += !b->seq;
}

/* Events of after the moment are undone. */
static void undo(struct undo *u, const struct cuf_event *e, const struct cuf_block *b)
{
	if (e->op == CUF_OP_FREE) {
		put(u, b);
		return;
	}
	take(u, b->key);
	if (u->replaced)
		liveset_put(&u->hidden, b);
}

/* Events of before it only tell about blocks that undoing brought back. */
static void learn(struct undo *u, const struct cuf_event *e, const struct cuf_block *b)
{
	struct cuf_block *known, was;
	if (e->op == CUF_OP_RESTORE)
		return;
	if (u->replaced && liveset_take(&u->hidden, b->key, &was) && e->op == CUF_OP_ALLOC)
		put(u, b);
	known = liveset_find(u->live, b->key);
	if (e->op == CUF_OP_ALLOC && known && !known->seq) {
		known->seq = b->seq;
		known->time_ns = b->time_ns;
		known->tid = b->tid;
		known->hook = b->hook;
		known->label = b->label;
		u->unborn -= u->unborn != 0;
	}
}

static bool is_replayed(const struct cuf_event *e)
{
	return e->kind && (e->op == CUF_OP_ALLOC || e->op == CUF_OP_FREE || e->op == CUF_OP_RESTORE);
}

/* What blocks were said to be for, of those of one ring, from the newest on. An event further back than a block's own
 * birth was of another one at its address. */
struct role_walk { const struct events *events; size_t left; bool framework; };

static void tell_roles_after(struct role_walk *w, uint64_t seq, struct liveset *live)
{
	while (w->left) {
		struct cuf_event e = events_get(w->events, w->events->roles[w->left - 1]);
		if (e.seq <= seq)
			return;
		w->left--;
		if (e.kind && (e.kind == CUF_KIND_FRAMEWORK) == w->framework)
			tell_role(live, &e, key_of(&e));
	}
}

/* One ring: its keys are a name space of their own, so each is undone by itself. */
static void undo_ring(const struct events *events, const struct events *said, uint64_t from, uint64_t to, struct liveset *live)
{
	struct role_walk roles = { said, said->role_count, events == said };
	struct undo u = { .live = live, .replaced = events->reader->header.replaced != 0 };
	size_t passed = 0;
	if (to >= events->last_seq || to >= from)
		return;
	liveset_init(&u.hidden, 0);
	for (size_t i = from >= events->last_seq ? events->count : events_after(events, from); i--;) {
		struct cuf_event e = events_get(events, i);
		struct cuf_block b;
		events_passed(events, passed++);
		if (e.seq <= to && !u.unborn && !u.hidden.count)
			break;
		if (!is_replayed(&e))
			continue;
		tell_roles_after(&roles, e.seq, live);
		b = block_of(&e);
		(e.seq > to ? undo : learn)(&u, &e, &b);
	}
	tell_roles_after(&roles, 0, live);
	reader_drop(events->reader, events->ring);
	liveset_fini(&u.hidden);
}

static bool is_complete(const struct events *events, uint64_t seq) { return seq >= events->last_seq || events->complete_since <= seq; }

void replay_at(const struct reader *reader, const struct events *events, uint64_t seq, struct liveset *live, struct replay_exact *exact)
{
	const struct reader_section *ledger = &reader->sections[CUF_SEC_LEDGER];
	bool whole = ledger->bytes && ledger->count == ledger->planned;
	replay_now(reader, live);
	undo_ring(events, events->framework, CUF_UNKNOWN, seq, live);
	undo_ring(events->framework, events->framework, CUF_UNKNOWN, seq, live);
	*exact = (struct replay_exact){ whole && is_complete(events, seq), whole && is_complete(events->framework, seq) };
}

bool replay_back(const struct events *events, uint64_t from, uint64_t to, struct liveset *live, struct replay_exact *exact)
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
