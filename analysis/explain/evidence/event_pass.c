/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the events of one device; see event_pass.h. */
#include "analysis/explain/evidence/event_pass.h"

#include <string.h>
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/replay/replay.h"

/* Keeps one of `stride` sizes; doubles the stride when the array is full. */
static void keep_freed_size(struct freed_sizes *freed, uint64_t bytes)
{
	if (bytes > freed->most)
		freed->most = bytes;
	if (freed->seen++ % freed->stride)
		return;
	if (freed->count == FREED_SIZES_MAX) {
		for (size_t i = 0; i < FREED_SIZES_MAX / 2; i++)
			freed->sizes[i] = freed->sizes[2 * i];
		freed->count = FREED_SIZES_MAX / 2;
		freed->stride *= 2;
	}
	freed->sizes[freed->count++] = bytes;
}

/* Requests of one kind may come from several call sites; they have their size in common. */
static void follow_same_size(struct event_pass *pass, const struct cuf_event *event)
{
	struct cuf_event one = *event;

	one.stack = one.alloc_stack = 1;
	if (event->bytes != pass->evidence->metrics[METRIC_request])
		pass->same_size.frees += event->op == CUF_OP_FREE;
	else if (event->op == CUF_OP_FREE)
		site_traces_free(&pass->same_size, &one);
	else
		site_traces_alloc(&pass->same_size, &one);
}

/* How the family of equal blocks was allocated: after which query, and what came between. */
static void follow_family(struct event_pass *pass, const struct cuf_event *event)
{
	uint64_t unit = pass->evidence->metrics[METRIC_unit];

	pass->unit_allocs += event->bytes == unit;
	if (!pass->family_first || event->seq < pass->family_first)
		return;
	if (event->seq == pass->family_first && unit != CUF_UNKNOWN && pass->since_query < unit / 4)
		pass->family_query_seq = pass->query_seq;
	pass->burst_all += event->bytes;
	if (event->bytes == unit)
		pass->burst_family += event->bytes;
}

/* unit_sizes is a ring of the last sizes of the failing call site in the failing thread. */
static void follow_alloc(struct event_pass *pass, const struct cuf_event *event)
{
	const struct fact_incident *incident = pass->evidence->incident;

	follow_same_size(pass, event);
	follow_family(pass, event);
	if (event->bytes >= pass->small_bytes)
		pass->allocated += event->bytes;
	pass->since_query += event->bytes;
	pass->last_seq = event->seq;
	if (pass->failing && event->stack == pass->failing && event->tid == incident->tid)
		pass->unit_sizes[pass->unit_size_count++ % UNIT_SIZES_MAX] = event->bytes;
	site_traces_alloc(&pass->sites, event);
}

/* Bulk frees (of a context, a pool) are not typical of what requests free. */
static void follow_free(struct event_pass *pass, const struct cuf_event *event)
{
	bool small = event->bytes < pass->small_bytes;

	pass->unit_frees += event->bytes == pass->evidence->metrics[METRIC_unit];
	follow_same_size(pass, event);
	pass->freed_all += event->bytes;
	if (!small)
		pass->freed += event->bytes;
	if (!small && !(event->flags & CUF_EVENT_BULK))
		keep_freed_size(&pass->freed_sizes, event->bytes);
	site_traces_free(&pass->sites, event);
}

/* A query of free memory matters because engines size their KV cache by it. */
static void follow_event(struct event_pass *pass, const struct build *build,
			 const struct cuf_event *event)
{
	const char *hook;

	switch (event->op) {
	case CUF_OP_ALLOC: follow_alloc(pass, event); break;
	case CUF_OP_FREE: follow_free(pass, event); break;
	case CUF_OP_FREE_MEMORY:
		hook = hook_name(build, pass->evidence->process, event->hook);
		if (hook && !strncmp(hook, "cuMemGetInfo", 12)) {
			pass->query_seq = event->seq;
			pass->since_query = 0;
		}
		break;
	case CUF_OP_CAPTURE: pass->capture_seq = event->seq; break;
	default: break;
	}
}

/* Captures count whatever their device. Where a framework reports blocks, the driver's are its
 * segments and are left out. */
static bool is_followed(const struct event_pass *pass, const struct cuf_event *event)
{
	bool block = event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE;

	if (event->op == CUF_OP_CAPTURE)
		return true;
	if (event->device != pass->ordinal || event->bytes >= BYTES_SANE)
		return false;
	if (!block)
		return true;
	if (pass->framework)
		return event->kind == CUF_KIND_FRAMEWORK;
	return kind_is_device_memory(event->kind) && event->kind != CUF_KIND_CONTEXT &&
	       event->kind != CUF_KIND_FRAMEWORK;
}

/* A call site begins outside of the allocator's library. */
static uint32_t site_of(struct event_pass *pass, const struct build *build, uint32_t stack)
{
	return stack_site(build, pass->evidence->process, stack, &pass->keys);
}

