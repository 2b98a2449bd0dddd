/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks that were live at the moment of the facts. */
#include "analysis/base/numbers.h"
#include "analysis/measure/heap.h"
#include "analysis/facts/history/rows_parts.h"

struct seeing {
	struct rows *rows;
	void (*see)(void *context, const struct block_row *block);
	void *context;
	uint32_t process;
};

/* ---- devices and frameworks ---- */

/* Devices may have different moments: their own peaks. */
static void see_at(const struct seeing *seeing, uint64_t seq)
{
	struct rows *rows = seeing->rows;
	const struct fact_process *process = &rows->facts->processes[seeing->process];
	bool exact;
	const struct liveset *live = run_live(&rows->run->processes[seeing->process], seq, &exact);
	size_t at = 0;

	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		struct block_row row;

		if (fact_live_seq(process, block->device) != seq ||
		    !rows_want(rows, block->kind,
			       rows_device(rows, seeing->process, block->device)))
			continue;
		row = rows_device_block(rows, seeing->process, block);
		seeing->see(seeing->context, &row);
	}
}

static void see_devices(const struct seeing *seeing)
{
	const struct fact_process *process = &seeing->rows->facts->processes[seeing->process];
	uint64_t seqs[CUF_DEVICES_MAX + 1];
	size_t count = fact_live_seqs(process, seqs);

	for (size_t i = 0; i < count; i++)
		if (seqs[i])
			see_at(seeing, seqs[i]);
}

/* ---- the host ---- */

/*
 * The first event of each address after the moment tells what was there: a block that is freed was
 * live, one that is allocated was not. An address without such an event is as the ledger has it.
 */
static void note_later(struct rows *rows, uint32_t process, const struct heap_moment *moment,
		       struct host_table *later)
{
	const struct reader *reader = rows->run->processes[process].reader;
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event;

	for (uint64_t place = 0; host_stream_next(stream, &event); place++) {
		int sign = host_event_sign(event.op);
		struct host_slot slot = { .addr = event.addr, .born_ms = HOST_BORN_UNKNOWN };

		rows_step(rows);
		if (!heap_is_after(moment, place, event.time_ns) || !sign || !event.bytes ||
		    host_table_find(later, event.addr))
			continue;
		if (sign < 0)
			slot.word1 = cuf_host_word1(event.stack, event.bytes);
		host_table_put(later, &slot, NULL);
	}
	host_stream_free(stream);
}

/* The last allocation at an address before the moment is the birth of the block. */
static void note_births(struct rows *rows, uint32_t process, const struct heap_moment *moment,
			struct host_table *later)
{
	const struct reader *reader = rows->run->processes[process].reader;
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event;

	for (uint64_t place = 0; host_stream_next(stream, &event); place++) {
		struct host_slot *slot;

		if (heap_is_after(moment, place, event.time_ns))
			break;
		if (host_event_sign(event.op) <= 0)
			continue;
		slot = host_table_find(later, event.addr);
		if (!slot || !slot->word1)
			continue;
		slot->born_ms = (uint32_t)least_of(
			subtract_to_zero(event.time_ns, reader->header.start_ns) / 1000000u,
			HOST_BORN_UNKNOWN - 1);
		slot->tid = event.tid;
	}
	host_stream_free(stream);
}

static void see_later(const struct seeing *seeing, const struct host_table *later,
		      const struct host_means *means)
{
	const struct reader *reader = seeing->rows->run->processes[seeing->process].reader;

	for (size_t i = 0; i < later->room; i++) {
		const struct host_slot *slot = &later->slots[i];
		struct host_row host = { .addr = slot->addr,
					 .bytes = cuf_host_bytes(slot->word1),
					 .born_ns = CUF_UNKNOWN,
					 .mean_bytes = host_means_most(means),
					 .stack = cuf_host_stack(slot->word1),
					 .tid = slot->tid };
		struct block_row row;

		if (!slot->addr || !slot->word1)
			continue;
		if (slot->born_ms != HOST_BORN_UNKNOWN) {
			host.born_ns = reader->header.start_ns + slot->born_ms * 1000000ull;
			host.mean_bytes = host_means_at(means, cuf_birth_encode(slot->born_ms));
		}
		row = rows_host_block(seeing->rows, seeing->process, &host);
		seeing->see(seeing->context, &row);
	}
}

static void see_host(const struct seeing *seeing)
{
	struct rows *rows = seeing->rows;
	const struct run_process *recorded = &rows->run->processes[seeing->process];
	const struct fact_live_moment *live = &rows->facts->processes[seeing->process].live;
	struct heap_moment moment = { .time_ns = live->host_ns, .events = live->host_events };
	struct host_means means = host_means_of(recorded->reader, &recorded->meta);
	struct host_table later;
	struct host_row host;
	uint64_t at = 0;

	host_table_init(&later);
	if (is_known(moment.time_ns)) {
		note_later(rows, seeing->process, &moment, &later);
		if (later.count)
			note_births(rows, seeing->process, &moment, &later);
	}
	while (rows_ledger_next(recorded, &means, &at, &host)) {
		struct block_row row;

		if (host_table_find(&later, host.addr))
			continue;
		row = rows_host_block(rows, seeing->process, &host);
		seeing->see(seeing->context, &row);
	}
	see_later(seeing, &later, &means);
	host_table_fini(&later);
}

void rows_live(struct rows *rows, void (*see)(void *context, const struct block_row *block),
	       void *context)
{
	struct seeing seeing = { rows, see, context, 0 };

	rows_begin_pass(rows);
	for (uint32_t p = 0; p < rows->facts->process_count; p++) {
		if (!rows_want_process(rows, p))
			continue;
		seeing.process = p;
		see_devices(&seeing);
		if (rows_want(rows, CUF_KIND_HOST, FACT_NONE))
			see_host(&seeing);
		run_rest(rows->run, &rows->run->processes[p]);
	}
}
