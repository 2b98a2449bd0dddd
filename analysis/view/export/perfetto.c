/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chrome's trace format, as ui.perfetto.dev and trace_processor read it. Processes have counters of
 * live bytes by kind and those of the timeline; blocks, phases and requests are asynchronous
 * slices, since they overlap; failed requests are instants. Times count from the first start, so
 * that microseconds keep their precision.
 */
#include "analysis/view/export/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/totals.h"
#include "analysis/view/export/names.h"
#include "analysis/facts/kinds.h"

enum { POINTS_MOST = 20000 };

/* Live bytes of one kind. Of each stretch of time the highest and the last level are written. */
struct series {
	uint32_t process, kind, device;
	int64_t level, most;
	uint64_t level_ns, most_ns, stretch_end_ns;
	bool pending;
};

struct perfetto {
	FILE *out;
	struct rows *rows;
	uint64_t start_ns, stretch_ns, id, small_count;
	bool any;
	struct series *series;
	size_t series_count, series_room;
};

/* ---- the parts of an event ---- */

static void put_time(struct perfetto *perfetto, uint64_t time_ns)
{
	uint64_t ns = subtract_to_zero(time_ns, perfetto->start_ns);

	fprintf(perfetto->out, ",\"ts\":%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

static void begin_event(struct perfetto *perfetto, const char *phase, uint32_t process)
{
	fprintf(perfetto->out, "%s{\"ph\":\"%s\",\"pid\":%" PRIu32, perfetto->any ? ",\n" : "\n",
		phase, process + 1);
	perfetto->any = true;
}

static void put_name(struct perfetto *perfetto, const char *name)
{
	fputs(",\"name\":", perfetto->out);
	name_put_json(perfetto->out, name);
}

/* Begin and end of a slice of its own track. The caller adds arguments to the begin. */
static void begin_slice(struct perfetto *perfetto, uint32_t process, const char *category,
			const char *name, uint64_t begin_ns)
{
	begin_event(perfetto, "b", process);
	fprintf(perfetto->out, ",\"cat\":\"%s\",\"id\":%" PRIu64 ",\"tid\":0", category,
		++perfetto->id);
	put_name(perfetto, name);
	put_time(perfetto, begin_ns);
	fputs(",\"args\":{", perfetto->out);
}

static void end_slice(struct perfetto *perfetto, uint32_t process, const char *category,
		      const char *name, uint64_t end_ns)
{
	fputs("}}", perfetto->out);
	begin_event(perfetto, "e", process);
	fprintf(perfetto->out, ",\"cat\":\"%s\",\"id\":%" PRIu64 ",\"tid\":0", category,
		perfetto->id);
	put_name(perfetto, name);
	put_time(perfetto, end_ns);
	fputc('}', perfetto->out);
}

/* ---- blocks ---- */

static struct series *series_of(struct perfetto *perfetto, uint32_t process, uint32_t kind,
				uint32_t device)
{
	struct series *series;

	for (size_t i = 0; i < perfetto->series_count; i++) {
		series = &perfetto->series[i];
		if (series->process == process && series->kind == kind && series->device == device)
			return series;
	}
	xalloc_grow(&perfetto->series, perfetto->series_count, &perfetto->series_room,
		    sizeof *perfetto->series);
	series = &perfetto->series[perfetto->series_count++];
	*series = (struct series){ .process = process, .kind = kind, .device = device };
	return series;
}

static void put_stack(struct perfetto *perfetto, uint32_t site)
{
	const struct frame *frames;
	size_t count = rows_site_frames(perfetto->rows, site, &frames);
	char name[NAME_BYTES];

	for (size_t i = 0; i < least_of(count, 8); i++) {
		name_frame(&frames[i], name, sizeof name);
		fprintf(perfetto->out, ",\"frame %zu\":", i);
		name_put_json(perfetto->out, name);
	}
}

static const char *innermost(struct perfetto *perfetto, uint32_t site, char *out, size_t bytes)
{
	const struct frame *frames;

	if (!rows_site_frames(perfetto->rows, site, &frames))
		return "?";
	name_function(&frames[0], out, bytes);
	return out;
}

/* A slice for each block, except small ones of the host: no screen shows a million of them. What
 * was allocated before the events begins with the level of its kind. */
static void see_block(void *context, const struct block_row *block)
{
	struct perfetto *perfetto = context;
	const struct fact_process *process = &rows_facts(perfetto->rows)->processes[block->process];
	uint64_t begin_ns = block->born_ns, end_ns = block->died_ns;
	char text[NAME_BYTES];
	const char *name;

	if (!block->born_seen)
		series_of(perfetto, block->process, block->kind, block->device)->level +=
			(int64_t)block->weight_bytes;
	if (block->kind == CUF_KIND_HOST && block->bytes < CUF_SAMPLE_EXACT_BYTES) {
		perfetto->small_count++;
		return;
	}
	if (!is_known(begin_ns))
		begin_ns = process->start_ns;
	if (!is_known(end_ns))
		end_ns = process->end_ns;
	name = innermost(perfetto, block->site, text, sizeof text);
	begin_slice(perfetto, block->process, "block", name, begin_ns);
	fprintf(perfetto->out, "\"bytes\":%" PRIu64 ",\"address\":\"%#" PRIx64 "\",\"kind\":\"%s\"",
		block->bytes, block->addr, kind_name(block->kind));
	if (block->device != FACT_NONE)
		fprintf(perfetto->out, ",\"device\":%" PRIu32,
			rows_facts(perfetto->rows)->devices[block->device].ordinal);
	fprintf(perfetto->out, ",\"live_at_end\":%s", is_known(block->died_ns) ? "false" : "true");
	put_stack(perfetto, block->site);
	end_slice(perfetto, block->process, "block", innermost(perfetto, block->site, text,
							       sizeof text), end_ns);
}

/* ---- counters ---- */

static void put_counter(struct perfetto *perfetto, const struct series *series, int64_t level,
			uint64_t time_ns)
{
	char name[128];

	begin_event(perfetto, "C", series->process);
	name_memory(rows_facts(perfetto->rows), series->kind, series->device, name, sizeof name);
	strcat(name, " live");
	put_name(perfetto, name);
	put_time(perfetto, time_ns);
	fprintf(perfetto->out, ",\"args\":{\"bytes\":%" PRId64 "}}", level);
}

static void flush_series(struct perfetto *perfetto, struct series *series)
{
	if (!series->pending)
		return;
	if (series->most_ns != series->level_ns)
		put_counter(perfetto, series, series->most, series->most_ns);
	put_counter(perfetto, series, series->level, series->level_ns);
	series->pending = false;
}

static void see_event(void *context, const struct event_row *event)
{
	struct perfetto *perfetto = context;
	struct series *series;
	int64_t bytes = (int64_t)event->weight_bytes;

	if (event->op == EVENT_FAIL)
		return;
	series = series_of(perfetto, event->process, event->kind, event->device);
	if (event->time_ns >= series->stretch_end_ns)
		flush_series(perfetto, series);
	series->level += event->op == EVENT_FREE ? -bytes : bytes;
	series->level_ns = event->time_ns;
	if (!series->pending || series->level > series->most) {
		series->most = series->level;
		series->most_ns = event->time_ns;
	}
	if (!series->pending)
		series->stretch_end_ns = event->time_ns + perfetto->stretch_ns;
	series->pending = true;
}

static void write_levels(struct perfetto *perfetto)
{
	const struct facts *facts = rows_facts(perfetto->rows);

	for (size_t i = 0; i < perfetto->series_count; i++) {
		struct series *series = &perfetto->series[i];

		if (series->level)
			put_counter(perfetto, series, series->level,
				    facts->processes[series->process].start_ns);
	}
	rows_events(perfetto->rows, see_event, perfetto);
	for (size_t i = 0; i < perfetto->series_count; i++)
		flush_series(perfetto, &perfetto->series[i]);
}

static void see_sample(void *context, const struct sample_row *sample)
{
	struct perfetto *perfetto = context;
	char name[128];

	begin_event(perfetto, "C", sample->process);
	snprintf(name, sizeof name, "%s", sample->name);
	if (sample->device != FACT_NONE)
		snprintf(name, sizeof name, "%s gpu %" PRIu32, sample->name,
			 rows_facts(perfetto->rows)->devices[sample->device].ordinal);
	put_name(perfetto, name);
	put_time(perfetto, sample->time_ns);
	fprintf(perfetto->out, ",\"args\":{\"bytes\":%" PRIu64 "}}", sample->bytes);
}

/* ---- processes, phases, incidents ---- */

static void write_process(struct perfetto *perfetto, uint32_t p)
{
	const struct facts *facts = rows_facts(perfetto->rows);
	const struct fact_process *process = &facts->processes[p];
	char name[NAME_BYTES];

	begin_event(perfetto, "M", p);
	fputs(",\"name\":\"process_name\",\"args\":{\"name\":", perfetto->out);
	name_process(facts, p, name, sizeof name);
	name_put_json(perfetto->out, name);
	fputs("}}", perfetto->out);
	for (size_t i = 0; i < process->phase_count; i++) {
		const struct fact_phase *phase = &process->phases[i];
		const char *category = phase->is_request ? "request" : "phase";
		uint64_t end_ns = phase->end_ns;

		if (!is_known(end_ns))
			end_ns = process->end_ns;
		begin_slice(perfetto, p, category, phase->name, phase->begin_ns);
		fprintf(perfetto->out, "\"thread\":%" PRIu32 ",\"source\":\"%s\"", phase->tid,
			phase_source_names[phase->source]);
		if (is_known(phase->request_id))
			fprintf(perfetto->out, ",\"request\":%" PRIu64, phase->request_id);
		end_slice(perfetto, p, category, phase->name, end_ns);
	}
}

static void write_incident(struct perfetto *perfetto, const struct fact_incident *incident)
{
	if (!rows_want_process(perfetto->rows, incident->process) ||
	    !rows_want_device(perfetto->rows, incident->device))
		return;
	begin_event(perfetto, "i", incident->process);
	fputs(",\"tid\":0,\"s\":\"p\",\"cat\":\"incident\"", perfetto->out);
	put_name(perfetto, incident->api ? incident->api : "allocation failed");
	put_time(perfetto, incident->time_ns);
	fprintf(perfetto->out, ",\"args\":{\"incident\":%" PRIu64 ",\"outcome\":\"%s\"",
		incident->id, outcome_names[incident->outcome]);
	if (is_known(incident->requested_bytes))
		fprintf(perfetto->out, ",\"requested_bytes\":%" PRIu64, incident->requested_bytes);
	if (is_known(incident->free_bytes))
		fprintf(perfetto->out, ",\"free_bytes\":%" PRIu64, incident->free_bytes);
	fputs("}}", perfetto->out);
}

static int write_perfetto(struct export_target *target, struct rows *rows)
{
	const struct facts *facts = rows_facts(rows);
	struct perfetto perfetto = { .out = target->file, .rows = rows,
				     .start_ns = facts->processes[0].start_ns,
				     .stretch_ns = facts_duration_ns(facts) / POINTS_MOST };

	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", target->file);
	for (uint32_t p = 0; p < facts->process_count; p++)
		if (rows_want_process(rows, p))
			write_process(&perfetto, p);
	for (size_t i = 0; i < facts->incident_count; i++)
		write_incident(&perfetto, &facts->incidents[i]);
	rows_samples(rows, see_sample, &perfetto);
	rows_blocks(rows, see_block, &perfetto);
	write_levels(&perfetto);
	fprintf(target->file,
		"\n],\"otherData\":{\"exporter\":\"cuflight\",\"start_ns\":\"%" PRIu64
		"\",\"events_overwritten\":\"%" PRIu64 "\",\"small_host_blocks_without_slice\":"
		"\"%" PRIu64 "\"}}\n",
		perfetto.start_ns, facts->events_overwritten, perfetto.small_count);
	free(perfetto.series);
	return 0;
}

const struct export_format export_perfetto = {
	.name = "perfetto",
	.ending = ".trace.json",
	.about = "blocks, phases, failures and counters over time, for ui.perfetto.dev",
	.write = write_perfetto,
};
