/* SPDX-License-Identifier: Apache-2.0 */
/* How it came about: one pass over the device's events up to the moment, each call site followed. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/evidence_stacks.h"
#include "analysis/replay/replay.h"
#include "analysis/explain/site_trace.h"

/* Sizes of blocks that came and went, thinned evenly when there are many. */
enum { SERVED_MAX = 4096, SERVED_LEAST = 8, HISTORY_MAX = 64, PIECES_LEAST = 16 };
#define SMALL_SHARE 16384u
struct served {
	uint64_t sizes[SERVED_MAX];
	size_t count;
	uint64_t seen, stride, most;
};

struct pass {
	struct evidence *e;
	struct site_traces sites;
	struct served served;
	uint64_t small_bytes; /* smaller blocks come and go in any program and say nothing */
	uint64_t allocated, freed; /* bytes of larger blocks */
	uint64_t freed_all; /* of all */
	uint64_t family_first, family_last; /* seqs of the family; 0 none */
	uint64_t burst_all, burst_family; /* bytes allocated between them */
	uint64_t query_seq,
		since_query; /* the program's last look at free memory, and bytes allocated since */
	uint64_t family_query_seq; /* the look directly before the family */
	uint64_t capture_seq, last_seq;
	uint64_t unit_allocs, unit_frees; /* blocks of the family's size */
	struct site_traces
		same_size; /* blocks as large as the failed request, whoever asked for them: one site */
	struct stack_sites keys;
	uint32_t failing; /* site of the failed request; 0 none */
	unsigned capturing;
	bool framework; /* there are blocks of a framework */
	uint64_t history[HISTORY_MAX];
	size_t history_count; /* sizes that the failing site got in that thread, the latest ones */
};

static void keep_served(struct served *served, uint64_t bytes)
{
	served->most = bytes > served->most ? bytes : served->most;
	if (served->seen++ % (served->stride ? served->stride : 1))
		return;
	if (served->count == SERVED_MAX) {
		for (size_t i = 0; i < SERVED_MAX / 2; i++)
			served->sizes[i] = served->sizes[2 * i];
		served->count = SERVED_MAX / 2;
		served->stride = served->stride ? served->stride * 2 : 2;
	}
	served->sizes[served->count++] = bytes;
}

/* Calls from several places serve one kind of request: what they have in common is its size. */
static void take_same_size(struct pass *pass, const struct cuf_event *event)
{
	struct cuf_event one = *event;
	one.stack = one.alloc_stack = 1;
	if (event->bytes != pass->e->figures[FIG_request])
		pass->same_size.frees += event->op == CUF_OP_FREE;
	else if (event->op == CUF_OP_FREE)
		site_traces_free(&pass->same_size, &one);
	else
		site_traces_alloc(&pass->same_size, &one);
}

static void take_alloc(struct pass *pass, const struct cuf_event *event)
{
	uint64_t unit = pass->e->figures[FIG_unit];
	pass->unit_allocs += event->bytes == unit;
	take_same_size(pass, event);
	if (event->bytes >= pass->small_bytes)
		pass->allocated += event->bytes;
	if (pass->family_first && event->seq == pass->family_first)
		pass->family_query_seq = unit != CUF_UNKNOWN && pass->since_query < unit / 4
						 ? pass->query_seq
						 : 0;
	if (pass->family_first && event->seq >= pass->family_first) {
		pass->burst_all += event->bytes;
		pass->burst_family += event->bytes == unit ? event->bytes : 0;
	}
	pass->since_query += event->bytes;
	pass->last_seq = event->seq;
	if (pass->failing && event->stack == pass->failing && event->tid == pass->e->incident->tid)
		pass->history[pass->history_count++ % HISTORY_MAX] = event->bytes;
	site_traces_alloc(&pass->sites, event);
}

