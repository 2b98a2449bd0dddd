/* SPDX-License-Identifier: Apache-2.0 */
/* Device and host events as steps of growth, each with the id of its call site. */
#include "analysis/growth/growth.h"

#include "analysis/base/numbers.h"
#include "analysis/recording/host_weight.h"
#include "analysis/replay/replay.h"

bool growth_counts(bool framework, unsigned kind)
{
	if (framework)
		return kind == CUF_KIND_FRAMEWORK;
	return kind_is_block(kind);
}

/* A free counts at the site that allocated the block, not at the one that freed it. */
static void fill_device_step(struct growth_step *step, const struct reader *reader,
			     const struct cuf_event *event)
{
	bool is_free = event->op == CUF_OP_FREE;
	int64_t bytes = signed_up_to(event->bytes, INT64_MAX);

	*step = (struct growth_step){
		.delta_bytes = is_free ? -bytes : bytes,
		.time_ns = event->time_ns,
		.count = 1,
		.age_ms = is_free ? event->extra : 0,
		.tid = event->tid,
		.stack = reader_call_site(reader, event->op == CUF_OP_ALLOC ? event->stack :
									      event->alloc_stack),
		.hook = event->hook,
		.label = event->label,
		.kind = event->kind,
		.device = event->device,
	};
}

/* The steps of each layer in a row of events; false: the row goes past the moment. */
static bool split_row(const struct growth_devices *devices, const struct sweep_row *row,
		      struct growth_step steps[GROWTH_DEVICES][SWEEP_ROW],
		      size_t counts[GROWTH_DEVICES])
{
	for (size_t i = 0; i < row->count; i++) {
		const struct cuf_event *event = &row->events[i];
		bool framework = row->is_framework[i];

		if (event->seq > devices->seq)
			return false;
		if (growth_counts(framework, event->kind) &&
		    (event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE ||
		     event->op == CUF_OP_RESTORE))
			fill_device_step(&steps[framework][counts[framework]++], devices->reader,
					 event);
	}
	return true;
}

static bool take_first(void *state, const struct sweep_row *row)
{
	struct growth_devices *devices = state;
	struct growth_step steps[GROWTH_DEVICES][SWEEP_ROW];
	size_t counts[GROWTH_DEVICES] = { 0 };
	bool more = split_row(devices, row, steps, counts);

	for (unsigned layer = 0; layer < GROWTH_DEVICES; layer++)
		growth_first(&devices->layers[layer], steps[layer], counts[layer]);
	return more;
}

static bool take_again(void *state, const struct sweep_row *row)
{
	struct growth_devices *devices = state;
	struct growth_step steps[GROWTH_DEVICES][SWEEP_ROW];
	size_t counts[GROWTH_DEVICES] = { 0 };
	bool more = split_row(devices, row, steps, counts);

	for (unsigned layer = 0; layer < GROWTH_DEVICES; layer++)
		growth_again(&devices->layers[layer], steps[layer], counts[layer]);
	return more;
}

struct sweep_consumer growth_first_consumer(struct growth_devices *devices)
{
	return (struct sweep_consumer){ take_first, devices };
}

struct sweep_consumer growth_again_consumer(struct growth_devices *devices)
{
	return (struct sweep_consumer){ take_again, devices };
}

/* A host stream cannot go back, so a new one replaces it. */
static void rewind_host(void *state)
{
	struct growth_host *host = state;
	host_stream_free(host->stream);
	host->stream = host_stream_new(host->reader);
	host->row = host->row_end = NULL;
	host->at = 0;
	host->reading++;
}

/*
 * A sampled event stands for several blocks; the step has the bytes and number of all of them. It
 * is filled where it stays: small fields that are copied together at once stall the processor.
 */
static void fill_host_step(struct growth_step *step, const struct reader *reader,
			   const struct host_event *event, int sign)
{
	step->delta_bytes =
		sign * (int64_t)host_weight_bytes(event->bytes, event->sample_mean_bytes);
	step->time_ns = event->time_ns;
	step->count = host_weight_count(event->bytes, event->sample_mean_bytes);
	step->stack = reader_call_site(reader, event->stack);
	step->age_ms = 0;
	step->tid = event->tid;
	step->hook = step->label = 0;
	step->kind = CUF_KIND_HOST;
	step->device = CUF_DEVICE_NONE;
	step->is_resize = event->op == CUF_HOST_RESIZED || event->op == CUF_HOST_FREE_RESIZE;
}

/* The event at the place of the stream; NULL: that was the last one. */
static const struct host_event *look_at_host(struct growth_host *host)
{
	if (host->row == host->row_end) {
		size_t more = host_stream_row(host->stream, &host->row);

		host->row_end = host->row + more;
	}
	return host->row == host->row_end ? NULL : host->row;
}

static size_t read_host(void *state, struct growth_step *steps, size_t most)
{
	struct growth_host *host = state;
	size_t count = 0;

	while (count < most) {
		const struct host_event *event = look_at_host(host);
		int sign;

		if (!event || heap_is_after(&host->moment, host->at, event->time_ns))
			break;
		host->row++;
		host->at++;
		sign = host_event_sign(event->op);
		if (sign && event->bytes)
			fill_host_step(&steps[count++], host->reader, event, sign);
		if (host->reading > 1 && host->before)
			host->before(host->listener, event);
	}
	return count;
}

/* The rest of the stream. In a damaged one, some of it is before the moment. */
static void drain_host(void *state)
{
	struct growth_host *host = state;

	if (!host->after)
		return;
	for (const struct host_event *event; (event = look_at_host(host)); host->row++, host->at++)
		if (heap_is_after(&host->moment, host->at, event->time_ns))
			host->after(host->listener, event);
	host->after(host->listener, NULL);
}

struct growth_source growth_host_source(struct growth_host *host)
{
	return (struct growth_source){ host, rewind_host, read_host, drain_host };
}
