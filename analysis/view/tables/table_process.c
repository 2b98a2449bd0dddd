/* SPDX-License-Identifier: Apache-2.0 */
/* Tables about a process as a whole: itself, what was not seen of it, its memory over time. */
#include "analysis/view/tables/tables.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "analysis/base/key_values.h"
#include "analysis/base/numbers.h"
#include "analysis/explain/cause.h"
#include "analysis/view/tables/process_key.h"

/* ---- processes ---- */

static const struct column process_columns[] = {
	KEY_COLUMN,
	{ "date", COLUMN_TEXT, "day of the start, in UTC (in Parquet a part of the path)" },
	{ "host", COLUMN_TEXT, "name of the machine (in Parquet a part of the path)" },
	{ "program", COLUMN_TEXT, "what people call it: the script of an interpreter, else the "
				  "executable's name (in Parquet a part of the path)" },
	{ "pid", COLUMN_INTEGER, "process id" },
	{ "ppid", COLUMN_INTEGER, "process id of the parent" },
	{ "rank", COLUMN_TEXT, "as the launcher of a distributed run numbered it" },
	{ "executable", COLUMN_TEXT, "path of the program" },
	{ "command_line", COLUMN_TEXT, "its words, secrets redacted" },
	{ "model", COLUMN_TEXT, "the model that the command line names" },
	{ "framework", COLUMN_TEXT, "engine or framework that was recognised" },
	{ "framework_version", COLUMN_TEXT, "version of the framework that reports its blocks" },
	{ "build_id", COLUMN_TEXT, "of the executable: tells builds apart" },
	{ "recording", COLUMN_TEXT, "path of the recording, as it was read" },
	{ "started", COLUMN_TIME, "when the recorder started" },
	{ "ended", COLUMN_TIME, "the end, or the last thing recorded" },
	{ "start_ns", COLUMN_INTEGER, "started, in nanoseconds since 1970" },
	{ "end_ns", COLUMN_INTEGER, "ended, in nanoseconds since 1970" },
	{ "end_state", COLUMN_TEXT, "running, exit, signal, killed, oom_killed, exec or unknown" },
	{ "end_status", COLUMN_INTEGER, "exit status, or number of the signal" },
	{ "cause", COLUMN_TEXT, "why memory ran out, or what grows: a word of "
				"'cuflight help causes'; null: nothing wrong was found" },
	{ "cause_summary", COLUMN_TEXT, "the same in one sentence with its figures" },
	{ "confidence", COLUMN_REAL, "of the cause, from 0 to 1; high from 0.8, medium from 0.5" },
	{ "fix", COLUMN_TEXT, "the first thing to change" },
	{ "fatal_incident", COLUMN_INTEGER, "number of the failed request that ended it" },
	{ "driver_version", COLUMN_INTEGER, "of the CUDA driver: 13000 is 13.0" },
	{ "host_mode", COLUMN_INTEGER, "what is recorded of malloc: 0 nothing, 1 a sample, 2 all" },
	{ "events_recorded", COLUMN_INTEGER, "events that were counted" },
	{ "events_overwritten", COLUMN_INTEGER, "of those, no longer in the recording" },
	{ "events_lost", COLUMN_INTEGER, "events that no table had room for" },
	{ "is_complete", COLUMN_BOOLEAN, "nothing is cut, overwritten or lost" },
	{ "held_bytes", COLUMN_INTEGER, "device memory at its first failure, else its peak" },
	{ "rss_bytes", COLUMN_INTEGER, "resident memory at the moment" },
	{ "rss_peak_bytes", COLUMN_INTEGER, "the most resident memory" },
	{ "malloc_live_bytes", COLUMN_INTEGER, "live blocks of malloc and maps; an estimate "
					       "where it was sampled" },
	{ "python_live_bytes", COLUMN_INTEGER, "live objects of CPython's own allocator" },
	{ "pinned_bytes", COLUMN_INTEGER, "live page-locked memory" },
	{ "cgroup_bytes", COLUMN_INTEGER, "memory of the container" },
	{ "cgroup_max_bytes", COLUMN_INTEGER, "its limit" },
	{ "memory_total_bytes", COLUMN_INTEGER, "of the machine" },
};

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