static void take_event(struct pass *pass, struct build *build, const struct cuf_event *event)
{
	const char *hook;
	switch (event->op) {
	case CUF_OP_ALLOC: take_alloc(pass, event); break;
	case CUF_OP_FREE:
		pass->unit_frees += event->bytes == pass->e->figures[FIG_unit];
		take_same_size(pass, event);
		pass->freed_all += event->bytes;
		if (event->bytes >= pass->small_bytes)
			pass->freed += event->bytes;
		if (!(event->flags & CUF_EVENT_BULK) && event->bytes >= pass->small_bytes)
			keep_served(&pass->served, event->bytes);
		site_traces_free(&pass->sites, event);
		break;
	case CUF_OP_FREE_MEMORY:
		hook = hook_name(build, pass->e->process, event->hook);
		if (hook && !strncmp(hook, "cuMemGetInfo", 12)) {
			pass->query_seq = event->seq;
			pass->since_query = 0;
		}
		break;
	case CUF_OP_CAPTURE:
		pass->capturing = event->extra & 1;
		pass->capture_seq = event->seq;
		break;
	default: break;
	}
}

/* Does this event count? Framework blocks lie inside blocks of the driver: where there are any, they alone are followed. */
static bool counts(const struct pass *pass, const struct cuf_event *event, unsigned ordinal)
{
	bool block = event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE;
	if (event->op == CUF_OP_CAPTURE)
		return true;
	if (event->device != ordinal || event->bytes >= (uint64_t)1 << 57)
		return false;
	return !block || (pass->framework ? event->kind == CUF_KIND_FRAMEWORK
					  : kind_is_device_memory(event->kind) &&
						    event->kind != CUF_KIND_CONTEXT &&
						    event->kind != CUF_KIND_FRAMEWORK);
}

/* What each site held before the first event that is still there: what is live at the moment, less what the events added. */
static void seed(struct build *build, struct pass *pass, const struct events *events,
		 unsigned ordinal, uint64_t until)
{
	const struct liveset *live;
	size_t at = 0;
	bool exact;
	if (!events->complete_since)
		return;
	live = run_live(&build->run->processes[pass->e->process], until, &exact);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		struct cuf_event event = { .op = CUF_OP_ALLOC,
					   .bytes = block->bytes,
					   .device = block->device,
					   .kind = block->kind,
					   .stack = block->stack };
		if (counts(pass, &event, ordinal) && block->seq <= events->complete_since)
			site_traces_seed(&pass->sites,
					 stack_site(build, pass->e->process, block->stack,
						    &pass->keys),
					 block->bytes);
	}
	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		if (event.seq > until)
			break;
		/* it carries the block: was that there before? its allocation is then not among the events */
		if (event.op == CUF_OP_FREE && counts(pass, &event, ordinal) &&
		    event.extra > (event.time_ns - events_get(events, 0).time_ns) / 1000000)
			site_traces_seed(&pass->sites,
					 stack_site(build, pass->e->process, event.alloc_stack,
						    &pass->keys),
					 event.bytes);
	}
}

static void follow(struct build *build, struct pass *pass)
{
	const struct events *events = build->run->processes[pass->e->process].events;
	unsigned ordinal = ordinal_in(build, pass->e->device, pass->e->process);
	uint64_t until = pass->e->incident ? pass->e->incident->seq : CUF_UNKNOWN;
	struct event_merge merge;
	struct cuf_event event;
	for (size_t i = 0; i < events->framework->count && !pass->framework; i++)
		pass->framework = events_get(events->framework, i).kind == CUF_KIND_FRAMEWORK;
	seed(build, pass, pass->framework ? events->framework : events, ordinal, until);
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &event) && event.seq <= until && event.op != CUF_OP_EXIT)
		if (counts(pass, &event, ordinal)) {
			event.stack = stack_site(build, pass->e->process, event.stack, &pass->keys);
			event.alloc_stack = stack_site(build, pass->e->process, event.alloc_stack,
						       &pass->keys);
			take_event(pass, build, &event);
		}
	reader_drop(build->run->processes[pass->e->process].reader, CUF_SEC_RING);
	reader_drop(build->run->processes[pass->e->process].reader, CUF_SEC_FRAMEWORK_RING);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void set_served(struct pass *pass)
{
	struct evidence *evidence = pass->e;
	uint64_t *figures = evidence->figures;
	if (pass->allocated) {
		double kept = 1 - (double)pass->freed / (double)pass->allocated;
		evidence_set(evidence, TERM_nothing_freed, kept < 0 ? 0 : kept);
		evidence_show(evidence, TERM_nothing_freed, pass->last_seq);
		/* where nothing was given back, what lies free was never used: rounding, not fragmentation */
		if (evidence->figures[FIG_slack] != CUF_UNKNOWN &&
		    pass->freed_all < evidence->figures[FIG_slack] / 4 &&
		    evidence->terms[TERM_packed].value >= 1) {
			evidence_set(evidence, TERM_packed, 0.99);
			evidence_set(evidence, TERM_slack, 0);
		}
	}
	if (pass->served.seen < SERVED_LEAST)
		return;
	qsort(pass->served.sizes, pass->served.count, sizeof *pass->served.sizes, by_value);
	figures[FIG_served] = pass->served.sizes[pass->served.count / 2];
	figures[FIG_served_most] = pass->served.most;
	if (figures[FIG_request] != CUF_UNKNOWN && pass->served.most)
		evidence_set(evidence, TERM_over_served,
			     figures[FIG_request] >= 2 * pass->served.most
				     ? (double)figures[FIG_request] /
					       (double)(figures[FIG_served] ? figures[FIG_served]
									    : 1)
				     : 0);
	evidence_show(evidence, TERM_over_served, evidence->incident ? evidence->incident->seq : 0);
}

