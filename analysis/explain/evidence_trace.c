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
struct served { uint64_t sizes[SERVED_MAX]; size_t count; uint64_t seen, stride, most; };

struct pass {
	struct evidence *e;
	struct site_traces sites;
	struct served served;
	uint64_t small_bytes;                 /* smaller blocks come and go in any program and say nothing */
	uint64_t allocated, freed;            /* bytes of larger blocks */
	uint64_t freed_all;                   /* of all */
	uint64_t family_first, family_last;   /* seqs of the family; 0 none */
	uint64_t burst_all, burst_family;     /* bytes allocated between them */
	uint64_t query_seq, since_query;      /* the program's last look at free memory, and bytes allocated since */
	uint64_t family_query_seq;            /* the look directly before the family */
	uint64_t capture_seq, last_seq;
	uint64_t unit_allocs, unit_frees;     /* blocks of the family's size */
	struct site_traces same_size;         /* blocks as large as the failed request, whoever asked for them: one site */
	struct stack_sites keys;
	uint32_t failing;                     /* site of the failed request; 0 none */
	unsigned capturing;
	bool framework;                       /* there are blocks of a framework */
	uint64_t history[HISTORY_MAX]; size_t history_count; /* sizes that the failing site got in that thread, the latest ones */
};

static void keep_served(struct served *s, uint64_t bytes)
{
	s->most = bytes > s->most ? bytes : s->most;
	if (s->seen++ % (s->stride ? s->stride : 1))
		return;
	if (s->count == SERVED_MAX) {
		for (size_t i = 0; i < SERVED_MAX / 2; i++)
			s->sizes[i] = s->sizes[2 * i];
		s->count = SERVED_MAX / 2;
		s->stride = s->stride ? s->stride * 2 : 2;
	}
	s->sizes[s->count++] = bytes;
}

/* Calls from several places serve one kind of request: what they have in common is its size. */
static void take_same_size(struct pass *p, const struct cuf_event *event)
{
	struct cuf_event one = *event;
	one.stack = one.alloc_stack = 1;
	if (event->bytes != p->e->figures[FIG_request])
		p->same_size.frees += event->op == CUF_OP_FREE;
	else if (event->op == CUF_OP_FREE)
		site_traces_free(&p->same_size, &one);
	else
		site_traces_alloc(&p->same_size, &one);
}

static void take_alloc(struct pass *p, const struct cuf_event *event)
{
	uint64_t unit = p->e->figures[FIG_unit];
	p->unit_allocs += event->bytes == unit;
	take_same_size(p, event);
	if (event->bytes >= p->small_bytes)
		p->allocated += event->bytes;
	if (p->family_first && event->seq == p->family_first)
		p->family_query_seq = unit != CUF_UNKNOWN && p->since_query < unit / 4 ? p->query_seq : 0;
	if (p->family_first && event->seq >= p->family_first) {
		p->burst_all += event->bytes;
		p->burst_family += event->bytes == unit ? event->bytes : 0;
	}
	p->since_query += event->bytes;
	p->last_seq = event->seq;
	if (p->failing && event->stack == p->failing && event->tid == p->e->incident->tid)
		p->history[p->history_count++ % HISTORY_MAX] = event->bytes;
	site_traces_alloc(&p->sites, event);
}

static void take_event(struct pass *p, struct build *b, const struct cuf_event *event)
{
	const char *hook;
	switch (event->op) {
	case CUF_OP_ALLOC:
		take_alloc(p, event);
		break;
	case CUF_OP_FREE:
		p->unit_frees += event->bytes == p->e->figures[FIG_unit];
		take_same_size(p, event);
		p->freed_all += event->bytes;
		if (event->bytes >= p->small_bytes)
			p->freed += event->bytes;
		if (!(event->flags & CUF_EVENT_BULK) && event->bytes >= p->small_bytes)
			keep_served(&p->served, event->bytes);
		site_traces_free(&p->sites, event);
		break;
	case CUF_OP_FREE_MEMORY:
		hook = hook_name(b, p->e->process, event->hook);
		if (hook && !strncmp(hook, "cuMemGetInfo", 12)) {
			p->query_seq = event->seq;
			p->since_query = 0;
		}
		break;
	case CUF_OP_CAPTURE:
		p->capturing = event->extra & 1;
		p->capture_seq = event->seq;
		break;
	default: break;
	}
}

