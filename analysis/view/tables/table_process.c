/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about a process as a whole: itself, what was not seen of it, its memory over time. */
#include "analysis/view/tables/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/key_values.h"
#include "analysis/base/numbers.h"
#include "analysis/facts/cause.h"
#include "analysis/facts/kinds.h"
#include "analysis/view/tables/process_key.h"

/* ---- processes ---- */

struct process_cells {
	struct fact_process process;
	struct process_key key;
	const char *framework;
	char version[64], build_id[64];
	struct fact_cause cause; /* confidence NAN: nothing wrong was found */
	const char *fix;
	bool is_complete;
};

#define OF struct process_cells
static const struct field process_columns[] = {
	KEY_COLUMN,
	{ "date", TEXT_HERE(key.date),
	  .meaning = "day of the start, in UTC (in Parquet a part of the path)" },
	{ "host", TEXT(process.hostname),
	  .meaning = "name of the machine (in Parquet a part of the path)" },
	{ "program", TEXT_HERE(key.program),
	  .meaning = "what people call it: the script of an interpreter, else the executable's "
	  "name (in Parquet a part of the path)" },
	{ "pid", NUMBER(process.pid), .meaning = "process id" },
	{ "ppid", NUMBER(process.ppid), .meaning = "process id of the parent" },
	{ "rank", TEXT(process.rank),
	  .meaning = "as the launcher of a distributed run numbered it" },
	{ "executable", TEXT(process.exe), .meaning = "path of the program" },
	{ "command_line", TEXT(process.cmdline), .meaning = "its words, secrets redacted" },
	{ "model", WORD_HERE(key.model), .meaning = "the model that the command line names" },
	{ "framework", WORD(framework), .meaning = "engine or framework that was recognised" },
	{ "framework_version", WORD_HERE(version),
	  .meaning = "version of the framework that reports its blocks" },
	{ "build_id", WORD_HERE(build_id), .meaning = "of the executable: tells builds apart" },
	{ "recording", TEXT(process.path),
	  .meaning = "path of the recording, as it was read" },
	{ "started", TIME(process.start_ns), .meaning = "when the recorder started" },
	{ "ended", TIME(process.end_ns), .meaning = "the end, or the last thing recorded" },
	{ "start_ns", NUMBER(process.start_ns),
	  .meaning = "started, in nanoseconds since 1970" },
	{ "end_ns", NUMBER(process.end_ns), .meaning = "ended, in nanoseconds since 1970" },
	{ "end_state", NAME(process.end, end_words),
	  .meaning = "running, exit, signal, killed, oom_killed, exec or unknown" },
	{ "end_status", NUMBER(process.end_status),
	  .meaning = "exit status, or number of the signal" },
	{ "cause", TEXT(cause.name_id),
	  .meaning = "why memory ran out, or what grows: a word of 'cuflight help causes'; "
	  "null: nothing wrong was found" },
	{ "cause_summary", TEXT(cause.summary),
	  .meaning = "the same in one sentence with its figures" },
	{ "confidence", REAL(cause.confidence),
	  .meaning = "of the cause, from 0 to 1; high from 0.8, medium from 0.5" },
	{ "fix", TEXT(fix), .meaning = "the first thing to change" },
	{ "fatal_incident", POSITIVE(process.fatal_incident),
	  .meaning = "number of the failed request that ended it" },
	{ "driver_version", POSITIVE(process.driver_version),
	  .meaning = "of the CUDA driver: 13000 is 13.0" },
	{ "host_mode", NUMBER(process.host_mode),
	  .meaning = "what is recorded of malloc: 0 nothing, 1 a sample, 2 all" },
	{ "events_recorded", NUMBER(process.events_recorded),
	  .meaning = "events that were counted" },
	{ "events_overwritten", NUMBER(process.events_overwritten),
	  .meaning = "of those, no longer in the recording" },
	{ "events_lost", NUMBER(process.events_lost),
	  .meaning = "events that no table had room for" },
	{ "is_complete", FLAG(is_complete), .meaning = "nothing is cut, overwritten or lost" },
	{ "held_bytes", NUMBER(process.held_bytes),
	  .meaning = "device memory at its first failure, else its peak" },
	{ "rss_bytes", NUMBER(process.host.rss_bytes),
	  .meaning = "resident memory at the moment" },
	{ "rss_peak_bytes", NUMBER(process.host.rss_peak_bytes),
	  .meaning = "the most resident memory" },
	{ "malloc_live_bytes", NUMBER(process.host.malloc_live_bytes),
	  .meaning = "live blocks of malloc and maps; an estimate where it was sampled" },
	{ "python_live_bytes", NUMBER(process.host.python_live_bytes),
	  .meaning = "live objects of CPython's own allocator" },
	{ "pinned_bytes", NUMBER(process.host.pinned_bytes),
	  .meaning = "live page-locked memory" },
	{ "cgroup_bytes", NUMBER(process.host.cgroup_bytes),
	  .meaning = "memory of the container" },
	{ "cgroup_max_bytes", NUMBER(process.host.cgroup_max_bytes), .meaning = "its limit" },
	{ "memory_total_bytes", NUMBER(process.host.memory_total_bytes),
	  .meaning = "of the machine" },
};
#undef OF