/* The cache was asked for in one piece: blocks that are there already are something else. */
static bool is_one_buffer(const struct evidence *evidence)
{
	return evidence->terms[TERM_kv_prealloc].value > 0 &&
	       !(evidence->terms[TERM_family_next].value > 0);
}

static void set_family(struct pass *pass)
{
	struct evidence *evidence = pass->e;
	if (!pass->family_first)
		return;
	if (pass->unit_allocs)
		evidence_set(evidence, TERM_family_churn,
			     (double)pass->unit_frees / (double)pass->unit_allocs);
	if (pass->burst_all)
		evidence_set(evidence, TERM_burst,
			     (double)pass->burst_family / (double)pass->burst_all);
	evidence_set(evidence, TERM_after_query, pass->family_query_seq != 0);
	/* the request is one more of a run of equal blocks: not one of the sizes that repeat layer by layer */
	if (evidence->terms[TERM_family_next].value > 0 && evidence->terms[TERM_burst].value >= 0.8)
		evidence_set(evidence, TERM_layered, 0);
	if (!pass->family_query_seq || is_one_buffer(evidence))
		return;
	evidence->terms[TERM_after_query].seq_count = 0;
	evidence_show(evidence, TERM_after_query, pass->family_query_seq);
	evidence_show(evidence, TERM_after_query, pass->family_first);
	/* a family laid out right after a look at free memory is a cache, with or without a name; blocks that alternate with others are layers */
	if (!(evidence->terms[TERM_burst].value >= 0.5) &&
	    !(evidence->terms[TERM_kv_named].value > 0))
		return;
	if (evidence->terms[TERM_family_next].value > 0) {
		evidence_set(evidence, TERM_kv_prealloc,
			     evidence->terms[TERM_kv_named].value > 0 ? 1 : 0.75);
		if (evidence->figures[FIG_kv] == CUF_UNKNOWN)
			evidence->figures[FIG_kv] = evidence->figures[FIG_family_bytes];
	} else {
		if (evidence->figures[FIG_kv] == CUF_UNKNOWN)
			evidence->figures[FIG_kv] = evidence->figures[FIG_family_bytes];
		evidence_set(evidence, TERM_kv_done,
			     evidence->figures[FIG_shortfall] != CUF_UNKNOWN &&
				     evidence->figures[FIG_kv] > evidence->figures[FIG_shortfall]);
	}
}

static void set_ladder(struct evidence *evidence, const struct site_trace *trace)
{
	if (trace->ladder_count < 4)
		return;
	evidence->figures[FIG_ladder] = trace->ladder_count;
	evidence->figures[FIG_kept] = trace->ladder_bytes;
	evidence_set(evidence, TERM_ladder,
		     trace->frees * 4 <= trace->allocs ? (double)trace->ladder_count : 0);
}