/* Does this event count? Framework blocks lie inside blocks of the driver: where there are any, they alone are followed. */
static bool counts(const struct pass *p, const struct cuf_event *event, unsigned ordinal)
{
	bool block = event->op == CUF_OP_ALLOC || event->op == CUF_OP_FREE;
	if (event->op == CUF_OP_CAPTURE)
		return true;
	if (event->device != ordinal || event->bytes >= (uint64_t)1 << 57)
		return false;
	return !block || (p->framework ? event->kind == CUF_KIND_FRAMEWORK : kind_is_device_memory(event->kind) && event->kind != CUF_KIND_CONTEXT &&
		event->kind != CUF_KIND_FRAMEWORK);
}

/* What each site held before the first event that is still there: what is live at the moment, less what the events added. */
static void seed(struct build *b, struct pass *p, const struct events *events, unsigned ordinal, uint64_t until)
{
	const struct liveset *live;
	size_t at = 0;
	bool exact;
	if (!events->complete_since)
		return;
	live = run_live(&b->run->processes[p->e->process], until, &exact);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		struct cuf_event event = { .op = CUF_OP_ALLOC, .bytes = block->bytes, .device = block->device, .kind = block->kind, .stack = block->stack };
		if (counts(p, &event, ordinal) && block->seq <= events->complete_since)
			site_traces_seed(&p->sites, stack_site(b, p->e->process, block->stack, &p->keys), block->bytes);
	}
	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		if (event.seq > until)
			break;
		/* it carries the block: was that there before? its allocation is then not among the events */
		if (event.op == CUF_OP_FREE && counts(p, &event, ordinal) && event.extra > (event.time_ns - events_get(events, 0).time_ns) / 1000000)
			site_traces_seed(&p->sites, stack_site(b, p->e->process, event.alloc_stack, &p->keys), event.bytes);
	}
}