/* Call sites start with what is live at the moment and was allocated before the kept events. */
static void seed_live(struct event_pass *pass, struct build *build, const struct events *events,
		      uint64_t until)
{
	bool exact;
	const struct liveset *live = run_live(&build->run->processes[pass->evidence->process],
					      until, &exact);
	size_t at = 0;

	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		struct cuf_event event = {
			.op = CUF_OP_ALLOC,
			.bytes = block->bytes,
			.device = block->device,
			.kind = block->kind,
			.stack = block->stack,
		};
		if (is_followed(pass, &event) && block->seq <= events->complete_since)
			site_traces_seed(&pass->sites, site_of(pass, build, block->stack),
					 block->bytes);
	}
}

/* And with blocks that a kept event frees and no kept event allocated. */
static void seed_freed(struct event_pass *pass, struct build *build, const struct events *events,
		       uint64_t until)
{
	for (size_t i = 0; i < events->old.count; i++) {
		struct cuf_event event = events_get(events, events->old.items[i]);

		if (event.seq > until)
			break;
		if (is_followed(pass, &event))
			site_traces_seed(&pass->sites, site_of(pass, build, event.alloc_stack),
					 event.bytes);
	}
}

/* A framework's report of the failure has the stack of who asked; the driver's call may not. */
static uint32_t failing_stack(const struct build *build, const struct evidence *evidence)
{
	const struct events *events = build->run->processes[evidence->process].events->framework;
	const struct fact_incident *incident = evidence->incident;
	uint64_t last = incident->seq, before = incident->seq ? incident->seq - 1 : 0;

	if (incident->settled_seq > last)
		last = incident->settled_seq;
	for (size_t at = events_after(events, before); at < events->count; at++) {
		struct cuf_event event = events_get(events, at);
		if (event.seq > last)
			break;
		if (event.op == CUF_OP_FAIL && event.stack)
			return event.stack;
	}
	return incident->stack.id;
}

static bool has_framework_blocks(const struct events *events)
{
	for (size_t i = 0; i < events->framework->count; i++)
		if (events_get(events->framework, i).kind == CUF_KIND_FRAMEWORK)
			return true;
	return false;
}

/* The seq of the event that ends the first three quarters of those up to `until`. */
static uint64_t three_quarters(const struct events *events, uint64_t until)
{
	size_t count = until == CUF_UNKNOWN ? events->count : events_after(events, until);

	return count ? events_get(events, count * 3 / 4).seq : 0;
}

/* Both rings in order, up to the failure. */
static void follow_events(struct event_pass *pass, struct build *build)
{
	const struct evidence *evidence = pass->evidence;
	const struct run_process *recorded = &build->run->processes[evidence->process];
	const struct events *events = recorded->events;
	const struct events *followed = pass->framework ? events->framework : events;
	uint64_t until = evidence->incident ? evidence->incident->seq : CUF_UNKNOWN;
	struct event_merge merge;
	struct cuf_event event;

	if (followed->complete_since) {
		seed_live(pass, build, followed, until);
		seed_freed(pass, build, followed, until);
	}
	pass->sites.peaks_until = three_quarters(followed, until);
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &event) && event.seq <= until && event.op != CUF_OP_EXIT) {
		if (!is_followed(pass, &event))
			continue;
		pass->last_ns = event.time_ns;
		event.stack = site_of(pass, build, event.stack);
		event.alloc_stack = site_of(pass, build, event.alloc_stack);
		follow_event(pass, build, &event);
	}
	reader_drop(recorded->reader, CUF_SEC_RING);
	reader_drop(recorded->reader, CUF_SEC_FRAMEWORK_RING);
}

void event_pass_run(struct event_pass *pass, struct build *build, const struct evidence *evidence)
{
	const struct evidence_signal *family = &evidence->signals[SIGNAL_family];
	uint64_t total = evidence->metrics[METRIC_total];

	memset(pass, 0, sizeof *pass);
	pass->evidence = evidence;
	pass->ordinal = ordinal_in(build, evidence->device, evidence->process);
	pass->framework = has_framework_blocks(build->run->processes[evidence->process].events);
	pass->freed_sizes.stride = 1;
	if (total != CUF_UNKNOWN)
		pass->small_bytes = total / SMALL_PART;
	if (family->seq_count && evidence->metrics[METRIC_family] != CUF_UNKNOWN)
		pass->family_first = family->seqs[0];
	site_traces_init(&pass->sites);
	pass->sites.small_bytes = pass->small_bytes;
	site_traces_init(&pass->same_size);
	if (evidence->incident)
		pass->failing = site_of(pass, build, failing_stack(build, evidence));
	follow_events(pass, build);
}

void event_pass_fini(struct event_pass *pass)
{
	site_traces_fini(&pass->sites);
	site_traces_fini(&pass->same_size);
	stack_sites_fini(&pass->keys);
}