static void set_series(struct pass *pass, const struct site_trace *trace)
{
	struct evidence *evidence = pass->e;
	uint64_t *figures = evidence->figures, step;
	uint64_t hits = site_trace_step(trace, &step);
	if (!site_trace_is_series(trace))
		return;
	evidence_set(evidence, TERM_one_request, !trace->resets);
	evidence_set(evidence, TERM_arithmetic,
		     hits >= 8 ? (double)hits / (double)trace->rises : 0);
	evidence_set(evidence, TERM_geometric, site_trace_is_geometric(trace));
	figures[FIG_resets] = trace->resets;
	evidence_set(evidence, TERM_sawtooth, (double)trace->resets);
	figures[FIG_last] = trace->last_bytes;
	if (hits >= 8) {
		figures[FIG_step] = step;
		figures[FIG_terms] = hits;
		figures[FIG_steps_fit] = figures[FIG_request] != CUF_UNKNOWN
						 ? (figures[FIG_request] - 1) / step
						 : trace->last_bytes / step;
		evidence_set(evidence, TERM_next_term,
			     figures[FIG_request] != CUF_UNKNOWN &&
				     figures[FIG_request] > trace->last_bytes &&
				     figures[FIG_request] <= trace->last_bytes + 2 * step);
	}
	set_ladder(evidence, trace);
	if (site_trace_is_geometric(trace))
		figures[FIG_series_request] = figures[FIG_request];
	evidence_set(evidence, TERM_longest,
		     figures[FIG_request] != CUF_UNKNOWN ? figures[FIG_request] > trace->most_bytes
							 : trace->last_bytes >= trace->most_bytes);
	static const enum term shown[] = { TERM_arithmetic, TERM_geometric,  TERM_sawtooth,
					   TERM_next_term,  TERM_ladder,     TERM_longest,
					   TERM_kv_grown,   TERM_one_request };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		evidence_show(evidence, shown[i], trace->first_seq);
		evidence_show(evidence, shown[i], trace->last_seq);
	}
}

/* One unit of work is as many blocks as its sizes repeat after; some of the last one may be missing. before: all blocks as
 * large as the failed request, when units were asked for from elsewhere before; NULL: the site itself tells. */
