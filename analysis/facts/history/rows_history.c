/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every block with its birth and death, in one pass over the events. A free carries its block, so a
 * block whose allocation was overwritten is still complete, and the ledgers have those that nothing
 * freed.
 */
#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/rows_parts.h"

/* A free may be undone by the next event of its thread, so it waits behind this many others. */
enum { WAITING = 64 };

struct history {
	struct rows *rows;
	void (*see)(void *context, const struct block_row *block);
	void *context;
	uint32_t process;
	struct liveset live;     /* device blocks that are born and not freed yet */
	struct waiting {
		struct cuf_block block;
		uint64_t died_ns, died_seq;
		bool born_seen;
	} freed[WAITING];
	size_t freed_first, freed_count;
};

/* ---- devices and frameworks ---- */

static void see_block(struct history *history, const struct waiting *waiting)
{
	const struct cuf_block *block = &waiting->block;
	struct rows *rows = history->rows;
	struct block_row row;

	if (!rows_want(rows, block->kind, rows_device(rows, history->process, block->device)))
		return;
	row = rows_device_block(rows, history->process, block);
	row.died_ns = waiting->died_ns;
	row.died_seq = waiting->died_seq;
	row.born_seen = waiting->born_seen;
	history->see(history->context, &row);
}

static void see_oldest_free(struct history *history)
{
	struct waiting *oldest = &history->freed[history->freed_first % WAITING];

	if (oldest->block.key)
		see_block(history, oldest);
	history->freed_first++;
	history->freed_count--;
}

/* The birth of a block that is known only by its free. */
static struct cuf_block block_of_free(const struct cuf_event *event, uint64_t key)
{
	return (struct cuf_block){
		.key = key, .bytes = event->bytes, .aux = event->aux, .stack = event->alloc_stack,
		.time_ns = subtract_to_zero(event->time_ns, event->extra * 1000000ull),
		.kind = event->kind, .device = event->device,
	};
}

static void note_free(struct history *history, const struct cuf_event *event, uint64_t key)
{
	const struct reader *reader = history->rows->run->processes[history->process].reader;
	struct waiting *waiting;
	struct cuf_block block;
	bool born_seen = liveset_take(&history->live, key, &block);

	if (!born_seen)
		block = block_of_free(event, key);
	if (history->freed_count == WAITING)
		see_oldest_free(history);
	waiting = &history->freed[(history->freed_first + history->freed_count++) % WAITING];
	*waiting = (struct waiting){ block, reader_realtime(reader, event->time_ns), event->seq,
				     born_seen };
}

/* The free was refused: the block lives as if nothing had happened. */
static void note_restore(struct history *history, uint64_t key)
{
	for (size_t i = history->freed_count; i--;) {
		struct waiting *waiting =
			&history->freed[(history->freed_first + i) % WAITING];

		if (waiting->block.key != key)
			continue;
		liveset_put(&history->live, &waiting->block);
		waiting->block.key = 0;
		return;
	}
}

static void note_alloc(struct history *history, const struct cuf_event *event, uint64_t key)
{
	const struct reader *reader = history->rows->run->processes[history->process].reader;
	struct cuf_block block = {
		.key = key, .bytes = event->bytes, .aux = event->aux, .seq = event->seq,
		.time_ns = event->time_ns, .stack = event->stack, .tid = event->tid,
		.hook = event->hook, .label = event->label,
		.kind = event->kind, .device = event->device,
	}, was;

	if (liveset_take(&history->live, key, &was)) /* its free was missed */
		see_block(history, &(struct waiting){ was, reader_realtime(reader, event->time_ns),
						      event->seq, true });
	liveset_put(&history->live, &block);
}

static void note_event(struct history *history, const struct cuf_event *event)
{
	uint64_t key = cuf_key(cuf_kind_space(event->kind), event->addr);
	struct cuf_block *block;

	switch (event->op) {
	case CUF_OP_ALLOC: note_alloc(history, event, key); break;
	case CUF_OP_FREE: note_free(history, event, key); break;
	case CUF_OP_RESTORE: note_restore(history, key); break;
	case CUF_OP_ROLE:
		block = liveset_find(&history->live, key);
		if (block && event->extra < CUF_ROLE_MAX)
			block->role = (uint8_t)event->extra;
		break;
	default: break;
	}
}

/* What the ledger has is live. A block of the events that it does not have was dropped by it, or
 * its free was lost. */
static void see_survivors(struct history *history)
{
	struct run_process *recorded = &history->rows->run->processes[history->process];
	bool exact;
	const struct liveset *now = run_live(recorded, CUF_UNKNOWN, &exact);
	size_t at = 0;

	for (const struct cuf_block *block; (block = liveset_next(now, &at));) {
		struct waiting survivor = { .block = *block, .died_ns = CUF_UNKNOWN };
		struct cuf_block born;

		survivor.born_seen = liveset_take(&history->live, block->key, &born);
		if (survivor.born_seen && !block->role)
			survivor.block.role = born.role;
		see_block(history, &survivor);
	}
}