static void follow(struct build *b, struct pass *p)
{
	const struct events *events = b->run->processes[p->e->process].events;
	unsigned ordinal = ordinal_in(b, p->e->device, p->e->process);
	uint64_t until = p->e->incident ? p->e->incident->seq : CUF_UNKNOWN;
	struct event_merge merge;
	struct cuf_event event;
	for (size_t i = 0; i < events->framework->count && !p->framework; i++)
		p->framework = events_get(events->framework, i).kind == CUF_KIND_FRAMEWORK;
	seed(b, p, p->framework ? events->framework : events, ordinal, until);
	event_merge_begin(&merge, events, 0);
	while (event_merge_next(&merge, &event) && event.seq <= until && event.op != CUF_OP_EXIT)
		if (counts(p, &event, ordinal)) {
			event.stack = stack_site(b, p->e->process, event.stack, &p->keys);
			event.alloc_stack = stack_site(b, p->e->process, event.alloc_stack, &p->keys);
			take_event(p, b, &event);
		}
	reader_drop(b->run->processes[p->e->process].reader, CUF_SEC_RING);
	reader_drop(b->run->processes[p->e->process].reader, CUF_SEC_FRAMEWORK_RING);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

static void set_served(struct pass *p)
{
	struct evidence *e = p->e;
	uint64_t *f = e->figures;
	if (p->allocated) {
		double kept = 1 - (double)p->freed / (double)p->allocated;
		evidence_set(e, TERM_nothing_freed, kept < 0 ? 0 : kept);
		evidence_show(e, TERM_nothing_freed, p->last_seq);
		/* where nothing was given back, what lies free was never used: rounding, not fragmentation */
		if (e->figures[FIG_slack] != CUF_UNKNOWN && p->freed_all < e->figures[FIG_slack] / 4 && e->terms[TERM_packed].value >= 1) {
			evidence_set(e, TERM_packed, 0.99);
			evidence_set(e, TERM_slack, 0);
		}
	}
	if (p->served.seen < SERVED_LEAST)
		return;
	qsort(p->served.sizes, p->served.count, sizeof *p->served.sizes, by_value);
	f[FIG_served] = p->served.sizes[p->served.count / 2];
	f[FIG_served_most] = p->served.most;
	if (f[FIG_request] != CUF_UNKNOWN && p->served.most)
		evidence_set(e, TERM_over_served, f[FIG_request] >= 2 * p->served.most ? (double)f[FIG_request] / (double)(f[FIG_served] ? f[FIG_served] : 1) : 0);
	evidence_show(e, TERM_over_served, e->incident ? e->incident->seq : 0);
}

/* The cache was asked for in one piece: blocks that are there already are something else. */
static bool is_one_buffer(const struct evidence *e)
{
	return e->terms[TERM_kv_prealloc].value > 0 && !(e->terms[TERM_family_next].value > 0);
}

static void set_family(struct pass *p)
{
	struct evidence *e = p->e;
	if (!p->family_first)
		return;
	if (p->unit_allocs)
		evidence_set(e, TERM_family_churn, (double)p->unit_frees / (double)p->unit_allocs);
	if (p->burst_all)
		evidence_set(e, TERM_burst, (double)p->burst_family / (double)p->burst_all);
	evidence_set(e, TERM_after_query, p->family_query_seq != 0);
	/* the request is one more of a run of equal blocks: not one of the sizes that repeat layer by layer */
	if (e->terms[TERM_family_next].value > 0 && e->terms[TERM_burst].value >= 0.8)
		evidence_set(e, TERM_layered, 0);
	if (!p->family_query_seq || is_one_buffer(e))
		return;
	e->terms[TERM_after_query].seq_count = 0;
	evidence_show(e, TERM_after_query, p->family_query_seq);
	evidence_show(e, TERM_after_query, p->family_first);
	/* a family laid out right after a look at free memory is a cache, with or without a name; blocks that alternate with others are layers */
	if (!(e->terms[TERM_burst].value >= 0.5) && !(e->terms[TERM_kv_named].value > 0))
		return;
	if (e->terms[TERM_family_next].value > 0) {
		evidence_set(e, TERM_kv_prealloc, e->terms[TERM_kv_named].value > 0 ? 1 : 0.75);
		if (e->figures[FIG_kv] == CUF_UNKNOWN)
			e->figures[FIG_kv] = e->figures[FIG_family_bytes];
	} else {
		if (e->figures[FIG_kv] == CUF_UNKNOWN)
			e->figures[FIG_kv] = e->figures[FIG_family_bytes];
		evidence_set(e, TERM_kv_done, e->figures[FIG_shortfall] != CUF_UNKNOWN && e->figures[FIG_kv] > e->figures[FIG_shortfall]);
	}
}

static void set_ladder(struct evidence *e, const struct site_trace *s)
{
	if (s->ladder_count < 4)
		return;
	e->figures[FIG_ladder] = s->ladder_count;
	e->figures[FIG_kept] = s->ladder_bytes;
	evidence_set(e, TERM_ladder, s->frees * 4 <= s->allocs ? (double)s->ladder_count : 0);
}

static void set_series(struct pass *p, const struct site_trace *s)
{
	struct evidence *e = p->e;
	uint64_t *f = e->figures, step;
	uint64_t hits = site_trace_step(s, &step);
	if (!site_trace_is_series(s))
		return;
	evidence_set(e, TERM_one_request, !s->resets);
	evidence_set(e, TERM_arithmetic, hits >= 8 ? (double)hits / (double)s->rises : 0);
	evidence_set(e, TERM_geometric, site_trace_is_geometric(s));
	f[FIG_resets] = s->resets;
	evidence_set(e, TERM_sawtooth, (double)s->resets);
	f[FIG_last] = s->last_bytes;
	if (hits >= 8) {
		f[FIG_step] = step;
		f[FIG_terms] = hits;
		f[FIG_steps_fit] = f[FIG_request] != CUF_UNKNOWN ? (f[FIG_request] - 1) / step : s->last_bytes / step;
		evidence_set(e, TERM_next_term, f[FIG_request] != CUF_UNKNOWN && f[FIG_request] > s->last_bytes && f[FIG_request] <= s->last_bytes + 2 * step);
	}
	set_ladder(e, s);
	if (site_trace_is_geometric(s))
		f[FIG_series_request] = f[FIG_request];
	evidence_set(e, TERM_longest, f[FIG_request] != CUF_UNKNOWN ? f[FIG_request] > s->most_bytes : s->last_bytes >= s->most_bytes);
	static const enum term shown[] = { TERM_arithmetic, TERM_geometric, TERM_sawtooth, TERM_next_term, TERM_ladder, TERM_longest, TERM_kv_grown, TERM_one_request };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		evidence_show(e, shown[i], s->first_seq);
		evidence_show(e, shown[i], s->last_seq);
	}
}

/* One unit of work is as many blocks as its sizes repeat after; some of the last one may be missing. before: all blocks as
 * large as the failed request, when units were asked for from elsewhere before; NULL: the site itself tells. */
