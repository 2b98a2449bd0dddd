/* SPDX-License-Identifier: Apache-2.0 */
/* One object a run; keys as in the report where they mean the same. */
#include "analysis/view/runs/runs_json.h"

#include <json-c/json.h>
#include "analysis/base/program_name.h"
#include "analysis/explain/cause.h"
#include "analysis/facts/totals.h"
#include "analysis/view/json/json_parts.h"

enum { FORMAT = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE };

static void print_object(FILE *out, struct json_object *object)
{
	fputs(json_object_to_json_string_ext(object, FORMAT), out);
	json_object_put(object);
}

void runs_json_begin(FILE *out, const char *directory)
{
	fputs("{\"schema\":\"cuflight.list/1\",\"directory\":", out);
	print_object(out, json_text(directory));
	fputs(",\"runs\":[", out);
}

static struct json_object *cause_object(const struct fact_cause *cause)
{
	struct json_object *object;

	if (!cause || !*cause->id)
		return NULL;
	object = json_object_new_object();
	json_add_text(object, "id", cause->id);
	json_add_text(object, "name_id", cause->name_id);
	json_add_text(object, "name", cause->name);
	json_add_text(object, "summary", cause->summary);
	json_add_double(object, "confidence", cause->confidence);
	return object;
}

static struct json_object *files_of(const struct facts *facts)
{
	struct json_object *files = json_object_new_array();

	for (size_t i = 0; i < facts->process_count; i++)
		json_object_array_add(files, json_text(facts->processes[i].path));
	return files;
}

void runs_json_row(FILE *out, const struct facts *facts, bool first)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	struct json_object *object = json_object_new_object();
	char program[96];

	program_name(process->exe, process->cmdline, program, sizeof program);
	json_add_number(object, "run", facts->run_number);
	json_add_number(object, "start_ns", facts->processes[0].start_ns);
	json_add_number(object, "duration_ns", facts_duration_ns(facts));
	json_add_text(object, "program", program);
	json_add_number(object, "pid", process->pid);
	json_add_text(object, "end_state", end_names[process->end]);
	json_add_number(object, "end_status", process->end_status);
	json_add_number(object, "processes", facts->process_count);
	json_add_number(object, "failed_requests", facts->incident_count);
	json_add_number(object, "device_peak_bytes", facts_device_peak(facts));
	json_add_number(object, "host_peak_bytes", facts_host_peak(facts));
	json_add(object, "cause", cause_object(facts->cause));
	json_add(object, "files", files_of(facts));
	fputs(first ? "\n" : ",\n", out);
	print_object(out, object);
}

void runs_json_end(FILE *out)
{
	fputs("\n]}\n", out);
}
