/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly: spans and inferred stretches as facts, grouped by name, and what incidents happened in. */
#include "analysis/phases/phases.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/facts/build.h"

enum { PHASES_KEPT = 2048, PHASES_KEPT_RUN = 16384, NAMES_MAX = 65536 };

const char *const phase_source_names[PHASE_SOURCE_MAX] = { "mark", "nvtx", "inferred" };

static const enum fact_phase_source sources[] = { [CUF_PHASE_PROGRAM] = PHASE_MARK, [CUF_PHASE_NVTX] = PHASE_NVTX };

/* Texts of META PHASE by number. */
struct names { const char **items; size_t count; };

static struct names read_names(const struct meta *meta)
{
	struct names n = { NULL, 1 };
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_PHASE && meta->texts[i].number < NAMES_MAX && meta->texts[i].number >= n.count)
			n.count = meta->texts[i].number + 1;
	n.items = xalloc_zeroed(n.count, sizeof *n.items);
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_PHASE && meta->texts[i].number < n.count)
			n.items[meta->texts[i].number] = meta->texts[i].text;
	return n;
}

static const char *name_of(const struct names *names, uint64_t number)
{
	return number < names->count && names->items[number] ? names->items[number] : "(name lost)";
}

/* ---- one process ---- */

struct making { struct build *build; uint32_t process; const struct reader *reader; struct names names; struct phase_spans spans; struct work_base base; };

static uint64_t realtime(const struct making *m, uint64_t monotonic_ns) { return monotonic_ns == CUF_UNKNOWN ? CUF_UNKNOWN : reader_realtime(m->reader, monotonic_ns); }

static struct fact_phase phase_of(const struct making *m, const struct phase_span *s)
{
	return (struct fact_phase){ .name = name_of(&m->names, s->name), .source = sources[s->source], .basis = BASIS_OBSERVED, .why = "",
		.process = m->process, .tid = s->tid, .depth = s->depth, .begin_ns = realtime(m, s->begin_ns), .end_ns = realtime(m, s->end_ns),
		.begin_seq = s->begin_seq, .end_seq = s->end_seq, .is_mark = s->op == CUF_PHASE_MARK, .is_request = s->op == CUF_PHASE_REQUEST_BEGIN,
		.request_id = s->op == CUF_PHASE_REQUEST_BEGIN ? s->id : CUF_UNKNOWN, .work = s->work };
}

/* Places by name's number and by what it names: a mark and a phase of one name are two. */
enum { SORTS = 3 };

static size_t place_in_groups(const struct making *m, const struct phase_span *s)
{
	size_t sort = s->op == CUF_PHASE_MARK ? 0 : s->op == CUF_PHASE_REQUEST_BEGIN ? 1 : 2;
	return ((s->name < m->names.count ? s->name : 0) * SORTS + sort) * 2 + s->source;
}

/* Too many to keep: of each name the longest, of all names about as many. */
struct candidate { const struct phase_span *span; size_t place; uint64_t length_ns; size_t rank; };

static int by_place(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->length_ns != y->length_ns)
		return x->length_ns > y->length_ns ? -1 : 1;
	return x->span->begin_seq < y->span->begin_seq ? -1 : x->span->begin_seq > y->span->begin_seq;
}

static int by_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	return x->rank != y->rank ? x->rank < y->rank ? -1 : 1 : by_place(a, b);
}

/* At most PHASES_KEPT, fewer where there are many processes; in the heap. */
static struct candidate *choose(const struct making *m, size_t *count)
{
	size_t most = PHASES_KEPT_RUN / m->build->run->count < PHASES_KEPT ? PHASES_KEPT_RUN / m->build->run->count : PHASES_KEPT;
	struct candidate *all = xalloc_zeroed(m->spans.count, sizeof *all);
	for (size_t i = 0; i < m->spans.count; i++) {
		const struct phase_span *s = &m->spans.items[i];
		all[i] = (struct candidate){ s, place_in_groups(m, s), s->end_ns == CUF_UNKNOWN ? UINT64_MAX : s->end_ns < s->begin_ns ? 0 : s->end_ns - s->begin_ns, 0 };
	}
	*count = m->spans.count;
	if (*count <= most)
		return all;
	qsort(all, *count, sizeof *all, by_place);
	for (size_t i = 1; i < *count; i++)
		all[i].rank = all[i].place == all[i - 1].place ? all[i - 1].rank + 1 : 0;
	qsort(all, *count, sizeof *all, by_rank);
	*count = most;
	return all;
}