static void set_unit(struct pass *p, const struct site_trace *s, const struct site_trace *before)
{
	uint64_t *f = p->e->figures, unit = 0, same = 0;
	size_t period = 1, count = p->history_count < HISTORY_MAX ? p->history_count : HISTORY_MAX;
	for (; period < count / 2; period++) {
		size_t i = period;
		while (i < count && p->history[(p->history_count - 1 - i) % HISTORY_MAX] == p->history[(p->history_count - 1 - i + period) % HISTORY_MAX])
			i++;
		if (i == count)
			break;
	}
	for (size_t i = 0; i < period && i < count; i++) {
		uint64_t bytes = p->history[(p->history_count - 1 - i) % HISTORY_MAX];
		same += bytes == f[FIG_request];
		unit += bytes > CUF_PAGE_BYTES / 2 ? (bytes + CUF_PAGE_BYTES - 1) / CUF_PAGE_BYTES * CUF_PAGE_BYTES : bytes;
	}
	if (!unit || f[FIG_free] == CUF_UNKNOWN)
		return;
	f[FIG_together] = unit;
	f[FIG_together_fit] = (f[FIG_free] + s->live_bytes) / unit;
	f[FIG_siblings] = s->live / period + 1; /* that of the failed request is one of them */
	f[FIG_siblings_before] = before && same ? (before->peak_before + same - 1) / same : (s->peak_before + period - 1) / period;
	f[FIG_fits] = f[FIG_base] = CUF_UNKNOWN; /* of a family laid out in advance: another cause */
}

static double short_lived(const struct site_trace *s) { return s->allocs ? (double)s->frees / (double)s->allocs : 0; }

/* Many of them at once, as never before, and they go again: requests side by side, of many threads or of an event loop. */
static bool is_together(const struct evidence *e, const struct site_trace *s)
{
	bool busy = s && s->live >= 4 && short_lived(s) >= 0.4 && s->live >= s->peak_before;
	return busy && (site_trace_threads(s) >= 3 || (s->resets >= 2 && site_trace_interleaved(s) < 0.3 && !(e->terms[TERM_kv_named].value > 0)));
}

static void set_siblings(struct pass *p, const struct site_trace *s)
{
	struct evidence *e = p->e;
	uint64_t *f = e->figures;
	const struct site_trace *same_size = site_traces_of(&p->same_size, 1);
	bool together;
	if (s->allocs < 4)
		return;
	f[FIG_siblings] = s->live ? s->live : CUF_UNKNOWN;
	f[FIG_siblings_before] = s->peak_before;
	f[FIG_grown] = s->live_bytes;
	f[FIG_threads] = (uint64_t)site_trace_threads(s);
	together = is_together(e, s) || is_together(e, same_size);
	evidence_set(e, TERM_concurrent, together ? (double)s->live : 0);
	if (together)
		set_unit(p, s, is_together(e, s) ? NULL : same_size);
	evidence_show(e, TERM_concurrent, s->first_seq);
	evidence_show(e, TERM_concurrent, s->last_seq);
	if (s->live >= 4 && f[FIG_request] != CUF_UNKNOWN && f[FIG_free] != CUF_UNKNOWN)
		evidence_set(e, TERM_one_fits, f[FIG_free] + s->live_bytes >= f[FIG_request]);
	evidence_show(e, TERM_one_fits, s->last_seq);
	/* blocks of one cache that grows in pieces: one by one while other work goes on, many back at the end of a request */
	if (short_lived(s) >= 0.2 && s->live >= 4 && s->live >= s->peak_before && !together && s->allocs >= PIECES_LEAST && s->live_bytes >= s->highest_before_reset)
		evidence_set(e, TERM_kv_grown, (double)s->live);
	evidence_set(e, TERM_one_request, !s->resets);
	if (s->resets) {
		f[FIG_resets] = s->resets;
		evidence_set(e, TERM_sawtooth, (double)s->resets);
		evidence_show(e, TERM_sawtooth, s->first_seq);
		evidence_show(e, TERM_sawtooth, s->last_seq);
	}
}

/* Where a tenth of what a site holds would have been enough, it was that site which filled the device, whoever asked last. */
static bool fills_device(const struct evidence *e, uint64_t bytes)
{
	return e->figures[FIG_shortfall] != CUF_UNKNOWN && e->figures[FIG_shortfall] <= bytes / 10;
}

