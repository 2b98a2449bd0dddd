/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about moments: failed requests, and phases. */
#include "analysis/view/tables/tables.h"

#include <math.h>
#include "analysis/facts/cause.h"

/* ---- incidents ---- */

struct incident_cells { struct fact_incident incident; struct fact_cause cause; };
#define OF struct incident_cells
static const struct field incident_columns[] = {
	KEY_COLUMN,
	{ "incident", NUMBER(incident.id), .meaning = "its number, from 1, by time" },
	{ "time", TIME(incident.time_ns), .meaning = "of its first attempt" },
	{ "time_ns", NUMBER(incident.time_ns), .meaning = "the same in nanoseconds since 1970" },
	{ "seq", NUMBER(incident.seq),
	  .meaning = "of its last attempt, in the order of device events" },
	{ "outcome", NAME(incident.outcome, outcome_words),
	  .meaning = "fatal: the process ended by it; recovered: a retry was served; handled: "
	  "the program went on; unknown" },
	{ "kind", NAME(incident.kind, kind_words), .meaning = "of memory that was requested" },
	{ "device", DEVICE(incident.device), .meaning = "the driver's number; null: host" },
	{ "tid", NUMBER(incident.tid), .meaning = "thread" },
	{ "api", TEXT(incident.api), .meaning = "function that was called" },
	{ "requested_bytes", NUMBER(incident.requested_bytes), .meaning = "by the first attempt" },
	{ "free_bytes", NUMBER(incident.free_bytes), .meaning = "of the device, then" },
	{ "total_bytes", NUMBER(incident.total_bytes), .meaning = "of the device" },
	{ "attempts", NUMBER(incident.attempt_count), .meaning = "retries included" },
	LAYER_COLUMNS(incident.largest_free),
	{ "fits_if_packed", ANSWER(incident.fits_if_packed),
	  .meaning = "free memory without gaps would have served it" },
	{ "cause", TEXT(cause.name_id),
	  .meaning = "why it failed: a word of 'cuflight help causes'" },
	{ "cause_summary", TEXT(cause.summary),
	  .meaning = "the same in one sentence with its figures" },
	{ "confidence", REAL(cause.confidence),
	  .meaning = "of the cause, from 0 to 1" },
	{ "phase", TEXT(incident.phase), .meaning = "innermost phase of the thread" },
	{ "request_id", NUMBER(incident.request_id), .meaning = "the request that was open" },
	{ "rss_bytes", NUMBER(incident.rss_bytes), .meaning = "resident memory, then" },
	{ "stack", STACK(incident.stack), .meaning = "call stack of the request" },
};
#undef OF

static void write_incident(struct sheet *sheet, const struct fact_incident *incident)
{
	const struct fact_cause *cause = incident->cause;
	struct incident_cells cells = { *incident, { .confidence = NAN } };

	if (cause && *cause->name_id)
		cells.cause = *cause;
	sheet_row(sheet, &cells);
}

static void write_incidents(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->facts->incident_count; i++)
		if (sheet_wants(sheet, sheet->facts->incidents[i].kind,
				sheet->facts->incidents[i].device))
			write_incident(sheet, &sheet->facts->incidents[i]);
}

TABLE(table_incidents, "incidents", "requests that failed, each with its retries",
      incident_columns, write_incidents);

/* ---- phases ---- */

struct phase_cells { struct fact_phase phase; const char *sort; };
#define OF struct phase_cells
static const struct field phase_columns[] = {
	KEY_COLUMN,
	{ "name", TEXT(phase.name), .meaning = "of the phase, request or mark" },
	{ "sort", TEXT(sort), .meaning = "phase, request or mark" },
	{ "source", NAME(phase.source, phase_source_words),
	  .meaning = "mark: cuflight.h; nvtx; inferred: from what memory did" },
	{ "basis", BASIS(phase.basis), .meaning = "observed or inferred" },
	{ "tid", POSITIVE(phase.tid), .meaning = "thread; null: the whole process" },
	{ "depth", NUMBER(phase.depth), .meaning = "enclosing phases" },
	{ "begin_ns", NUMBER(phase.begin_ns), .meaning = "in nanoseconds since 1970" },
	{ "end_ns", NUMBER(phase.end_ns), .meaning = "null: open at the end" },
	{ "request_id", NUMBER(phase.request_id), .meaning = "of a request" },
	{ "start_bytes", NUMBER(phase.work.start_bytes),
	  .meaning = "of memory, before its first event" },
	{ "floor_bytes", NUMBER(phase.work.floor_bytes), .meaning = "the least during it" },
	{ "peak_bytes", NUMBER(phase.work.peak_bytes), .meaning = "the most during it" },
	{ "end_bytes", NUMBER(phase.work.end_bytes), .meaning = "at its end" },
};
#undef OF

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
		sheet_row(sheet, &(struct phase_cells){ process->phases[i],
							sort_of(&process->phases[i]) });
}

TABLE(table_phases, "phases", "phases, requests and marks of the program", phase_columns,
      write_phases);