static int by_begin(const void *a, const void *b)
{
	const struct fact_phase *x = a, *y = b;
	if (x->begin_seq != y->begin_seq)
		return x->begin_seq < y->begin_seq ? -1 : 1;
	return (x->source == PHASE_INFERRED) - (y->source == PHASE_INFERRED);
}

static void fill_phases(struct making *m, struct fact_process *p)
{
	const struct run_process *from = &m->build->run->processes[m->process];
	struct inferred found[INFERRED_MAX];
	struct fact_stretch work[INFERRED_MAX] = { 0 };
	size_t inferred = phases_infer(found, from->events, &m->base, from->meta.hook_names, from->meta.hook_name_count, m->build->arena), kept;
	struct candidate *chosen = choose(m, &kept);
	struct fact_phase *phases = arena_zeroed(m->build->arena, kept + inferred, sizeof *phases);
	if (inferred)
		phases_follow(work, found, inferred, from->events, &m->base);
	for (size_t i = 0; i < kept; i++)
		phases[p->phase_count++] = phase_of(m, chosen[i].span);
	free(chosen);
	for (size_t i = 0; i < inferred; i++)
		phases[p->phase_count++] = (struct fact_phase){ .name = found[i].name, .source = PHASE_INFERRED, .basis = found[i].basis, .why = found[i].why,
			.process = m->process, .begin_ns = realtime(m, found[i].begin_ns), .end_ns = realtime(m, found[i].end_ns), .begin_seq = found[i].begin_seq,
			.end_seq = found[i].end_seq, .request_id = CUF_UNKNOWN, .work = work[i] };
	if (p->phase_count)
		qsort(phases, p->phase_count, sizeof *phases, by_begin);
	p->phases = phases;
	p->phases_seen = m->spans.count + inferred;
}

/* ---- groups ---- */

static void add_to_group(struct fact_phase_group *g, const struct fact_phase *f)
{
	uint64_t length = f->end_ns == CUF_UNKNOWN || f->end_ns < f->begin_ns ? 0 : f->end_ns - f->begin_ns, rise = f->work.peak_bytes - f->work.start_bytes;
	if (!g->count++)
		*g = (struct fact_phase_group){ .name = f->name, .source = f->source, .is_mark = f->is_mark, .is_request = f->is_request, .count = 1, .first_ns = f->begin_ns };
	g->open += f->end_ns == CUF_UNKNOWN;
	g->total_ns += length;
	g->longest_ns = length > g->longest_ns ? length : g->longest_ns;
	g->peak_bytes = f->work.peak_bytes > g->peak_bytes ? f->work.peak_bytes : g->peak_bytes;
	g->rise_bytes = rise > g->rise_bytes ? rise : g->rise_bytes;
}