static void add_identity(struct sheet *sheet, const struct fact_process *process)
{
	char told[64], version[64], build_id[64];
	struct process_key key;

	process_key_of(process, &key);
	framework_told(process, "framework", told, sizeof told);
	framework_told(process, "version", version, sizeof version);
	build_id_of(process, build_id, sizeof build_id);
	cell_text(sheet, key.date);
	cell_text(sheet, process->hostname);
	cell_text(sheet, key.program);
	cell_number(sheet, process->pid);
	cell_number(sheet, process->ppid);
	cell_text(sheet, process->rank);
	cell_text(sheet, process->exe);
	cell_text(sheet, process->cmdline);
	cell_word(sheet, key.model);
	cell_word(sheet, process->framework ? process->framework : told);
	cell_word(sheet, version);
	cell_word(sheet, build_id);
	cell_text(sheet, process->path);
}

static void add_end(struct sheet *sheet, const struct fact_process *process)
{
	const struct fact_cause *cause = sheet->facts->cause;
	bool known = cause && *cause->name_id;

	cell_time(sheet, process->start_ns);
	cell_time(sheet, process->end_ns);
	cell_number(sheet, process->start_ns);
	cell_number(sheet, process->end_ns);
	cell_text(sheet, end_names[process->end]);
	cell_number(sheet, process->end_status);
	cell_text(sheet, known ? cause->name_id : NULL);
	cell_text(sheet, known ? cause->summary : NULL);
	cell_real(sheet, known ? cause->confidence : NAN);
	cell_text(sheet, known && cause->fix_count ? cause->fixes[0].text : NULL);
	cell_positive(sheet, process->fatal_incident);
}

static void write_process(struct sheet *sheet)
{
	const struct fact_process *process = sheet_process(sheet);
	const struct fact_host *host = &process->host;

	sheet_begin(sheet);
	add_identity(sheet, process);
	add_end(sheet, process);
	cell_positive(sheet, process->driver_version);
	cell_number(sheet, process->host_mode);
	cell_number(sheet, process->events_recorded);
	cell_number(sheet, process->events_overwritten);
	cell_number(sheet, process->events_lost);
	cell_flag(sheet, sheet->facts->coverage.complete);
	cell_number(sheet, process->held_bytes);
	cell_number(sheet, host->rss_bytes);
	cell_number(sheet, host->rss_peak_bytes);
	cell_number(sheet, host->malloc_live_bytes);
	cell_number(sheet, host->python_live_bytes);
	cell_number(sheet, host->pinned_bytes);
	cell_number(sheet, host->cgroup_bytes);
	cell_number(sheet, host->cgroup_max_bytes);
	cell_number(sheet, host->memory_total_bytes);
	sheet_end(sheet);
}

TABLE(table_processes, "processes", "the recorded processes, one row each", process_columns,
      write_process);

/* ---- coverage ---- */

static const struct column coverage_columns[] = {
	KEY_COLUMN,
	{ "sort", COLUMN_TEXT, "hooked: a function that was seen; unhooked: one like an allocator "
			       "that is not; static_cudart: a file with a CUDA runtime of its own; "
			       "lost: a table that overflowed; blind: what was not seen" },
	{ "text", COLUMN_TEXT, "a name or a sentence" },
	{ "count", COLUMN_INTEGER, "of what was lost" },
};

static void add_coverage(struct sheet *sheet, const char *sort, const char *text, uint64_t count)
{
	sheet_begin(sheet);
	cell_text(sheet, sort);
	cell_text(sheet, text);
	cell_number(sheet, count);
	sheet_end(sheet);
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

static const struct column counter_columns[] = {
	KEY_COLUMN,
	{ "time_ns", COLUMN_INTEGER, "when it was sampled, in nanoseconds since 1970" },
	{ "counter", COLUMN_TEXT, "rss_bytes, host_live_bytes and others of the process; "
				  "device_live_bytes and device_free_bytes of a device" },
	{ "device", COLUMN_INTEGER, "the driver's number; null: of the process" },
	{ "bytes", COLUMN_INTEGER, "its value" },
};

static void write_sample(void *context, const struct sample_row *sample)
{
	struct sheet *sheet = context;

	sheet_begin(sheet);
	cell_number(sheet, sample->time_ns);
	cell_text(sheet, sample->name);
	cell_device(sheet, sample->device);
	cell_number(sheet, sample->bytes);
	sheet_end(sheet);
}

static void write_counters(struct sheet *sheet)
{
	rows_samples(sheet->rows, write_sample, sheet);
}

TABLE(table_counters, "counters", "memory over time, as the recorder sampled it", counter_columns,
      write_counters);
