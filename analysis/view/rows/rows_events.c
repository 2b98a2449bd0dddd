/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations, frees and failures as rows. */
#include "analysis/recording/host_weight.h"
#include "analysis/view/rows/rows_parts.h"

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
	row.site = rows_site_of(rows, p, stack);
	seeing->see(seeing->context, &row);
}

static void see_devices(const struct seeing *seeing)
{
	struct event_merge merge;
	struct cuf_event event;

	event_merge_begin(&merge, seeing->rows->run->processes[seeing->process].events, 0);
	while (event_merge_next(&merge, &event)) {
		rows_step(seeing->rows);
		if (event.kind)
			see_device_event(seeing, &event);
	}
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
		.site = rows_site_of(rows, seeing->process, event->stack), .part = ROW_MALLOC,
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

static void see_host(const struct seeing *seeing)
{
	struct host_stream *stream =
		host_stream_new(seeing->rows->run->processes[seeing->process].reader);
	struct host_event event;

	while (host_stream_next(stream, &event)) {
		rows_step(seeing->rows);
		see_host_event(seeing, &event);
	}
	host_stream_free(stream);
}

void rows_events(struct rows *rows, void (*see)(void *context, const struct event_row *event),
		 void *context)
{
	struct seeing seeing = { rows, see, context, 0 };

	rows_begin_pass(rows);
	for (seeing.process = 0; seeing.process < rows->facts->process_count; seeing.process++) {
		if (!rows_want_process(rows, seeing.process))
			continue;
		see_devices(&seeing);
		if (rows_want(rows, CUF_KIND_HOST, FACT_NONE))
			see_host(&seeing);
	}
}