static void see_devices(struct history *history)
{
	const struct events *events = history->rows->run->processes[history->process].events;
	struct event_merge merge;
	struct cuf_event event;

	liveset_init(&history->live, 1024);
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &event)) {
		rows_step(history->rows);
		if (event.kind)
			note_event(history, &event);
	}
	while (history->freed_count)
		see_oldest_free(history);
	see_survivors(history);
	liveset_fini(&history->live);
}

/* ---- the host ---- */

struct host_history {
	struct history *all;
	const struct run_process *recorded;
	struct host_means means;
	struct host_table live;
};

static uint64_t born_ns(const struct host_history *host, uint32_t born_ms)
{
	if (born_ms == HOST_BORN_UNKNOWN)
		return CUF_UNKNOWN;
	return host->recorded->reader->header.start_ns + born_ms * 1000000ull;
}

static void see_dead(const struct host_history *host, const struct host_event *event)
{
	struct history *history = host->all;
	struct host_row dead = { .addr = event->addr, .bytes = event->bytes,
				 .born_ns = CUF_UNKNOWN, .mean_bytes = event->sample_mean_bytes,
				 .stack = event->stack };
	struct host_slot *slot = host_table_find(&host->live, event->addr);
	struct block_row row;

	if (slot) {
		dead.born_ns = born_ns(host, slot->born_ms);
		dead.tid = slot->tid;
	}
	row = rows_host_block(history->rows, history->process, &dead);
	row.died_ns = reader_realtime(host->recorded->reader, event->time_ns);
	row.born_seen = slot != NULL;
	history->see(history->context, &row);
}

/* A realloc that failed leaves one block that died and one that was born again: rare enough. */
static void note_host_event(struct host_history *host, const struct host_event *event)
{
	uint64_t start_ns = host->recorded->reader->header.start_ns;
	struct host_slot slot = { .addr = event->addr, .tid = event->tid };

	if (!event->bytes)
		return;
	if (host_event_sign(event->op) > 0) {
		slot.word1 = cuf_host_word1(event->stack, event->bytes);
		slot.born_ms = (uint32_t)least_of(
			subtract_to_zero(event->time_ns, start_ns) / 1000000u,
			HOST_BORN_UNKNOWN - 1);
		host_table_put(&host->live, &slot, NULL);
	} else if (host_event_sign(event->op) < 0) {
		see_dead(host, event);
		host_table_take(&host->live, event->addr, &slot);
	}
}

/* The ledger decides what is live: events of different threads may be a few ms out of order. */
static void see_host_survivors(struct host_history *host)
{
	struct history *history = host->all;
	struct host_row live;
	uint64_t at = 0;

	while (rows_ledger_next(host->recorded, &host->means, &at, &live)) {
		struct host_slot *slot = host_table_find(&host->live, live.addr);
		struct block_row row;

		if (slot && cuf_host_bytes(slot->word1) == live.bytes) {
			live.born_ns = born_ns(host, slot->born_ms);
			live.tid = slot->tid;
		}
		row = rows_host_block(history->rows, history->process, &live);
		row.born_seen = slot && cuf_host_bytes(slot->word1) == live.bytes;
		history->see(history->context, &row);
	}
}

static void see_host(struct history *history)
{
	struct host_history host = {
		.all = history,
		.recorded = &history->rows->run->processes[history->process],
	};
	struct host_stream *stream = host_stream_new(host.recorded->reader);
	struct host_event event;

	host.means = host_means_of(host.recorded->reader, &host.recorded->meta);
	host_table_init(&host.live);
	while (host_stream_next(stream, &event)) {
		rows_step(history->rows);
		note_host_event(&host, &event);
	}
	host_stream_free(stream);
	see_host_survivors(&host);
	host_table_fini(&host.live);
}

void rows_blocks(struct rows *rows, void (*see)(void *context, const struct block_row *block),
		 void *context)
{
	struct history *history = xalloc_zeroed(1, sizeof *history);

	rows_begin_pass(rows);
	*history = (struct history){ .rows = rows, .see = see, .context = context };
	for (uint32_t p = 0; p < rows->facts->process_count; p++) {
		if (!rows_want_process(rows, p))
			continue;
		history->process = p;
		see_devices(history);
		if (rows_want(rows, CUF_KIND_HOST, FACT_NONE))
			see_host(history);
		run_rest(rows->run, &rows->run->processes[p]);
	}
	free(history);
}
