/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks that live across a moment are kept while the events are swept. */
#include "analysis/replay/replay.h"

#include <stdlib.h>
#include <string.h>
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

static bool is_replayed(const struct cuf_event *event)
{
	return event->kind && (event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE ||
			       event->op == CUF_OP_RESTORE);
}

/* ---- the blocks that live across a moment ---- */

/* A FREE that failed is restored by its own thread, so few others free in between. */
enum { PARKED = 64 };

struct ended { struct cuf_block block; uint64_t until; };

struct crossings {
	uint64_t *seqs; size_t count; /* ascending */
	size_t needed, passed;    /* those that an end may follow; those before the event */
	bool replaced;            /* the recorder saw blocks that were allocated over live ones */
	struct liveset open;      /* whose end was not met so far; seq 0: born before the events */
	struct cuf_block parked[PARKED]; size_t freed; /* the blocks that were freed last */
	/* born before a moment and ended after it; ascending by end */
	struct ended *ended; size_t ended_count, room;
};

struct crossings *crossings_new(const struct events *events, const uint64_t *seqs, size_t count)
{
	struct crossings *moments = xalloc_zeroed(1, sizeof *moments);
	uint64_t last = most_of(events->last_free_seq, events->framework->last_free_seq);

	moments->seqs = xalloc_zeroed(count, sizeof *moments->seqs);
	moments->count = count;
	if (count) {
		memcpy(moments->seqs, seqs, count * sizeof *seqs);
		qsort(moments->seqs, count, sizeof *seqs, compare_uint64);
	}
	moments->replaced = events->reader->header.replaced != 0;
	while (moments->needed < count &&
	       (moments->replaced || moments->seqs[moments->needed] < last))
		moments->needed++;
	liveset_init(&moments->open, 0);
	return moments;
}

void crossings_free(struct crossings *moments)
{
	if (!moments)
		return;
	liveset_fini(&moments->open);
	free(moments->seqs);
	free(moments->ended);
	free(moments);
}

bool crossings_have(const struct crossings *moments, uint64_t seq)
{
	return moments && bsearch(&seq, moments->seqs, moments->count, sizeof seq, compare_uint64);
}

/* Keeps the block if it lived at a moment before this event. */
static void end_block(struct crossings *moments, const struct cuf_block *block, uint64_t seq)
{
	if (!moments->passed || block->seq > moments->seqs[moments->passed - 1])
		return;
	xalloc_grow(&moments->ended, moments->ended_count, &moments->room,
		    sizeof *moments->ended);
	moments->ended[moments->ended_count++] = (struct ended){ *block, seq };
}

/* A block allocated over a live one hides it. Unless the recorder counted that, a free was lost. */
static void open_block(struct crossings *moments, const struct cuf_event *event)
{
	struct cuf_block block = block_of(event), hidden;

	if (liveset_take(&moments->open, block.key, &hidden) && moments->replaced && hidden.kind)
		end_block(moments, &hidden, event->seq);
	liveset_put(&moments->open, &block);
}

/* A FREE has its block, except where it was born: its ALLOC knows that. */
static void close_block(struct crossings *moments, const struct cuf_event *event)
{
	struct cuf_block block = block_of(event), born;

	if (liveset_take(&moments->open, block.key, &born)) {
		block.role = born.role;
		if (born.seq) {
			block.seq = born.seq;
			block.time_ns = born.time_ns;
			block.tid = born.tid;
			block.hook = born.hook;
			block.label = born.label;
		}
	}
	end_block(moments, &block, event->seq);
	moments->parked[moments->freed++ % PARKED] = block;
}

/* The FREE failed: the block lives on. */
static void reopen_block(struct crossings *moments, const struct cuf_event *event)
{
	struct cuf_block block = block_of(event);

	for (size_t i = moments->freed; i && moments->freed - i < PARKED; i--)
		if (moments->parked[(i - 1) % PARKED].key == block.key) {
			block = moments->parked[(i - 1) % PARKED];
			break;
		}
	liveset_put(&moments->open, &block);
}

/* The ledger has the roles of what is live now. */
static void label_block(struct crossings *moments, const struct cuf_event *event)
{
	struct cuf_block *block = liveset_find(&moments->open, key_of(event));
	struct cuf_block unknown = { .key = key_of(event) };

	if (!event->kind || event->extra >= CUF_ROLE_MAX)
		return;
	if (!block && liveset_put(&moments->open, &unknown))
		block = liveset_find(&moments->open, unknown.key);
	if (block)
		block->role = (uint8_t)event->extra;
}

static void cross_event(struct crossings *moments, const struct cuf_event *event)
{
	while (moments->passed < moments->needed && moments->seqs[moments->passed] < event->seq)
		moments->passed++;
	if (event->op == CUF_OP_ROLE)
		label_block(moments, event);
	if (!is_replayed(event))
		return;
	switch (event->op) {
	case CUF_OP_ALLOC: open_block(moments, event); break;
	case CUF_OP_FREE: close_block(moments, event); break;
	default: reopen_block(moments, event); break;
	}
}

static bool take_row(void *state, const struct sweep_row *row)
{
	for (size_t i = 0; i < row->count; i++)
		cross_event(state, &row->events[i]);
	return true;
}

struct sweep_consumer crossings_consumer(struct crossings *moments)
{
	return (struct sweep_consumer){ moments->needed ? take_row : NULL, moments };
}

void crossings_end(struct crossings *moments)
{
	liveset_fini(&moments->open);
	moments->open = (struct liveset){ 0 };
}

/* Where its ALLOC was overwritten, a block of now stands for what was there before it. */
static bool is_born_after(const struct events *events, const struct cuf_block *block, uint64_t to)
{
	if (block->kind == CUF_KIND_FRAMEWORK)
		events = events->framework;
	return block->seq > to && block->seq > events->complete_since;
}

static void crossings_back(const struct events *events, const struct crossings *moments,
			   uint64_t from, uint64_t to, struct liveset *live)
{
	for (size_t i = live->count; i--;)
		if (is_born_after(events, &live->blocks[i], to))
			liveset_take(live, live->blocks[i].key, NULL);
	for (size_t i = moments->ended_count; i--;) {
		const struct ended *ended = &moments->ended[i];

		if (ended->until <= to)
			break;
		if (ended->until <= from && ended->block.seq <= to)
			liveset_put(live, &ended->block);
	}
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

void replay_back(const struct events *events, const struct crossings *moments, uint64_t from,
		 uint64_t to, struct liveset *live, struct replay_exact *exact)
{
	if (from != CUF_UNKNOWN || to < most_of(events->last_seq, events->framework->last_seq))
		crossings_back(events, moments, from, to, live);
	exact->device &= is_complete(events, to);
	exact->framework &= is_complete(events->framework, to);
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
	struct crossings *moments;
	struct sweep_consumer consumer;

	replay_ledger(reader, live, exact);
	*events = events_new(reader, listener);
	moments = crossings_new(*events, &seq, 1);
	consumer = crossings_consumer(moments);
	sweep_events(*events, &consumer, 1);
	crossings_back(*events, moments, CUF_UNKNOWN, seq, live);
	crossings_free(moments);
	exact->device &= is_complete(*events, seq);
	exact->framework &= is_complete((*events)->framework, seq);
	events_cut(*events, seq);
	return is_sum_of(reader, live);
}