static void set_unit(struct pass *pass, const struct site_trace *trace,
		     const struct site_trace *before)
{
	uint64_t *figures = pass->e->figures, unit = 0, same = 0;
	size_t period = 1,
	       count = pass->history_count < HISTORY_MAX ? pass->history_count : HISTORY_MAX;
	for (; period < count / 2; period++) {
		size_t i = period;
		while (i < count &&
		       pass->history[(pass->history_count - 1 - i) % HISTORY_MAX] ==
			       pass->history[(pass->history_count - 1 - i + period) % HISTORY_MAX])
			i++;
		if (i == count)
			break;
	}
	for (size_t i = 0; i < period && i < count; i++) {
		uint64_t bytes = pass->history[(pass->history_count - 1 - i) % HISTORY_MAX];
		same += bytes == figures[FIG_request];
		unit += bytes > CUF_PAGE_BYTES / 2
				? (bytes + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES
				: bytes;
	}
	if (!unit || figures[FIG_free] == CUF_UNKNOWN)
		return;
	figures[FIG_together] = unit;
	figures[FIG_together_fit] = (figures[FIG_free] + trace->live_bytes) / unit;
	figures[FIG_siblings] = trace->live / period +
				1; /* that of the failed request is one of them */
	figures[FIG_siblings_before] = before && same ? (before->peak_before + same - 1) / same
						      : (trace->peak_before + period - 1) / period;
	figures[FIG_fits] = figures[FIG_base] =
		CUF_UNKNOWN; /* of a family laid out in advance: another cause */
}

static double short_lived(const struct site_trace *trace)
{
	return trace->allocs ? (double)trace->frees / (double)trace->allocs : 0;
}

/* Many of them at once, as never before, and they go again: requests side by side, of many threads or of an event loop. */
static bool is_together(const struct evidence *evidence, const struct site_trace *trace)
{
	bool busy = trace && trace->live >= 4 && short_lived(trace) >= 0.4 &&
		    trace->live >= trace->peak_before;
	return busy && (site_trace_threads(trace) >= 3 ||
			(trace->resets >= 2 && site_trace_interleaved(trace) < 0.3 &&
			 !(evidence->terms[TERM_kv_named].value > 0)));
}

static void set_siblings(struct pass *pass, const struct site_trace *trace)
{
	struct evidence *evidence = pass->e;
	uint64_t *figures = evidence->figures;
	const struct site_trace *same_size = site_traces_of(&pass->same_size, 1);
	bool together;
	if (trace->allocs < 4)
		return;
	figures[FIG_siblings] = trace->live ? trace->live : CUF_UNKNOWN;
	figures[FIG_siblings_before] = trace->peak_before;
	figures[FIG_grown] = trace->live_bytes;
	figures[FIG_threads] = (uint64_t)site_trace_threads(trace);
	together = is_together(evidence, trace) || is_together(evidence, same_size);
	evidence_set(evidence, TERM_concurrent, together ? (double)trace->live : 0);
	if (together)
		set_unit(pass, trace, is_together(evidence, trace) ? NULL : same_size);
	evidence_show(evidence, TERM_concurrent, trace->first_seq);
	evidence_show(evidence, TERM_concurrent, trace->last_seq);
	if (trace->live >= 4 && figures[FIG_request] != CUF_UNKNOWN &&
	    figures[FIG_free] != CUF_UNKNOWN)
		evidence_set(evidence, TERM_one_fits,
			     figures[FIG_free] + trace->live_bytes >= figures[FIG_request]);
	evidence_show(evidence, TERM_one_fits, trace->last_seq);
	/* blocks of one cache that grows in pieces: one by one while other work goes on, many back at the end of a request */
	if (short_lived(trace) >= 0.2 && trace->live >= 4 && trace->live >= trace->peak_before &&
	    !together && trace->allocs >= PIECES_LEAST &&
	    trace->live_bytes >= trace->highest_before_reset)
		evidence_set(evidence, TERM_kv_grown, (double)trace->live);
	evidence_set(evidence, TERM_one_request, !trace->resets);
	if (trace->resets) {
		figures[FIG_resets] = trace->resets;
		evidence_set(evidence, TERM_sawtooth, (double)trace->resets);
		evidence_show(evidence, TERM_sawtooth, trace->first_seq);
		evidence_show(evidence, TERM_sawtooth, trace->last_seq);
	}
}

/* Where a tenth of what a site holds would have been enough, it was that site which filled the device, whoever asked last. */
static bool fills_device(const struct evidence *evidence, uint64_t bytes)
{
	return evidence->figures[FIG_shortfall] != CUF_UNKNOWN &&
	       evidence->figures[FIG_shortfall] <= bytes / 10;
}

/* A cache whose blocks come and go was not laid out in advance. At its highest it leaves nothing for somebody else's request. */
static void look_at_cache(struct build *build, struct pass *pass, const struct site_trace *failing)
{
	struct evidence *evidence = pass->e;
	const struct site_trace *trace =
		evidence->kv_stack
			? site_traces_of(&pass->sites, stack_site(build, evidence->process,
								  evidence->kv_stack, &pass->keys))
			: NULL;
	uint64_t highest;
	if (!trace || trace->frees * 10 <= trace->allocs)
		return;
	evidence_set(evidence, TERM_kv_done, 0);
	if (evidence->terms[TERM_family_next].value > 0)
		evidence_set(evidence, TERM_kv_prealloc, 0);
	highest = trace->high_bytes > trace->highest_before_reset ? trace->high_bytes
								  : trace->highest_before_reset;
	if (trace == failing || short_lived(trace) < 0.2 || trace->live < 4 ||
	    trace->allocs < PIECES_LEAST || trace->live_bytes < highest - highest / 20 ||
	    !fills_device(evidence, trace->live_bytes) ||
	    evidence->terms[TERM_concurrent].value > 0)
		return;
	evidence->figures[FIG_siblings] = trace->live;
	evidence->figures[FIG_grown] = trace->live_bytes;
	evidence->terms[TERM_kv_grown].stack = evidence->kv_stack;
	evidence_set(evidence, TERM_kv_grown, (double)trace->live);
	evidence_show(evidence, TERM_kv_grown, trace->first_seq);
	evidence_show(evidence, TERM_kv_grown, trace->last_seq);
}

/* A pool that outgrows what it keeps, while somebody else's request is the one that fails. */
static void look_at_ladders(struct pass *pass)
{
	struct evidence *evidence = pass->e;
	for (size_t i = 0; i < pass->sites.count && !(evidence->terms[TERM_ladder].value >= 8);
	     i++) {
		const struct site_trace *trace = &pass->sites.items[i];
		if (trace->stack == pass->failing || trace->ladder_count < 8 ||
		    !site_trace_is_series(trace) || !site_trace_is_geometric(trace) ||
		    trace->frees * 4 > trace->allocs ||
		    !fills_device(evidence, trace->ladder_bytes))
			continue;
		set_ladder(evidence, trace);
		evidence_set(evidence, TERM_geometric, 1);
		evidence_show(evidence, TERM_ladder, trace->last_seq);
		evidence_show(evidence, TERM_geometric, trace->last_seq);
	}
}

/* A framework's own report of the failure is nearer to who asked than the driver's call is. */
static uint32_t failing_stack(struct build *build, const struct evidence *evidence)
{
	const struct events *events = build->run->processes[evidence->process].events->framework;
	uint64_t last = evidence->incident->settled_seq > evidence->incident->seq
				? evidence->incident->settled_seq
				: evidence->incident->seq;
	for (size_t at = events_after(events,
				      evidence->incident->seq ? evidence->incident->seq - 1 : 0);
	     at < events->count; at++) {
		struct cuf_event event = events_get(events, at);
		if (event.seq > last)
			break;
		if (event.op == CUF_OP_FAIL && event.stack)
			return event.stack;
	}
	return evidence->incident->stack.id;
}

void evidence_trace(struct build *build, struct evidence *evidence)
{
	struct pass *pass;
	const struct site_trace *failing = NULL;
	if (evidence->device == FACT_NONE ||
	    ordinal_in(build, evidence->device, evidence->process) == CUF_DEVICE_NONE)
		return;
	pass = xalloc_zeroed(1, sizeof *pass);
	pass->e = evidence;
	pass->small_bytes = evidence->figures[FIG_total] == CUF_UNKNOWN
				    ? 0
				    : evidence->figures[FIG_total] / SMALL_SHARE;
	site_traces_init(&pass->sites);
	site_traces_init(&pass->same_size);
	if (evidence->terms[TERM_family].seq_count &&
	    evidence->figures[FIG_family] != CUF_UNKNOWN) {
		pass->family_first = evidence->terms[TERM_family].seqs[0];
		pass->family_last = evidence->terms[TERM_family]
					    .seqs[evidence->terms[TERM_family].seq_count - 1];
	}
	if (evidence->incident)
		pass->failing = stack_site(build, evidence->process, failing_stack(build, evidence),
					   &pass->keys);
	follow(build, pass);
	set_served(pass);
	set_family(pass);
	if (evidence->incident) {
		failing = site_traces_of(&pass->sites, pass->failing);
		evidence_set(evidence, TERM_new_site, failing == NULL || !failing->allocs);
		evidence_show(evidence, TERM_new_site, evidence->incident->seq);
	}
	if (failing) {
		set_series(pass, failing);
		set_siblings(pass, failing);
	}
	look_at_cache(build, pass, failing);
	/* packing gives a little more; what grows to so many times of that uses it up at once */
	if (evidence->terms[TERM_kv_grown].value > 0 &&
	    evidence->figures[FIG_slack] != CUF_UNKNOWN && evidence->figures[FIG_slack])
		evidence_set(evidence, TERM_grown_over_slack,
			     (double)evidence->figures[FIG_grown] /
				     (double)evidence->figures[FIG_slack]);
	if (evidence->incident)
		look_at_ladders(pass);
	if (pass->capturing ||
	    (pass->capture_seq && evidence->figures[FIG_cycles] == CUF_UNKNOWN)) {
		evidence_set(evidence, TERM_graph_capture, 1);
		evidence_show(evidence, TERM_graph_capture, pass->capture_seq);
	}
	site_traces_fini(&pass->sites);
	site_traces_fini(&pass->same_size);
	stack_sites_fini(&pass->keys);
	free(pass);
}
