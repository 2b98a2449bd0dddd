/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about moments: failed requests, and phases. */
#include "analysis/view/tables/tables.h"

#include "analysis/explain/cause.h"

/* ---- incidents ---- */

static const void *known_cause(const struct fields *fields, const void *object)
{
	const struct fact_incident *incident = object;

	return incident->cause && *incident->cause->name_id ? incident->cause : NULL;
}

#define OF struct fact_incident
static const struct field incident_columns[] = {
	KEY_COLUMN,
	{ "incident", NUMBER(id), .meaning = "its number, from 1, by time" },
	{ "time", TIME(time_ns), .meaning = "of its first attempt" },
	{ "time_ns", NUMBER(time_ns), .meaning = "the same in nanoseconds since 1970" },
	{ "seq", NUMBER(seq), .meaning = "of its last attempt, in the order of device events" },
	{ "outcome", NAME(outcome, outcome_words),
	  .meaning = "fatal: the process ended by it; recovered: a retry was served; handled: "
	  "the program went on; unknown" },
	{ "kind", NAME(kind, kind_words), .meaning = "of memory that was requested" },
	{ "device", DEVICE(device), .meaning = "the driver's number; null: host" },
	{ "tid", NUMBER(tid), .meaning = "thread" },
	{ "api", TEXT(api), .meaning = "function that was called" },
	{ "requested_bytes", NUMBER(requested_bytes), .meaning = "by the first attempt" },
	{ "free_bytes", NUMBER(free_bytes), .meaning = "of the device, then" },
	{ "total_bytes", NUMBER(total_bytes), .meaning = "of the device" },
	{ "attempts", NUMBER(attempt_count), .meaning = "retries included" },
	LAYER_COLUMNS(.via = 0, largest_free),
	{ "fits_if_packed", ANSWER(fits_if_packed),
	  .meaning = "free memory without gaps would have served it" },
#undef OF
#define OF struct fact_cause
	{ "cause", .base = known_cause, TEXT(name_id),
	  .meaning = "why it failed: a word of 'cuflight help causes'" },
	{ "cause_summary", .base = known_cause, TEXT(summary),
	  .meaning = "the same in one sentence with its figures" },
	{ "confidence", .base = known_cause, REAL(confidence),
	  .meaning = "of the cause, from 0 to 1" },
#undef OF
#define OF struct fact_incident
	{ "phase", TEXT(phase), .meaning = "innermost phase of the thread" },
	{ "request_id", NUMBER(request_id), .meaning = "the request that was open" },
	{ "rss_bytes", NUMBER(rss_bytes), .meaning = "resident memory, then" },
	{ "stack", STACK(stack), .meaning = "call stack of the request" },
#undef OF
};

static void write_incidents(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->facts->incident_count; i++)
		if (sheet_wants(sheet, sheet->facts->incidents[i].kind,
				sheet->facts->incidents[i].device))
			sheet_row(sheet, &sheet->facts->incidents[i]);
}

TABLE(table_incidents, "incidents", "requests that failed, each with its retries",
      incident_columns, write_incidents);

/* ---- phases ---- */

struct phase_cells { const struct fact_phase *phase; const char *sort; };
#define PHASE VIA(struct phase_cells, phase)
#define OF struct fact_phase
static const struct field phase_columns[] = {
	KEY_COLUMN,
	{ "name", PHASE, TEXT(name), .meaning = "of the phase, request or mark" },
#undef OF
#define OF struct phase_cells
	{ "sort", TEXT(sort), .meaning = "phase, request or mark" },
#undef OF
#define OF struct fact_phase
	{ "source", PHASE, NAME(source, phase_source_words),
	  .meaning = "mark: cuflight.h; nvtx; inferred: from what memory did" },
	{ "basis", PHASE, BASIS(basis), .meaning = "observed or inferred" },
	{ "tid", PHASE, POSITIVE(tid), .meaning = "thread; null: the whole process" },
	{ "depth", PHASE, NUMBER(depth), .meaning = "enclosing phases" },
	{ "begin_ns", PHASE, NUMBER(begin_ns), .meaning = "in nanoseconds since 1970" },
	{ "end_ns", PHASE, NUMBER(end_ns), .meaning = "null: open at the end" },
	{ "request_id", PHASE, NUMBER(request_id), .meaning = "of a request" },
	{ "start_bytes", PHASE, NUMBER(work.start_bytes),
	  .meaning = "of memory, before its first event" },
	{ "floor_bytes", PHASE, NUMBER(work.floor_bytes), .meaning = "the least during it" },
	{ "peak_bytes", PHASE, NUMBER(work.peak_bytes), .meaning = "the most during it" },
	{ "end_bytes", PHASE, NUMBER(work.end_bytes), .meaning = "at its end" },
#undef OF
};

static const char *sort_of(const struct fact_phase *phase)
{
	if (phase->is_mark)
		return "mark";
	return phase->is_request ? "request" : "phase";
}

static void write_phases(struct sheet *sheet)
{
	const struct fact_process *process = sheet_process(sheet);

	for (size_t i = 0; i < process->phase_count; i++)
		sheet_row(sheet, &(struct phase_cells){ &process->phases[i],
							sort_of(&process->phases[i]) });
}

TABLE(table_phases, "phases", "phases, requests and marks of the program", phase_columns,
      write_phases);
