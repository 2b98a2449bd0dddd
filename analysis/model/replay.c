/* SPDX-License-Identifier: Apache-2.0 */
/* Undoing and doing events. */
#include "analysis/model/replay.h"

#include "analysis/model/xalloc.h"

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

void replay_apply(struct liveset *live, const struct cuf_event *event)
{
	struct cuf_block b = block_of(event);
	if (!event->kind)
		return;
	switch (event->op) {
	case CUF_OP_ALLOC: case CUF_OP_RESTORE: liveset_put(live, &b); break;
	case CUF_OP_FREE: liveset_take(live, b.key, NULL); break;
	default: break;
	}
}

/*
 * A block allocated over a live one hides it: the hidden one's own ALLOC, further back, says what it was. Empty unless
 * the recorder counted such replacements. unborn: blocks put back by a FREE whose ALLOC was not met yet.
 */
struct undo { struct liveset *live, hidden; uint64_t seq; size_t unborn; bool replaced; };

static void take(struct undo *u, uint64_t key)
{
	struct cuf_block was;
	if (liveset_take(u->live, key, &was))
		u->unborn -= !was.seq;
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
		u->unborn--;
	}
}

void replay_at(const struct reader *reader, const struct events *events, uint64_t seq, struct liveset *live, bool *exact)
{
	struct undo u = { .live = live, .seq = seq, .replaced = reader->header.replaced != 0 };
	const struct reader_section *ledger = &reader->sections[CUF_SEC_LEDGER];
	*exact = ledger->bytes && ledger->count == ledger->planned;
	replay_now(reader, live);
	if (seq >= events->last_seq)
		return;
	*exact = *exact && events->complete_since <= seq;
	liveset_init(&u.hidden, 0);
	for (size_t i = events->count; i--;) {
		struct cuf_event e = events_get(events, i);
		struct cuf_block b;
		if (e.seq <= seq && !u.unborn && !u.hidden.count)
			break;
		if (!e.kind || (e.op != CUF_OP_ALLOC && e.op != CUF_OP_FREE && e.op != CUF_OP_RESTORE))
			continue;
		b = block_of(&e);
		(e.seq > seq ? undo : learn)(&u, &e, &b);
	}
	reader_drop(reader, CUF_SEC_RING);
	liveset_fini(&u.hidden);
}
