/* SPDX-License-Identifier: Apache-2.0 */
/* Device and host events as steps of growth, each with the id of its call site. */
#include "analysis/growth/growth.h"

#include "analysis/recording/host_weight.h"
#include "analysis/replay/replay.h"

bool growth_counts(bool framework, unsigned kind)
{
	return framework ? kind == CUF_KIND_FRAMEWORK : kind_is_block(kind);
}

static void rewind_device(void *state) { ((struct growth_device *)state)->at = 0; }

static bool next_device(struct growth_device *device, struct growth_step *step)
{
	while (device->at < device->events->count) {
		struct cuf_event event = events_get(device->events, device->at++);
		int64_t bytes =
			event.bytes < (uint64_t)INT64_MAX ? (int64_t)event.bytes : INT64_MAX;
		if (event.seq > device->seq)
			return false;
		if (!growth_counts(device->framework, event.kind) ||
		    (event.op != CUF_OP_ALLOC && event.op != CUF_OP_FREE &&
		     event.op != CUF_OP_RESTORE))
			continue;
		*step = (struct growth_step){
			.delta_bytes = event.op == CUF_OP_FREE ? -bytes : bytes,
			.time_ns = event.time_ns,
			.count = 1,
			.tid = event.tid,
			.age_ms = event.op == CUF_OP_FREE ? event.extra : 0,
			.stack = reader_call_site(device->events->reader,
						  event.op == CUF_OP_ALLOC ? event.stack
									   : event.alloc_stack),
			.hook = event.hook,
			.label = event.label,
			.kind = event.kind,
			.device = event.device
		};
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
	struct growth_host *host = state;
	host_stream_free(host->stream);
	host->stream = host_stream_new(host->reader);
}

static bool next_host(struct growth_host *host, struct growth_step *step)
{
	struct host_event event;
	while (host_stream_next(host->stream, &event)) {
		int sign = host_event_sign(event.op);
		if (event.time_ns > host->time_ns)
			return false;
		if (!sign || !event.bytes)
			continue;
		*step = (struct growth_step){
			.delta_bytes = sign * (int64_t)host_weight_bytes(event.bytes,
									 event.sample_mean_bytes),
			.time_ns = event.time_ns,
			.count = host_weight_count(event.bytes, event.sample_mean_bytes),
			.stack = reader_call_site(host->reader, event.stack),
			.tid = event.tid,
			.kind = CUF_KIND_HOST,
			.device = CUF_DEVICE_NONE
		};
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
