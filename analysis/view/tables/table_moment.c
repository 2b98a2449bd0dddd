/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about moments: failed requests, and phases. */
#include "analysis/view/tables/tables.h"

#include <math.h>
#include "analysis/explain/cause.h"
#include "analysis/view/kinds.h"

/* ---- incidents ---- */

static const struct column incident_columns[] = {
	KEY_COLUMN,
	{ "incident", COLUMN_INTEGER, "its number, from 1, by time" },
	{ "time", COLUMN_TIME, "of its first attempt" },
	{ "time_ns", COLUMN_INTEGER, "the same in nanoseconds since 1970" },
	{ "seq", COLUMN_INTEGER, "of its last attempt, in the order of device events" },
	{ "outcome", COLUMN_TEXT, "fatal: the process ended by it; recovered: a retry was served; "
				  "handled: the program went on; unknown" },
	{ "kind", COLUMN_TEXT, "of memory that was requested" },
	{ "device", COLUMN_INTEGER, "the driver's number; null: host" },
	{ "tid", COLUMN_INTEGER, "thread" },
	{ "api", COLUMN_TEXT, "function that was called" },
	{ "requested_bytes", COLUMN_INTEGER, "by the first attempt" },
	{ "free_bytes", COLUMN_INTEGER, "of the device, then" },
	{ "total_bytes", COLUMN_INTEGER, "of the device" },
	{ "attempts", COLUMN_INTEGER, "retries included" },
	{ "device_upper_bound_bytes", COLUMN_INTEGER, "free bytes: no request can be larger" },
	{ "measured_bytes", COLUMN_INTEGER, "largest request that succeeded when it was probed" },
	{ "page_hole_bytes", COLUMN_INTEGER, "largest free range inside 2 MiB pages" },
	{ "pool_bytes", COLUMN_INTEGER, "largest gap between live blocks of one pool" },
	{ "vmm_bytes", COLUMN_INTEGER, "largest unmapped run of one reservation" },
	{ "segment_bytes", COLUMN_INTEGER, "largest hole inside a framework's segment" },
	{ "host_bytes", COLUMN_INTEGER, "largest free extent of the host's allocator" },
	{ "fits_if_packed", COLUMN_BOOLEAN, "free memory without gaps would have served it" },
	{ "cause", COLUMN_TEXT, "why it failed: a word of 'cuflight help causes'" },
	{ "cause_summary", COLUMN_TEXT, "the same in one sentence with its figures" },
	{ "confidence", COLUMN_REAL, "of the cause, from 0 to 1" },
	{ "phase", COLUMN_TEXT, "innermost phase of the thread" },
	{ "request_id", COLUMN_INTEGER, "the request that was open" },
	{ "rss_bytes", COLUMN_INTEGER, "resident memory, then" },
	{ "stack", COLUMN_INTEGER, "call stack of the request" },
};

static void write_incident(struct sheet *sheet, const struct fact_incident *incident)
{
	const struct fact_cause *cause = incident->cause;
	bool known = cause && *cause->name_id;

	sheet_begin(sheet);
	cell_number(sheet, incident->id);
	cell_time(sheet, incident->time_ns);
	cell_number(sheet, incident->time_ns);
	cell_number(sheet, incident->seq);
	cell_text(sheet, outcome_names[incident->outcome]);
	cell_text(sheet, kind_name(incident->kind));
	cell_device(sheet, incident->device);
	cell_number(sheet, incident->tid);
	cell_text(sheet, incident->api);
	cell_number(sheet, incident->requested_bytes);
	cell_number(sheet, incident->free_bytes);
	cell_number(sheet, incident->total_bytes);
	cell_number(sheet, incident->attempt_count);
	for (size_t i = 0; i < LAYER_MAX; i++)
		cell_number(sheet, incident->largest_free[i].bytes);
	if (incident->fits_if_packed == FACT_CANNOT_TELL)
		cell_null(sheet);
	else
		cell_flag(sheet, incident->fits_if_packed == FACT_YES);
	cell_text(sheet, known ? cause->name_id : NULL);
	cell_text(sheet, known ? cause->summary : NULL);
	cell_real(sheet, known ? cause->confidence : NAN);
	cell_text(sheet, incident->phase);
	cell_number(sheet, incident->request_id);
	cell_number(sheet, incident->rss_bytes);
	cell_stack(sheet, &incident->stack);
	sheet_end(sheet);
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

static const struct column phase_columns[] = {
	KEY_COLUMN,
	{ "name", COLUMN_TEXT, "of the phase, request or mark" },
	{ "sort", COLUMN_TEXT, "phase, request or mark" },
	{ "source", COLUMN_TEXT, "mark: cuflight.h; nvtx; inferred: from what memory did" },
	{ "basis", COLUMN_TEXT, "observed or inferred" },
	{ "tid", COLUMN_INTEGER, "thread; null: the whole process" },
	{ "depth", COLUMN_INTEGER, "enclosing phases" },
	{ "begin_ns", COLUMN_INTEGER, "in nanoseconds since 1970" },
	{ "end_ns", COLUMN_INTEGER, "null: open at the end" },
	{ "request_id", COLUMN_INTEGER, "of a request" },
	{ "start_bytes", COLUMN_INTEGER, "of memory, before its first event" },
	{ "floor_bytes", COLUMN_INTEGER, "the least during it" },
	{ "peak_bytes", COLUMN_INTEGER, "the most during it" },
	{ "end_bytes", COLUMN_INTEGER, "at its end" },
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

	for (size_t i = 0; i < process->phase_count; i++) {
		const struct fact_phase *phase = &process->phases[i];

		sheet_begin(sheet);
		cell_text(sheet, phase->name);
		cell_text(sheet, sort_of(phase));
		cell_text(sheet, phase_source_names[phase->source]);
		cell_word(sheet, basis_names[phase->basis]);
		cell_positive(sheet, phase->tid);
		cell_number(sheet, phase->depth);
		cell_number(sheet, phase->begin_ns);
		cell_number(sheet, phase->end_ns);
		cell_number(sheet, phase->request_id);
		cell_number(sheet, phase->work.start_bytes);
		cell_number(sheet, phase->work.floor_bytes);
		cell_number(sheet, phase->work.peak_bytes);
		cell_number(sheet, phase->work.end_bytes);
		sheet_end(sheet);
	}
}

TABLE(table_phases, "phases", "phases, requests and marks of the program", phase_columns,
      write_phases);
