/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the events of one device; see event_pass.h. */
#include "analysis/explain/evidence/event_pass.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/explain/evidence/parts.h"
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
	if (event->bytes != pass->of.request)
		pass->same_size.frees += event->op == CUF_OP_FREE;
	else if (event->op == CUF_OP_FREE)
		site_traces_free(&pass->same_size, &one);
	else
		site_traces_alloc(&pass->same_size, &one);
}

/* ---- the family of equal blocks ---- */

enum { LARGE_MOST = 1 << 16 };

/* The place of a key in an array of rows, made if need be; 0: there are too many. */
static uint32_t large_place(struct large_blocks *large, struct hash_index *index, uint64_t key,
			    size_t *count)
{
	uint32_t *place = hash_index_place(index, key);

	if (!*place && *count == LARGE_MOST)
		large->are_many = true;
	else if (!*place)
		*place = (uint32_t)++*count;
	return *place;
}

static struct large_size *large_size(struct large_blocks *large, uint64_t bytes)
{
	size_t before = large->size_count;
	uint32_t place;

	xalloc_grow(&large->sizes, before, &large->size_room, sizeof *large->sizes);
	place = large_place(large, &large->by_bytes, bytes, &large->size_count);
	if (!place)
		return NULL;
	if (large->size_count > before)
		large->sizes[place - 1] = (struct large_size){ 0 };
	return &large->sizes[place - 1];
}

static void note_large(struct event_pass *pass, const struct cuf_event *event)
{
	struct large_blocks *large = &pass->large;
	struct large_size *size = large_size(large, event->bytes);
	uint32_t place;

	xalloc_grow(&large->blocks, large->block_count, &large->block_room, sizeof *large->blocks);
	place = large_place(large, &large->by_address,
			    cuf_key(cuf_kind_space(event->kind), event->addr),
			    &large->block_count);
	if (!size || !place)
		return;
	large->blocks[place - 1] = (struct large_block){
		.seq = event->seq,
		.bytes = event->bytes,
		.query_seq = pass->query_seq,
		.since_query = pass->since_query,
		.allocated = large->allocated,
		.same = size->allocs++,
	};
}

static void follow_large(struct event_pass *pass, const struct cuf_event *event)
{
	struct large_blocks *large = &pass->large;
	bool is_alloc = event->op == CUF_OP_ALLOC;
	struct large_size *size;

	if (event->bytes >= large->least_bytes && !large->are_many) {
		if (is_alloc)
			note_large(pass, event);
		else if ((size = large_size(large, event->bytes)))
			size->frees++;
	}
	if (is_alloc)
		large->allocated += event->bytes;
}

/* Whether a block is older than the events that are followed. */
static bool is_before(const struct event_pass *pass, uint64_t seq)
{
	const struct events *events = pass->facts->run->processes[pass->of.process].events;

	return seq < (pass->framework ? events->framework : events)->first_seq;
}

/* How the family was allocated: after which query, and what came between. False: its first block is
 * none of the large ones. */
static bool take_family(struct event_pass *pass, uint64_t unit, uint64_t first_seq)
{
	const struct large_blocks *large = &pass->large;
	const struct large_block *first = NULL, before = { 0 };
	struct large_size *size;

	for (size_t i = 0; i < large->block_count && !first; i++)
		if (large->blocks[i].seq == first_seq && large->blocks[i].bytes == unit)
			first = &large->blocks[i];
	if (!first && unit >= large->least_bytes && is_before(pass, first_seq))
		first = &before;
	size = first ? large_size(&pass->large, unit) : NULL;
	if (!size)
		return false;
	pass->family_first = first_seq;
	if (first->query_seq && first->since_query < unit / 4)
		pass->family_query_seq = first->query_seq;
	pass->unit_allocs = size->allocs;
	pass->unit_frees = size->frees;
	pass->burst_all = large->allocated - first->allocated;
	pass->burst_family = (size->allocs - first->same) * unit;
	return true;
}

/* The same in a sweep that knows the family before. */
static void follow_family(struct event_pass *pass, const struct cuf_event *event)
{
	uint64_t unit = pass->unit;

	pass->unit_allocs += event->bytes == unit;
	if (!pass->family_first || event->seq < pass->family_first)
		return;
	if (event->seq == pass->family_first && unit != CUF_UNKNOWN && pass->since_query < unit / 4)
		pass->family_query_seq = pass->query_seq;
	pass->burst_all += event->bytes;
	if (event->bytes == unit)
		pass->burst_family += event->bytes;
}

/* ---- events ---- */

/* unit_sizes is a ring of the last sizes of the failing call site in the failing thread. */
static void follow_alloc(struct event_pass *pass, const struct cuf_event *event)
{
	const struct fact_incident *incident = pass->of.incident;

	follow_same_size(pass, event);
	if (pass->is_late)
		follow_family(pass, event);
	else
		follow_large(pass, event);
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

	if (pass->is_late)
		pass->unit_frees += event->bytes == pass->unit;
	else
		follow_large(pass, event);
	follow_same_size(pass, event);
	pass->freed_all += event->bytes;
	if (!small)
		pass->freed += event->bytes;
	if (!small && !(event->flags & CUF_EVENT_BULK))
		keep_freed_size(&pass->freed_sizes, event->bytes);
	site_traces_free(&pass->sites, event);
}