/* What a framework told of itself; later lines win. "" when none did. */
static void framework_told(const struct fact_process *process, const char *key, char *out,
			   size_t bytes)
{
	*out = 0;
	for (size_t i = 0; i < process->text_count; i++) {
		size_t length;
		const char *value;

		if (process->texts[i].type != CUF_META_FRAMEWORK)
			continue;
		value = key_value(process->texts[i].text, key, &length);
		if (value && length)
			snprintf(out, bytes, "%.*s", (int)length, value);
	}
}

static void build_id_of(const struct fact_process *process, char *out, size_t bytes)
{
	*out = 0;
	for (size_t m = 0; m < process->module_count; m++) {
		const struct fact_module *module = &process->modules[m];

		if (strcmp(module->path, process->exe) != 0)
			continue;
		for (size_t i = 0; i < least_of(module->build_id_bytes, sizeof module->build_id);
		     i++)
			snprintf(out + 2 * i, bytes - 2 * i, "%02x", module->build_id[i]);
		return;
	}
}

static void write_process(struct sheet *sheet)
{
	const struct fact_process *process = sheet_process(sheet);
	const struct fact_cause *cause = sheet->facts->cause;
	struct process_cells cells = { .process = *process, .framework = process->framework,
				       .cause.confidence = NAN,
				       .is_complete = sheet->facts->coverage.complete };
	char told[64];

	process_key_of(process, &cells.key);
	framework_told(process, "framework", told, sizeof told);
	framework_told(process, "version", cells.version, sizeof cells.version);
	build_id_of(process, cells.build_id, sizeof cells.build_id);
	if (!cells.framework)
		cells.framework = told;
	if (cause && *cause->name_id) {
		cells.cause = *cause;
		cells.fix = cause->fix_count ? cause->fixes[0].text : NULL;
	}
	sheet_row(sheet, &cells);
}

TABLE(table_processes, "processes", "the recorded processes, one row each", process_columns,
      write_process);

/* ---- coverage ---- */

struct coverage_cells { const char *sort, *text; uint64_t count; };
#define OF struct coverage_cells
static const struct field coverage_columns[] = {
	KEY_COLUMN,
	{ "sort", TEXT(sort),
	  .meaning = "hooked: a function that was seen; unhooked: one like an allocator that is "
	  "not; static_cudart: a file with a CUDA runtime of its own; lost: a table that "
	  "overflowed; blind: what was not seen" },
	{ "text", TEXT(text), .meaning = "a name or a sentence" },
	{ "count", NUMBER(count), .meaning = "of what was lost" },
};
#undef OF

static void add_coverage(struct sheet *sheet, const char *sort, const char *text, uint64_t count)
{
	sheet_row(sheet, &(struct coverage_cells){ sort, text, count });
}

static void write_coverage(struct sheet *sheet)
{
	const struct fact_coverage *coverage = &sheet->facts->coverage;

	for (size_t i = 0; i < coverage->hooked_count; i++)
		add_coverage(sheet, "hooked", coverage->hooked[i], CUF_UNKNOWN);
	for (size_t i = 0; i < coverage->unhooked_count; i++)
		add_coverage(sheet, "unhooked", coverage->unhooked[i], CUF_UNKNOWN);
	for (size_t i = 0; i < coverage->static_cudart_count; i++)
		add_coverage(sheet, "static_cudart", coverage->static_cudart[i], CUF_UNKNOWN);
	for (size_t i = 0; i < coverage->lost_count; i++)
		add_coverage(sheet, "lost", coverage->lost[i].what, coverage->lost[i].count);
	for (size_t i = 0; i < coverage->blind_count; i++)
		add_coverage(sheet, "blind", coverage->blind[i].text, CUF_UNKNOWN);
}

TABLE(table_coverage, "coverage", "what the recorder saw and what it did not see",
      coverage_columns, write_coverage);

/* ---- counters ---- */

#define OF struct sample_row
static const struct field counter_columns[] = {
	KEY_COLUMN,
	{ "time_ns", NUMBER(time_ns), .meaning = "when it was sampled, in nanoseconds since 1970" },
	{ "counter", TEXT(name),
	  .meaning = "rss_bytes, host_live_bytes and others of the process; device_live_bytes "
	  "and device_free_bytes of a device" },
	{ "device", DEVICE(device), .meaning = "the driver's number; null: of the process" },
	{ "bytes", NUMBER(bytes), .meaning = "its value" },
};
#undef OF

static void write_sample(void *context, const struct sample_row *sample)
{
	sheet_row(context, sample);
}

static void write_counters(struct sheet *sheet)
{
	rows_samples(sheet->rows, write_sample, sheet);
}

TABLE(table_counters, "counters", "memory over time, as the recorder sampled it", counter_columns,
      write_counters);