/* A cache whose blocks come and go was not laid out in advance. At its highest it leaves nothing for somebody else's request. */
static void look_at_cache(struct build *b, struct pass *p, const struct site_trace *failing)
{
	struct evidence *e = p->e;
	const struct site_trace *s = e->kv_stack ? site_traces_of(&p->sites, stack_site(b, e->process, e->kv_stack, &p->keys)) : NULL;
	uint64_t highest;
	if (!s || s->frees * 10 <= s->allocs)
		return;
	evidence_set(e, TERM_kv_done, 0);
	if (e->terms[TERM_family_next].value > 0)
		evidence_set(e, TERM_kv_prealloc, 0);
	highest = s->high_bytes > s->highest_before_reset ? s->high_bytes : s->highest_before_reset;
	if (s == failing || short_lived(s) < 0.2 || s->live < 4 || s->allocs < PIECES_LEAST || s->live_bytes < highest - highest / 20 ||
	    !fills_device(e, s->live_bytes) || e->terms[TERM_concurrent].value > 0)
		return;
	e->figures[FIG_siblings] = s->live;
	e->figures[FIG_grown] = s->live_bytes;
	e->terms[TERM_kv_grown].stack = e->kv_stack;
	evidence_set(e, TERM_kv_grown, (double)s->live);
	evidence_show(e, TERM_kv_grown, s->first_seq);
	evidence_show(e, TERM_kv_grown, s->last_seq);
}

/* A pool that outgrows what it keeps, while somebody else's request is the one that fails. */
static void look_at_ladders(struct pass *p)
{
	struct evidence *e = p->e;
	for (size_t i = 0; i < p->sites.count && !(e->terms[TERM_ladder].value >= 8); i++) {
		const struct site_trace *s = &p->sites.items[i];
		if (s->stack == p->failing || s->ladder_count < 8 || !site_trace_is_series(s) || !site_trace_is_geometric(s) ||
		    s->frees * 4 > s->allocs || !fills_device(e, s->ladder_bytes))
			continue;
		set_ladder(e, s);
		evidence_set(e, TERM_geometric, 1);
		evidence_show(e, TERM_ladder, s->last_seq);
		evidence_show(e, TERM_geometric, s->last_seq);
	}
}

/* A framework's own report of the failure is nearer to who asked than the driver's call is. */
static uint32_t failing_stack(struct build *b, const struct evidence *e)
{
	const struct events *events = b->run->processes[e->process].events->framework;
	uint64_t last = e->incident->settled_seq > e->incident->seq ? e->incident->settled_seq : e->incident->seq;
	for (size_t at = events_after(events, e->incident->seq ? e->incident->seq - 1 : 0); at < events->count; at++) {
		struct cuf_event event = events_get(events, at);
		if (event.seq > last)
			break;
		if (event.op == CUF_OP_FAIL && event.stack)
			return event.stack;
	}
	return e->incident->stack.id;
}

void evidence_trace(struct build *build, struct evidence *e)
{
	struct pass *p;
	const struct site_trace *failing = NULL;
	if (e->device == FACT_NONE || ordinal_in(build, e->device, e->process) == CUF_DEVICE_NONE)
		return;
	p = xalloc_zeroed(1, sizeof *p);
	p->e = e;
	p->small_bytes = e->figures[FIG_total] == CUF_UNKNOWN ? 0 : e->figures[FIG_total] / SMALL_SHARE;
	site_traces_init(&p->sites);
	site_traces_init(&p->same_size);
	if (e->terms[TERM_family].seq_count && e->figures[FIG_family] != CUF_UNKNOWN) {
		p->family_first = e->terms[TERM_family].seqs[0];
		p->family_last = e->terms[TERM_family].seqs[e->terms[TERM_family].seq_count - 1];
	}
	if (e->incident)
		p->failing = stack_site(build, e->process, failing_stack(build, e), &p->keys);
	follow(build, p);
	set_served(p);
	set_family(p);
	if (e->incident) {
		failing = site_traces_of(&p->sites, p->failing);
		evidence_set(e, TERM_new_site, failing == NULL || !failing->allocs);
		evidence_show(e, TERM_new_site, e->incident->seq);
	}
	if (failing) {
		set_series(p, failing);
		set_siblings(p, failing);
	}
	look_at_cache(build, p, failing);
	/* packing gives a little more; what grows to so many times of that uses it up at once */
	if (e->terms[TERM_kv_grown].value > 0 && e->figures[FIG_slack] != CUF_UNKNOWN && e->figures[FIG_slack])
		evidence_set(e, TERM_grown_over_slack, (double)e->figures[FIG_grown] / (double)e->figures[FIG_slack]);
	if (e->incident)
		look_at_ladders(p);
	if (p->capturing || (p->capture_seq && e->figures[FIG_cycles] == CUF_UNKNOWN)) {
		evidence_set(e, TERM_graph_capture, 1);
		evidence_show(e, TERM_graph_capture, p->capture_seq);
	}
	site_traces_fini(&p->sites);
	site_traces_fini(&p->same_size);
	stack_sites_fini(&p->keys);
	free(p);
}
