/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations, frees and failures as rows. */
#include "analysis/recording/host_weight.h"
#include "analysis/facts/history/rows_parts.h"

struct seeing {
	struct rows *rows;
	void (*see)(void *context, const struct event_row *event);
	void *context;
	uint32_t process;
};

static bool op_of(unsigned recorded, enum event_op *op)
{
	switch (recorded) {
	case CUF_OP_ALLOC: *op = EVENT_ALLOC; return true;
	case CUF_OP_FREE: *op = EVENT_FREE; return true;
	case CUF_OP_RESTORE: *op = EVENT_RESTORE; return true;
	case CUF_OP_FAIL: *op = EVENT_FAIL; return true;
	default: return false;
	}
}

static void see_device_event(const struct seeing *seeing, const struct cuf_event *event)
{
	struct rows *rows = seeing->rows;
	uint32_t p = seeing->process, stack = event->stack;
	struct event_row row = {
		.seq = event->seq, .addr = event->addr, .bytes = event->bytes,
		.weight_bytes = event->bytes, .weight_count = 1, .process = p,
		.device = rows_device(rows, p, event->device), .kind = event->kind,
		.tid = event->tid, .api = rows_api(rows, p, event->hook, event->label),
	};

	if (!op_of(event->op, &row.op) || !rows_want(rows, event->kind, row.device))
		return;
	row.time_ns = reader_realtime(rows->run->processes[p].reader, event->time_ns);
	if (row.op == EVENT_FAIL) {
		row.addr = 0;
		row.incident = event->addr;
		row.result = event->kind == CUF_KIND_FRAMEWORK ? 0 : event->extra;
	}
	if (row.op == EVENT_FREE || row.op == EVENT_RESTORE)
		stack = event->alloc_stack;
	row.site = rows_site_of_stack(rows, p, stack);
	seeing->see(seeing->context, &row);
}

static void see_host_event(const struct seeing *seeing, const struct host_event *event)
{
	struct rows *rows = seeing->rows;
	int sign = host_event_sign(event->op);
	struct event_row row = {
		.time_ns = reader_realtime(rows->run->processes[seeing->process].reader,
					   event->time_ns),
		.addr = event->addr, .bytes = event->bytes,
		.weight_bytes = host_weight_bytes(event->bytes, event->sample_mean_bytes),
		.weight_count = host_weight_count(event->bytes, event->sample_mean_bytes),
		.op = sign > 0 ? EVENT_ALLOC : EVENT_FREE, .process = seeing->process,
		.device = FACT_NONE, .kind = CUF_KIND_HOST, .tid = event->tid,
		.site = rows_site_of_stack(rows, seeing->process, event->stack), .part = ROW_MALLOC,
	};

	if (!sign || !event->bytes)
		return;
	if (event->op == CUF_HOST_RESTORE)
		row.op = EVENT_RESTORE;
	if (cuf_address_is_map(event->addr, event->bytes))
		row.part = ROW_MAP;
	else if (cuf_address_is_python(event->addr, event->bytes))
		row.part = ROW_PYTHON;
	seeing->see(seeing->context, &row);
}

/* Both kinds of events by time; at the same time those of devices first. */
static void see_process(const struct seeing *seeing)
{
	const struct run_process *recorded = &seeing->rows->run->processes[seeing->process];
	struct host_stream *stream = NULL;
	struct event_merge merge;
	struct cuf_event event;
	struct host_event host;
	bool has_event, has_host = false;

	if (rows_want(seeing->rows, CUF_KIND_HOST, FACT_NONE))
		stream = host_stream_new(recorded->reader);
	event_merge_begin(&merge, recorded->events, 0);
	has_event = event_merge_next(&merge, &event);
	has_host = stream && host_stream_next(stream, &host);
	while (has_event || has_host) {
		rows_step(seeing->rows);
		if (has_event && (!has_host || event.time_ns <= host.time_ns)) {
			if (event.kind)
				see_device_event(seeing, &event);
			has_event = event_merge_next(&merge, &event);
		} else {
			see_host_event(seeing, &host);
			has_host = host_stream_next(stream, &host);
		}
	}
	host_stream_free(stream);
}

void rows_events(struct rows *rows, void (*see)(void *context, const struct event_row *event),
		 void *context)
{
	struct seeing seeing = { rows, see, context, 0 };

	rows_begin_pass(rows);
	for (; seeing.process < rows->facts->process_count; seeing.process++)
		if (rows_want_process(rows, seeing.process))
			see_process(&seeing);
}
