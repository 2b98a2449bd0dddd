/* SPDX-License-Identifier: Apache-2.0 */
/* How it came about: one pass over the device's events up to the moment, each call site followed. */
#include "analysis/model/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/model/evidence_stacks.h"
#include "analysis/model/replay.h"
#include "analysis/model/site_trace.h"

/* Sizes of blocks that came and went, thinned evenly when there are many. */
enum { SERVED_MAX = 4096, SERVED_LEAST = 8 };
struct served { uint64_t sizes[SERVED_MAX]; size_t count; uint64_t seen, stride, most; };

struct pass {
	struct evidence *e;
	struct site_traces sites;
	struct served served;
	uint64_t allocated, freed;            /* bytes */
	uint64_t family_first, family_last;   /* seqs of the family; 0 none */
	uint64_t burst_all, burst_family;     /* bytes allocated between them */
	uint64_t query_seq, since_query;      /* the program's last look at free memory, and bytes allocated since */
	uint64_t family_query_seq;            /* the look directly before the family */
	uint64_t capture_seq, last_seq;
	unsigned capturing;
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

static void take_alloc(struct pass *p, const struct cuf_event *event)
{
	uint64_t unit = p->e->figures[FIG_unit];
	p->allocated += event->bytes;
	if (p->family_first && event->seq == p->family_first)
		p->family_query_seq = unit != FACT_UNKNOWN && p->since_query < unit / 4 ? p->query_seq : 0;
	if (p->family_first && event->seq >= p->family_first) {
		p->burst_all += event->bytes;
		p->burst_family += event->bytes == unit ? event->bytes : 0;
	}
	p->since_query += event->bytes;
	p->last_seq = event->seq;
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
		p->freed += event->bytes;
		if (!(event->flags & CUF_EVENT_BULK))
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

/* Framework blocks lie inside blocks of the driver: where there are any, they alone are followed. */
static void follow(struct build *b, struct pass *p)
{
	const struct events *events = b->run->processes[p->e->process].events;
	unsigned ordinal = ordinal_in(b, p->e->device, p->e->process);
	uint64_t until = p->e->incident ? p->e->incident->seq : CUF_UNKNOWN;
	bool framework = false;
	for (size_t i = 0; i < events->count && !framework; i++)
		framework = events_get(events, i).kind == CUF_KIND_FRAMEWORK;
	for (size_t i = 0; i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		bool block = event.op == CUF_OP_ALLOC || event.op == CUF_OP_FREE;
		if (event.seq > until || event.op == CUF_OP_EXIT)
			break;
		if (event.op != CUF_OP_CAPTURE && event.device != ordinal)
			continue;
		if (block && (framework ? event.kind != CUF_KIND_FRAMEWORK : !kind_is_device_memory(event.kind) || event.kind == CUF_KIND_CONTEXT))
			continue;
		if (event.bytes < (uint64_t)1 << 57)
			take_event(p, b, &event);
	}
	reader_drop(b->run->processes[p->e->process].reader, CUF_SEC_RING);
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
	}
	if (p->served.seen < SERVED_LEAST)
		return;
	qsort(p->served.sizes, p->served.count, sizeof *p->served.sizes, by_value);
	f[FIG_served] = p->served.sizes[p->served.count / 2];
	f[FIG_served_most] = p->served.most;
	if (f[FIG_request] != FACT_UNKNOWN && p->served.most)
		evidence_set(e, TERM_over_served, f[FIG_request] >= 2 * p->served.most ? (double)f[FIG_request] / (double)(f[FIG_served] ? f[FIG_served] : 1) : 0);
	evidence_show(e, TERM_over_served, e->incident ? e->incident->seq : 0);
}

static void set_family(struct pass *p)
{
	struct evidence *e = p->e;
	if (!p->family_first)
		return;
	if (p->burst_all)
		evidence_set(e, TERM_burst, (double)p->burst_family / (double)p->burst_all);
	evidence_set(e, TERM_after_query, p->family_query_seq != 0);
	if (!p->family_query_seq)
		return;
	e->terms[TERM_after_query].seq_count = 0;
	evidence_show(e, TERM_after_query, p->family_query_seq);
	evidence_show(e, TERM_after_query, p->family_first);
	/* a family laid out right after a look at free memory is a cache, with or without a name */
	if (e->terms[TERM_family_next].value > 0) {
		evidence_set(e, TERM_kv_prealloc, e->terms[TERM_kv_named].value > 0 ? 1 : 0.75);
		if (e->figures[FIG_kv] == FACT_UNKNOWN)
			e->figures[FIG_kv] = e->figures[FIG_family_bytes];
	} else if (e->terms[TERM_burst].value >= 0.5 || e->terms[TERM_kv_named].value > 0) {
		if (e->figures[FIG_kv] == FACT_UNKNOWN)
			e->figures[FIG_kv] = e->figures[FIG_family_bytes];
		evidence_set(e, TERM_kv_done, e->figures[FIG_shortfall] != FACT_UNKNOWN && e->figures[FIG_kv] > e->figures[FIG_shortfall]);
	}
}

static void set_series(struct pass *p, const struct site_trace *s)
{
	struct evidence *e = p->e;
	uint64_t *f = e->figures, step;
	uint64_t hits = site_trace_step(s, &step);
	if (s->rises < 2)
		return;
	evidence_set(e, TERM_arithmetic, hits >= 8 ? (double)hits / (double)s->rises : 0);
	evidence_set(e, TERM_geometric, site_trace_is_geometric(s));
	f[FIG_resets] = s->resets;
	evidence_set(e, TERM_sawtooth, (double)s->resets);
	f[FIG_last] = s->last_bytes;
	if (hits >= 8) {
		f[FIG_step] = step;
		f[FIG_terms] = hits;
		f[FIG_steps_fit] = s->last_bytes / step;
		evidence_set(e, TERM_next_term, f[FIG_request] != FACT_UNKNOWN && f[FIG_request] > s->last_bytes && f[FIG_request] <= s->last_bytes + 2 * step);
	}
	if (s->ladder_count >= 4) {
		f[FIG_ladder] = s->ladder_count;
		f[FIG_kept] = s->ladder_bytes;
		evidence_set(e, TERM_ladder, s->frees * 4 <= s->allocs ? (double)s->ladder_count : 0);
	}
	evidence_set(e, TERM_longest, f[FIG_request] != FACT_UNKNOWN ? f[FIG_request] > s->most_bytes : s->last_bytes >= s->most_bytes);
	static const enum term shown[] = { TERM_arithmetic, TERM_geometric, TERM_sawtooth, TERM_next_term, TERM_ladder, TERM_longest, TERM_kv_grown };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		evidence_show(e, shown[i], s->first_seq);
		evidence_show(e, shown[i], s->last_seq);
	}
}