/* A query of free memory matters because engines size their KV cache by it. */
static void follow_event(struct event_pass *pass, const struct cuf_event *event)
{
	const char *hook;

	switch (event->op) {
	case CUF_OP_ALLOC: follow_alloc(pass, event); break;
	case CUF_OP_FREE: follow_free(pass, event); break;
	case CUF_OP_FREE_MEMORY:
		hook = fact_hook_name(&pass->facts->processes[pass->of.process], event->hook);
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
static uint32_t site_of(struct event_pass *pass, uint32_t stack)
{
	return stack_site(pass->facts, pass->of.process, stack, &pass->keys);
}

/* Call sites start with what is live at the moment and was allocated before the kept events. */
static void seed_live(struct event_pass *pass, const struct events *events)
{
	struct liveset live;
	size_t at = 0;

	run_live_apart(&pass->facts->run->processes[pass->of.process], pass->until, &live);
	for (const struct cuf_block *block; (block = liveset_next(&live, &at));) {
		struct cuf_event event = {
			.op = CUF_OP_ALLOC,
			.bytes = block->bytes,
			.device = block->device,
			.kind = block->kind,
			.stack = block->stack,
		};
		if (is_followed(pass, &event) && block->seq <= events->complete_since)
			site_traces_seed(&pass->sites, site_of(pass, block->stack), block->bytes);
	}
	liveset_fini(&live);
}

/* And with blocks that a kept event frees and no kept event allocated. */
static void seed_freed(struct event_pass *pass, const struct events *events)
{
	for (size_t i = 0; i < events->old.count; i++) {
		struct cuf_event event = events_get(events, events->old.items[i]);

		if (event.seq > pass->until)
			break;
		if (is_followed(pass, &event))
			site_traces_seed(&pass->sites, site_of(pass, event.alloc_stack),
					 event.bytes);
	}
}

/* A framework's report of the failure has the stack of who asked; the driver's call may not. */
static uint32_t failing_stack(const struct events *events, const struct fact_incident *incident)
{
	uint64_t last = incident->seq, before = incident->seq ? incident->seq - 1 : 0;

	if (incident->settled_seq > last)
		last = incident->settled_seq;
	for (size_t at = events_after(events, before); at < events->count; at++) {
		struct cuf_event event = events_near(events, at);
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

	return count ? events_seq(events, count * 3 / 4) : 0;
}

/*
 * While one thread is refused, others may still be served: the driver had given them their blocks,
 * which are recorded after the failure. What is larger than the free memory that the driver reports
 * was served before it reported. Until something is freed, all of it was there together. Returns
 * false then.
 */
static bool follow_late(struct event_pass *pass, const struct cuf_event *event)
{
	const struct fact_incident *incident = pass->of.incident;

	if (!pass->failing || pass->framework)
		return false;
	if (!is_followed(pass, event))
		return true;
	if (event->op == CUF_OP_ALLOC && event->tid != incident->tid &&
	    is_known(incident->free_bytes) && event->bytes > incident->free_bytes &&
	    site_of(pass, event->stack) == pass->failing)
		pass->late_bytes += event->bytes;
	return event->op != CUF_OP_FREE;
}

/* Both rings in order, up to the failure. */
static bool follow_row(void *state, const struct sweep_row *row)
{
	struct event_pass *pass = state;

	for (size_t i = 0; i < row->count; i++) {
		struct cuf_event event = row->events[i];
		bool is_late = event.seq > pass->until;

		if (event.op == CUF_OP_EXIT || (is_late && !follow_late(pass, &event)))
			return false;
		if (is_late || !is_followed(pass, &event))
			continue;
		pass->last_ns = event.time_ns;
		event.stack = site_of(pass, event.stack);
		event.alloc_stack = site_of(pass, event.alloc_stack);
		follow_event(pass, &event);
	}
	return true;
}

static struct event_pass *pass_new(const struct facts *facts, const struct event_pass_of *of)
{
	const struct events *events = facts->run->processes[of->process].events;
	struct event_pass *pass = xalloc_zeroed(1, sizeof *pass);

	pass->facts = facts;
	pass->of = *of;
	pass->until = of->incident ? of->incident->seq : CUF_UNKNOWN;
	pass->ordinal = fact_ordinal_of(&facts->processes[of->process], of->device);
	pass->framework = has_framework_blocks(events);
	pass->freed_sizes.stride = 1;
	if (is_known(of->total)) {
		pass->small_bytes = of->total / SMALL_PART;
		pass->large.least_bytes = of->total / FAMILY_PART;
	}
	hash_index_init(&pass->large.by_address, 0);
	hash_index_init(&pass->large.by_bytes, 0);
	site_traces_init(&pass->sites);
	pass->sites.small_bytes = pass->small_bytes;
	site_traces_init(&pass->same_size);
	if (of->incident)
		pass->failing = site_of(pass, failing_stack(events->framework, of->incident));
	return pass;
}

static struct sweep_consumer pass_begin(struct event_pass *pass)
{
	const struct events *events = pass->facts->run->processes[pass->of.process].events,
			    *followed = pass->framework ? events->framework : events;

	/* what older events left, which were overwritten */
	if (followed->complete_since) {
		seed_live(pass, followed);
		seed_freed(pass, followed);
	}
	pass->sites.peaks_until = three_quarters(followed, pass->until);
	return (struct sweep_consumer){ follow_row, pass };
}

bool event_pass_is_for(const struct facts *facts, const struct fact_incident *incident,
		       size_t *judged)
{
	if (incident_is_survived(incident))
		return false;
	return facts->processes[incident->process].fatal_incident == incident->id ||
	       (*judged)++ < JUDGED_MAX;
}

static unsigned ordinal_of(const struct facts *facts, const struct event_pass_of *of)
{
	if (of->device == FACT_NONE)
		return CUF_DEVICE_NONE;
	return fact_ordinal_of(&facts->processes[of->process], of->device);
}

/* The total that evidence will have, most likely. */
static uint64_t total_of(const struct facts *facts, const struct event_pass_of *of)
{
	const struct cuf_device *device =
		reader_at(facts->run->processes[of->process].reader, CUF_SEC_DEVICES,
			  ordinal_of(facts, of));

	if (of->incident && is_known(of->incident->total_bytes))
		return of->incident->total_bytes;
	return device ? device->total_bytes : CUF_UNKNOWN;
}

static void listen(const struct facts *facts, struct event_pass_of *of, struct event_pass **pass,
		   struct sweep_consumer *consumer)
{
	of->total = total_of(facts, of);
	*pass = pass_new(facts, of);
	*consumer = pass_begin(*pass);
}

void event_pass_listen(const struct facts *facts, uint32_t process, uint32_t leaking,
		       struct event_pass *heard[EVENT_PASSES],
		       struct sweep_consumer consumers[EVENT_PASSES])
{
	struct event_pass_of of = { .process = process, .device = leaking, .request = CUF_UNKNOWN };
	size_t judged = 0, count = 0;

	for (size_t i = facts->incident_count; i-- && count < EVENT_PASSES;) {
		const struct fact_incident *incident = &facts->incidents[i];
		struct event_pass_of its = { .process = process, .device = incident->device,
					     .incident = incident };

		if (!event_pass_is_for(facts, incident, &judged) || incident->process != process ||
		    ordinal_of(facts, &its) == CUF_DEVICE_NONE)
			continue;
		its.request = evidence_request(facts, incident);
		listen(facts, &its, &heard[count], &consumers[count]);
		count++;
	}
	if (!count && ordinal_of(facts, &of) != CUF_DEVICE_NONE)
		listen(facts, &of, &heard[0], &consumers[0]);
}

/* Whether a pass of the second sweep was about just this, and tells of the family. */
static bool fits(struct event_pass *pass, const struct event_pass_of *of, uint64_t unit,
		 uint64_t first_seq)
{
	if (pass->of.incident != of->incident || pass->of.device != of->device ||
	    pass->of.request != of->request || pass->of.total != of->total)
		return false;
	return !first_seq || (!pass->large.are_many && take_family(pass, unit, first_seq));
}

struct event_pass *event_pass_for(const struct evidence *evidence, struct event_pass **heard)
{
	const struct evidence_signal *family = &evidence->signals[SIGNAL_family];
	const struct event_pass_of of = { evidence->process, evidence->device, evidence->incident,
					  evidence->metrics[METRIC_request],
					  evidence->metrics[METRIC_total] };
	struct event_pass *pass;
	uint64_t unit = evidence->metrics[METRIC_unit], first_seq = 0;
	struct sweep_consumer consumer;

	if (family->seq_count && evidence->metrics[METRIC_family] != CUF_UNKNOWN)
		first_seq = family->seqs[0];
	for (size_t i = 0; heard && i < EVENT_PASSES; i++) {
		pass = heard[i];
		if (!pass || pass->of.incident != of.incident)
			continue;
		heard[i] = NULL;
		if (fits(pass, &of, unit, first_seq))
			return pass;
		event_pass_fini(pass);
	}
	pass = pass_new(evidence->facts, &of);
	pass->is_late = true;
	pass->unit = unit;
	pass->family_first = first_seq;
	consumer = pass_begin(pass);
	sweep_events(evidence->facts->run->processes[of.process].events, &consumer, 1);
	return pass;
}

void event_pass_fini(struct event_pass *pass)
{
	if (!pass)
		return;
	site_traces_fini(&pass->sites);
	site_traces_fini(&pass->same_size);
	stack_sites_fini(&pass->keys);
	hash_index_fini(&pass->large.by_address);
	hash_index_fini(&pass->large.by_bytes);
	free(pass->large.blocks);
	free(pass->large.sizes);
	free(pass);
}
