/* SPDX-License-Identifier: Apache-2.0 */
/* Assembly: spans and inferred stretches as facts, grouped by name, and what incidents happened in.
 */
#include "analysis/facts/phase.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/passes.h"

enum { PHASES_KEPT = 2048, PHASES_KEPT_RUN = 16384, NAMES_MAX = 65536 };

static const enum fact_phase_source sources[] = {
	[CUF_PHASE_PROGRAM] = PHASE_MARK, [CUF_PHASE_NVTX] = PHASE_NVTX
};

/* Texts of META PHASE by number. */
struct names {
	const char **items;
	size_t count;
};

/* A table by number. The array is in the heap, the texts are of the recording. */
static struct names read_names(const struct meta *meta)
{
	struct names names = { NULL, 1 };
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_PHASE && meta->texts[i].number < NAMES_MAX &&
		    meta->texts[i].number >= names.count)
			names.count = meta->texts[i].number + 1;
	names.items = xalloc_zeroed(names.count, sizeof *names.items);
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_PHASE && meta->texts[i].number < names.count)
			names.items[meta->texts[i].number] = meta->texts[i].text;
	return names;
}

static const char *phase_name(const struct names *names, uint64_t number)
{
	if (number >= names->count || !names->items[number])
		return "(name lost)";
	return names->items[number];
}

/* ---- one process ---- */

struct phase_making {
	struct facts *facts;
	uint32_t process;
	const struct reader *reader;
	struct names names;
	struct phase_spans spans;
	struct work_base base;
	struct inferred found[INFERRED_MAX];
	size_t found_count;
	struct outline *outline;
	struct work_nets nets;
	struct look *look;
	struct units_reading *units;
	struct spans_reading *reading;
};

