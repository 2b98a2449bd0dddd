/* SPDX-License-Identifier: Apache-2.0 */
/* Device and host events as steps of growth. */
#include "analysis/growth/growth.h"

#include "analysis/recording/host_weight.h"
#include "analysis/replay/replay.h"

bool growth_counts(bool framework, unsigned kind) { return framework ? kind == CUF_KIND_FRAMEWORK : kind_is_block(kind); }

static void rewind_device(void *state) { ((struct growth_device *)state)->at = 0; }

static bool next_device(struct growth_device *d, struct growth_step *step)
{
	while (d->at < d->events->count) {
		struct cuf_event e = events_get(d->events, d->at++);
		int64_t bytes = e.bytes < (uint64_t)INT64_MAX ? (int64_t)e.bytes : INT64_MAX;
		if (e.seq > d->seq)
			return false;
		if (!growth_counts(d->framework, e.kind) || (e.op != CUF_OP_ALLOC && e.op != CUF_OP_FREE && e.op != CUF_OP_RESTORE))
			continue;
		*step = (struct growth_step){ .delta_bytes = e.op == CUF_OP_FREE ? -bytes : bytes, .time_ns = e.time_ns, .count = 1, .tid = e.tid,
			.age_ms = e.op == CUF_OP_FREE ? e.extra : 0, .stack = e.op == CUF_OP_ALLOC ? e.stack : e.alloc_stack, .hook = e.hook, .label = e.label, .kind = e.kind, .device = e.device };
		return true;
	}
	return false;
}

static size_t read_device(void *state, struct growth_step *steps, size_t most)
{
	size_t count = 0;
	while (count < most && next_device(state, &steps[count]))
		count++;
	return count;
}

struct growth_source growth_device_source(struct growth_device *device)
{
	return (struct growth_source){ device, rewind_device, read_device };
}

static void rewind_host(void *state)
{
	struct growth_host *h = state;
	host_stream_free(h->stream);
	h->stream = host_stream_new(h->reader);
}

static bool next_host(struct growth_host *h, struct growth_step *step)
{
	struct host_event e;
	while (host_stream_next(h->stream, &e)) {
		int sign = host_event_sign(e.op);
		if (e.time_ns > h->time_ns)
			return false;
		if (!sign || !e.bytes)
			continue;
		*step = (struct growth_step){ .delta_bytes = sign * (int64_t)host_weight_bytes(e.bytes, e.sample_mean_bytes),
			.time_ns = e.time_ns, .count = host_weight_count(e.bytes, e.sample_mean_bytes), .stack = e.stack, .tid = e.tid, .kind = CUF_KIND_HOST, .device = CUF_DEVICE_NONE };
		return true;
	}
	return false;
}

static size_t read_host(void *state, struct growth_step *steps, size_t most)
{
	size_t count = 0;
	while (count < most && next_host(state, &steps[count]))
		count++;
	return count;
}

struct growth_source growth_host_source(struct growth_host *host)
{
	return (struct growth_source){ host, rewind_host, read_host };
}