static int by_total_time(const void *a, const void *b)
{
	const struct fact_phase_group *x = a, *y = b;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static void fill_groups(struct making *m, struct fact_process *p)
{
	size_t places = m->names.count * SORTS * 2, count = 0;
	struct fact_phase_group *all = xalloc_zeroed(places + INFERRED_MAX, sizeof *all);
	for (size_t i = 0; i < m->spans.count; i++) {
		struct fact_phase f = phase_of(m, &m->spans.items[i]);
		add_to_group(&all[place_in_groups(m, &m->spans.items[i])], &f);
	}
	for (size_t i = 0, extra = 0; i < p->phase_count && extra < INFERRED_MAX; i++)
		if (p->phases[i].source == PHASE_INFERRED)
			add_to_group(&all[places + extra++], &p->phases[i]);
	for (size_t i = 0; i < places + INFERRED_MAX; i++)
		if (all[i].count)
			all[count++] = all[i];
	if (count)
		qsort(all, count, sizeof *all, by_total_time);
	p->phase_groups = arena_copy(m->build->arena, all, count, sizeof *all);
	p->phase_group_count = count;
	free(all);
}

static void fill_requests(struct making *m, struct fact_process *p)
{
	const struct run_process *from = &m->build->run->processes[m->process];
	struct requests_source source = { from->events, &m->base, &m->spans, m->reader->header.start_ns, m->reader->header.start_realtime_ns };
	uint64_t most = 0;
	requests_judge(&p->requests, &source, m->build->arena);
	for (size_t i = 0; i < p->phase_group_count; i++)
		if (p->phase_groups[i].is_request && p->phase_groups[i].count > most) {
			most = p->phase_groups[i].count;
			p->requests.name = p->phase_groups[i].name;
		}
}

static void fill_process(struct build *b, uint32_t process)
{
	struct run_process *from = &b->run->processes[process];
	struct fact_process *p = &b->facts->processes[process];
	struct making m = { .build = b, .process = process, .reader = from->reader, .names = read_names(&from->meta) };
	bool exact;
	m.base = work_base(from->events, run_live(from, CUF_UNKNOWN, &exact));
	p->work_layer = m.base.layer == WORK_FRAMEWORK ? "framework" : "device";
	spans_read(&m.spans, from->events, &m.base);
	p->phases_left_out = from->reader->header.phases_left_out;
	fill_phases(&m, p);
	fill_groups(&m, p);
	fill_requests(&m, p);
	free(m.spans.items);
	free(m.names.items);
}

/* ---- moments ---- */

static bool covers(const struct fact_phase *f, uint64_t time_ns)
{
	return !f->is_mark && f->begin_ns <= time_ns && (f->end_ns == CUF_UNKNOWN || time_ns <= f->end_ns);
}

/* Which of two is more telling for a thread; 0: this one tells nothing of it. */
static unsigned rank_of(const struct fact_phase *f, uint32_t tid, uint32_t first_tid)
{
	if (f->source == PHASE_INFERRED)
		return 1;
	if (f->tid == tid && tid)
		return 1000 + f->depth;
	if (!f->tid)
		return 500;
	return f->tid == first_tid || !tid ? 2 + (f->depth < 400 ? f->depth : 400) : 0;
}

const struct fact_phase *phase_at(const struct facts *facts, uint32_t process, uint32_t tid, uint64_t time_ns)
{
	const struct fact_process *p = &facts->processes[process];
	const struct fact_phase *best = NULL;
	unsigned best_rank = 0;
	for (size_t i = 0; i < p->phase_count && p->phases[i].begin_ns <= time_ns; i++) {
		const struct fact_phase *f = &p->phases[i];
		unsigned rank = f->is_request || !covers(f, time_ns) ? 0 : rank_of(f, tid, p->pid);
		if (rank && rank >= best_rank) { /* of equals the one that began last */
			best = f;
			best_rank = rank;
		}
	}
	return best;
}

const struct fact_phase *request_at(const struct facts *facts, uint32_t process, uint32_t tid, uint64_t time_ns)
{
	const struct fact_process *p = &facts->processes[process];
	const struct fact_phase *own = NULL, *any = NULL;
	size_t open = 0;
	for (size_t i = 0; i < p->phase_count && p->phases[i].begin_ns <= time_ns; i++) {
		const struct fact_phase *f = &p->phases[i];
		if (!f->is_request || !covers(f, time_ns))
			continue;
		own = f->tid == tid ? f : own;
		any = f;
		open++;
	}
	return own ? own : open == 1 ? any : NULL;
}

/* The recorder's own word first: it knew what was open, also where the events are gone. */
static void fill_incident(struct build *b, struct fact_incident *f)
{
	const struct run_process *from = &b->run->processes[f->process];
	struct names names = read_names(&from->meta);
	struct cuf_incident raw;
	const struct fact_phase *phase = phase_at(b->facts, f->process, f->tid, f->time_ns), *request = request_at(b->facts, f->process, f->tid, f->time_ns);
	f->request_id = CUF_UNKNOWN;
	if (reader_incident(from->reader, f->number, &raw)) {
		if (raw.phase) {
			f->phase = name_of(&names, raw.phase);
			f->phase_source = phase && !strcmp(phase->name, f->phase) ? phase->source : PHASE_MARK;
			f->phase_basis = BASIS_OBSERVED;
		}
		if (raw.request_id) {
			f->request_phase = name_of(&names, raw.request_phase);
			f->request_id = raw.request_id;
		}
	}
	if (!f->phase && phase) {
		f->phase = phase->name;
		f->phase_source = phase->source;
		f->phase_basis = phase->source == PHASE_INFERRED || phase->tid != f->tid ? BASIS_INFERRED : phase->basis;
	}
	if (!f->request_phase && request) {
		f->request_phase = request->name;
		f->request_id = request->request_id;
	}
	free(names.items);
}

void build_phases(struct build *build)
{
	for (uint32_t p = 0; p < build->run->count; p++)
		fill_process(build, p);
	for (size_t i = 0; i < build->facts->incident_count; i++)
		fill_incident(build, &build->facts->incidents[i]);
}