static void set_siblings(struct pass *p, const struct site_trace *s)
{
	struct evidence *e = p->e;
	uint64_t *f = e->figures;
	double short_lived = s->allocs ? (double)s->frees / (double)s->allocs : 0;
	if (s->allocs < 4)
		return;
	f[FIG_siblings] = s->live;
	f[FIG_siblings_before] = s->peak_before;
	f[FIG_threads] = (uint64_t)site_trace_threads(s);
	evidence_set(e, TERM_concurrent, s->live >= 4 && short_lived >= 0.4 && s->live >= s->peak_before ? (double)s->live : 0);
	evidence_show(e, TERM_concurrent, s->first_seq);
	evidence_show(e, TERM_concurrent, s->last_seq);
	if (s->live >= 4 && f[FIG_request] != FACT_UNKNOWN && f[FIG_free] != FACT_UNKNOWN)
		evidence_set(e, TERM_one_fits, f[FIG_free] + s->live_bytes >= f[FIG_request]);
	evidence_show(e, TERM_one_fits, s->last_seq);
	/* blocks of one cache that grows in pieces: up within a request, all back at its end */
	if (s->resets && s->live >= 4 && s->live_bytes >= s->highest_before_reset)
		evidence_set(e, TERM_kv_grown, (double)s->live);
	if (s->resets) {
		f[FIG_resets] = s->resets;
		evidence_set(e, TERM_sawtooth, (double)s->resets);
		evidence_show(e, TERM_sawtooth, s->first_seq);
		evidence_show(e, TERM_sawtooth, s->last_seq);
	}
}

void evidence_trace(struct build *build, struct evidence *e)
{
	struct pass *p;
	const struct site_trace *failing = NULL;
	if (e->device == FACT_NONE || ordinal_in(build, e->device, e->process) == CUF_DEVICE_NONE)
		return;
	p = xalloc_zeroed(1, sizeof *p);
	p->e = e;
	site_traces_init(&p->sites);
	if (e->terms[TERM_family].seq_count && e->figures[FIG_family] != FACT_UNKNOWN) {
		p->family_first = e->terms[TERM_family].seqs[0];
		p->family_last = e->terms[TERM_family].seqs[e->terms[TERM_family].seq_count - 1];
	}
	follow(build, p);
	set_served(p);
	set_family(p);
	if (e->incident) {
		failing = site_traces_of(&p->sites, e->incident->stack.id);
		evidence_set(e, TERM_new_site, failing == NULL || !failing->allocs);
		evidence_show(e, TERM_new_site, e->incident->seq);
	}
	if (failing) {
		set_series(p, failing);
		set_siblings(p, failing);
	}
	if (p->capturing || (p->capture_seq && e->figures[FIG_cycles] == FACT_UNKNOWN)) {
		evidence_set(e, TERM_graph_capture, 1);
		evidence_show(e, TERM_graph_capture, p->capture_seq);
	}
	site_traces_fini(&p->sites);
	free(p);
}