static uint64_t realtime(const struct phase_making *making, uint64_t monotonic_ns)
{
	if (monotonic_ns == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return reader_realtime(making->reader, monotonic_ns);
}

static uint64_t request_id_of(const struct phase_span *span)
{
	if (span->op != CUF_PHASE_REQUEST_BEGIN)
		return CUF_UNKNOWN;
	return span->id;
}

static struct fact_phase phase_of(const struct phase_making *making, const struct phase_span *span)
{
	return (struct fact_phase){ .name = phase_name(&making->names, span->name),
				    .source = sources[span->source],
				    .basis = BASIS_OBSERVED,
				    .why = "",
				    .process = making->process,
				    .tid = span->tid,
				    .depth = span->depth,
				    .begin_ns = realtime(making, span->begin_ns),
				    .end_ns = realtime(making, span->end_ns),
				    .begin_seq = span->begin_seq,
				    .end_seq = span->end_seq,
				    .is_mark = span->op == CUF_PHASE_MARK,
				    .is_request = span->op == CUF_PHASE_REQUEST_BEGIN,
				    .request_id = request_id_of(span),
				    .work = span->work };
}

/* Places by name's number and by what it names: a mark and a phase of one name are two. */
enum { SORTS = 3 };

static size_t place_in_groups(const struct phase_making *making, const struct phase_span *span)
{
	size_t name = span->name, sort = 2;

	if (name >= making->names.count)
		name = 0;
	if (span->op == CUF_PHASE_MARK)
		sort = 0;
	else if (span->op == CUF_PHASE_REQUEST_BEGIN)
		sort = 1;
	return (name * SORTS + sort) * 2 + span->source;
}

/* Too many to keep: of each name the longest, of all names about as many. */
struct candidate {
	const struct phase_span *span;
	size_t place;
	uint64_t length_ns;
	size_t rank;
};

/* Groups phases of one name, the longest first. */
static int by_place(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;
	if (left->place != right->place)
		return compare_numbers(left->place, right->place);
	if (left->length_ns != right->length_ns)
		return compare_numbers(right->length_ns, left->length_ns);
	return compare_numbers(left->span->begin_seq, right->span->begin_seq);
}

/* The longest phase of each name, then the second of each, and so on. */
static int by_rank(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;
	if (left->rank != right->rank)
		return compare_numbers(left->rank, right->rank);
	return by_place(a, b);
}

/* An open phase is the longest. */
static uint64_t length_of(const struct phase_span *span)
{
	if (span->end_ns == CUF_UNKNOWN)
		return UINT64_MAX;
	return subtract_to_zero(span->end_ns, span->begin_ns);
}

/* At most PHASES_KEPT, fewer where there are many processes; in the heap. */
static struct candidate *choose(const struct phase_making *making, size_t *count)
{
	size_t most = least_of(PHASES_KEPT_RUN / making->facts->run->count, PHASES_KEPT);
	struct candidate *all = xalloc_zeroed(making->spans.count, sizeof *all);
	for (size_t i = 0; i < making->spans.count; i++) {
		const struct phase_span *span = &making->spans.items[i];
		all[i] = (struct candidate){ span, place_in_groups(making, span),
					     length_of(span),
					     0 };
	}
	*count = making->spans.count;
	if (*count <= most)
		return all;
	qsort(all, *count, sizeof *all, by_place);
	for (size_t i = 1; i < *count; i++)
		if (all[i].place == all[i - 1].place)
			all[i].rank = all[i - 1].rank + 1;
	qsort(all, *count, sizeof *all, by_rank);
	*count = most;
	return all;
}

/* Of phases that begin at the same event, inferred ones come last. */
static int by_begin(const void *a, const void *b)
{
	const struct fact_phase *left = a, *right = b;
	if (left->begin_seq != right->begin_seq)
		return compare_numbers(left->begin_seq, right->begin_seq);
	return (left->source == PHASE_INFERRED) - (right->source == PHASE_INFERRED);
}

/* Recorded phases and inferred ones in one list, by begin. */
static void fill_phases(struct phase_making *making, struct fact_process *process)
{
	const struct run_process *from = &making->facts->run->processes[making->process];
	const struct inferred *found = making->found;
	size_t inferred = making->found_count, kept;
	struct candidate *chosen = choose(making, &kept);
	struct fact_phase *phases = arena_zeroed(making->facts->arena, kept + inferred,
						 sizeof *phases);
	for (size_t i = 0; i < kept; i++)
		phases[process->phase_count++] = phase_of(making, chosen[i].span);
	free(chosen);
	for (size_t i = 0; i < inferred; i++)
		phases[process->phase_count++] =
			(struct fact_phase){ .name = found[i].name,
					     .source = PHASE_INFERRED,
					     .basis = found[i].basis,
					     .why = found[i].why,
					     .process = making->process,
					     .begin_ns = realtime(making, found[i].begin_ns),
					     .end_ns = realtime(making, found[i].end_ns),
					     .begin_seq = found[i].begin_seq,
					     .end_seq = found[i].end_seq,
					     .request_id = CUF_UNKNOWN,
					     .work = outline_stretch(making->outline, from->events,
								     found[i].begin_seq,
								     found[i].end_seq) };
	if (process->phase_count)
		qsort(phases, process->phase_count, sizeof *phases, by_begin);
	process->phases = phases;
	process->phases_seen = making->spans.count + inferred;
}

/* ---- groups ---- */

/* Totals count phases that the list of phases left out, too. */
static void add_to_group(struct fact_phase_group *group, const struct fact_phase *phase)
{
	uint64_t rise = phase->work.peak_bytes - phase->work.start_bytes, length = 0;

	if (phase->end_ns != CUF_UNKNOWN)
		length = subtract_to_zero(phase->end_ns, phase->begin_ns);
	if (!group->count++)
		*group = (struct fact_phase_group){ .name = phase->name,
						    .source = phase->source,
						    .is_mark = phase->is_mark,
						    .is_request = phase->is_request,
						    .count = 1,
						    .first_ns = phase->begin_ns };
	group->open += phase->end_ns == CUF_UNKNOWN;
	group->total_ns += length;
	group->longest_ns = most_of(length, group->longest_ns);
	group->peak_bytes = most_of(phase->work.peak_bytes, group->peak_bytes);
	group->rise_bytes = most_of(rise, group->rise_bytes);
}

/* What took most time comes first. */
static int by_total_time(const void *a, const void *b)
{
	const struct fact_phase_group *left = a, *right = b;
	if (left->total_ns != right->total_ns)
		return compare_numbers(right->total_ns, left->total_ns);
	return compare_numbers(left->first_ns, right->first_ns);
}

/* Groups by name and sort are made from all spans. Inferred phases have their own places after
 * those. */
static void fill_groups(struct phase_making *making, struct fact_process *process)
{
	size_t places = making->names.count * SORTS * 2, count = 0;
	struct fact_phase_group *all = xalloc_zeroed(places + INFERRED_MAX, sizeof *all);
	for (size_t i = 0; i < making->spans.count; i++) {
		struct fact_phase phase = phase_of(making, &making->spans.items[i]);
		add_to_group(&all[place_in_groups(making, &making->spans.items[i])], &phase);
	}
	for (size_t i = 0, extra = 0; i < process->phase_count && extra < INFERRED_MAX; i++)
		if (process->phases[i].source == PHASE_INFERRED)
			add_to_group(&all[places + extra++], &process->phases[i]);
	for (size_t i = 0; i < places + INFERRED_MAX; i++)
		if (all[i].count)
			all[count++] = all[i];
	if (count)
		qsort(all, count, sizeof *all, by_total_time);
	process->phase_groups = arena_copy(making->facts->arena, all, count, sizeof *all);
	process->phase_group_count = count;
	free(all);
}

/* The name of requests is that of the largest group of marked requests. */
static void name_requests(const struct phase_making *making, struct fact_process *process)
{
	uint64_t most = 0;

	for (size_t i = 0; i < process->phase_group_count; i++)
		if (process->phase_groups[i].is_request && process->phase_groups[i].count > most) {
			most = process->phase_groups[i].count;
			process->requests.name = process->phase_groups[i].name;
		}
}

struct phase_making *phases_begin(struct facts *facts, uint32_t process, struct quiet_marks *quiet,
				  struct sweep_consumer first[PHASES_FIRST])
{
	struct phase_making *making = xalloc_zeroed(1, sizeof *making);
	struct run_process *from = &facts->run->processes[process];

	making->facts = facts;
	making->process = process;
	making->reader = from->reader;
	making->names = read_names(&from->meta);
	making->look = look_begin(from->events, from->meta.hook_names, from->meta.hook_name_count,
				  &first[0]);
	making->units = units_begin(quiet, &first[1]);
	first[2] = work_nets_consumer(&making->nets);
	return making;
}

void phases_turn(struct phase_making *making, struct sweep_consumer again[PHASES_AGAIN])
{
	struct run_process *from = &making->facts->run->processes[making->process];

	making->base = work_base(&making->nets, run_sums(from, CUF_UNKNOWN));
	look_start(making->look, &making->base, making->facts->arena, &again[0]);
	units_measure(making->units, &making->base, &again[1]);
	making->reading = spans_begin(&making->spans, from->events, &making->base, &again[2]);
	making->outline = outline_begin(&making->base, from->events, &again[3]);
}

/* Phases are measured on framework blocks where a framework reports them, else on device blocks. */
void phases_end(struct phase_making *making)
{
	struct fact_process *out = &making->facts->processes[making->process];
	const struct cuf_header *header = &making->reader->header;
	struct requests_source source = { .units = making->units,
					  .spans = &making->spans,
					  .start_ns = header->start_ns,
					  .start_realtime_ns = header->start_realtime_ns };

	spans_end(making->reading);
	making->found_count = look_end(making->look, making->found);
	requests_judge(&out->requests, &source, making->facts->arena);
	units_end(making->units);
	out->work_layer = "device";
	if (making->base.layer == WORK_FRAMEWORK)
		out->work_layer = "framework";
	out->phases_left_out = header->phases_left_out;
	fill_phases(making, out);
	fill_groups(making, out);
	name_requests(making, out);
	outline_end(making->outline);
	free(making->spans.items);
	free(making->names.items);
	free(making);
}

/* ---- moments ---- */

/* The recorder's own word first: it knew what was open, also where the events are gone. */
static void fill_incident(const struct facts *facts, struct fact_incident *incident)
{
	const struct run_process *from = &facts->run->processes[incident->process];
	struct names names = read_names(&from->meta);
	struct cuf_incident raw;
	const struct fact_phase *phase = phase_at(&facts->processes[incident->process],
						  incident->tid, incident->time_ns), *request =
		request_at(&facts->processes[incident->process], incident->tid, incident->time_ns);
	incident->request_id = CUF_UNKNOWN;
	if (reader_incident(from->reader, incident->number, &raw)) {
		if (raw.phase) {
			incident->phase = phase_name(&names, raw.phase);
			incident->phase_source = PHASE_MARK;
			if (phase && !strcmp(phase->name, incident->phase))
				incident->phase_source = phase->source;
			incident->phase_basis = BASIS_OBSERVED;
		}
		if (raw.request_id) {
			incident->request_phase = phase_name(&names, raw.request_phase);
			incident->request_id = raw.request_id;
		}
	}
	if (!incident->phase && phase) {
		incident->phase = phase->name;
		incident->phase_source = phase->source;
		incident->phase_basis = phase->basis;
		if (phase->source == PHASE_INFERRED || phase->tid != incident->tid)
			incident->phase_basis = BASIS_INFERRED;
	}
	if (!incident->request_phase && request) {
		incident->request_phase = request->name;
		incident->request_id = request->request_id;
	}
	free(names.items);
}

void phases_of_incidents(struct facts *facts)
{
	for (size_t i = 0; i < facts->incident_count; i++)
		fill_incident(facts, &facts->incidents[i]);
}
