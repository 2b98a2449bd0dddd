/* SPDX-License-Identifier: Apache-2.0 */
/* What the report is about: names, focus, the table of holders, processes, devices. */
#include "analysis/view/html/data.h"

#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/view/focus.h"
#include "analysis/view/json/json_parts.h"
#include "analysis/view/kinds.h"
#include "analysis/view/text/holders.h"
#include "analysis/view/text/screen.h"

enum { TEXTS_MOST = 256 };

static struct json_object *words(const char *const *items, size_t count)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < count; i++)
		json_object_array_add(array, json_text(items[i]));
	return array;
}

struct json_object *data_names(void)
{
	static const char *const layers[] = { "device", "framework", "host" },
				 *const languages[] = { "native", "python" },
				 *const moments[TIMELINE_MOMENT_KINDS] = { "sample", "incident",
									   "peak", "end", "at" };
	struct json_object *object = json_object_new_object(), *kinds = json_object_new_array(),
			   *lanes = words(phase_source_names, PHASE_SOURCE_MAX),
			   *kind_words = json_object_new_array(),
			   *trends = json_object_new_array(), *roles = json_object_new_object();
	const char *role, *word;

	for (uint32_t kind = 0; kind < CUF_KIND_MAX; kind++) {
		json_object_array_add(kinds, json_text(kind_name(kind)));
		json_object_array_add(kind_words, json_text(kind_word(kind)));
	}
	for (unsigned shape = 0; shape < SHAPE_MAX; shape++)
		json_object_array_add(trends, json_text(shape_word(shape)));
	for (size_t i = 0; role_word_at(i, &role, &word); i++)
		json_add_text(roles, role, word);
	json_object_array_add(lanes, json_text("capture"));
	json_add(object, "kind", kinds);
	json_add(object, "class", words(class_names, CLASS_MAX));
	json_add(object, "shape", words(shape_names, SHAPE_MAX));
	json_add(object, "outcome", words(outcome_names, OUTCOME_MAX));
	json_add(object, "layer", words(layers, TIMELINE_LAYERS));
	json_add(object, "language", words(languages, 2));
	json_add(object, "moment", words(moments, TIMELINE_MOMENT_KINDS));
	json_add(object, "lane", lanes);
	json_add(object, "kind_word", kind_words);
	json_add(object, "trend", trends);
	json_add(object, "role_word", roles);
	return object;
}

struct json_object *data_focus(const struct data *data)
{
	const struct facts *facts = data->facts;
	const struct fact_device *device = focus_device(facts);
	const struct fact_incident *incident = focus_incident(facts);
	struct json_object *object = json_object_new_object();

	json_add_index(object, "process", (uint32_t)(focus_process(facts) - facts->processes));
	json_add_index(object, "device",
		       device ? (uint32_t)(device - facts->devices) : FACT_NONE);
	json_add(object, "incident", NULL);
	if (incident) { /* the list has the last ones */
		size_t all = facts->incident_count, at = (size_t)(incident - facts->incidents),
		       first = all - least_of(all, data->rows);
		if (at >= first)
			json_add_index(object, "incident", (uint32_t)(at - first));
	}
	json_add_bool(object, "is_host", focus_is_host(facts));
	return object;
}

/* ---- holders ---- */

static struct json_object *holder_json(const struct holder *row, uint64_t total_bytes)
{
	static const char *const sorts[] = { "site", "part", "free", "outside" };
	struct json_object *object = json_object_new_object();
	bool is_site = row->sort == HOLDER_SITE;

	json_add_text(object, "sort", sorts[row->sort]);
	json_add_text(object, "label", is_site ? row->place.function : row->words);
	json_add_word(object, "file", is_site ? row->place.file : NULL);
	json_add_positive(object, "line", is_site ? row->place.line : 0);
	json_add_word(object, "callers", is_site ? row->place.callers : NULL);
	json_add_text(object, "role", row->role);
	json_add_bool(object, "role_is_likely", row->role_is_likely);
	json_add_bool(object, "leaks", row->leaks);
	json_add_bool(object, "suspect", row->suspect);
	json_add_bool(object, "sampled", row->sampled);
	json_add_word(object, "trend", shape_names[row->shape]);
	json_add_text(object, "trend_word", holder_trend(row));
	json_add_number(object, "bytes", row->bytes);
	json_add_number(object, "count", row->count);
	json_add(object, "share", NULL);
	if (is_known(total_bytes) && is_known(row->bytes) && total_bytes)
		json_add_double(object, "share", (double)row->bytes / (double)total_bytes);
	return object;
}

struct json_object *data_holders(const struct data *data)
{
	struct json_object *object, *rows = json_object_new_array();
	struct holders holders;

	screen_holders(data->text, &holders);
	object = json_object_new_object();
	json_add_text(object, "title", holders.title);
	json_add_number(object, "total_bytes", holders.total_bytes);
	for (size_t i = 0; i < holders.count && i < JSON_ROWS_MAX; i++)
		json_object_array_add(rows, holder_json(&holders.rows[i], holders.total_bytes));
	json_add(object, "rows", rows);
	holders_free(&holders);
	return object;
}

/* ---- processes ---- */

/* What the recording keeps of the environment, and its notes: pairs of a name and a text. */
static struct json_object *environment(const struct fact_process *process)
{
	struct json_object *array = json_object_new_array();
	size_t count = 0;

	for (size_t i = 0; i < process->text_count && count < TEXTS_MOST; i++) {
		const struct fact_meta_text *text = &process->texts[i];
		struct json_object *pair;
		const char *value = strchr(text->text, '=');
		char name[128];
		if (text->type != CUF_META_ENV || !value)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)least_of((uint64_t)(value - text->text),
								  sizeof name - 1), text->text);
		pair = json_object_new_array();
		json_object_array_add(pair, json_text(name));
		json_object_array_add(pair, json_text(value + 1));
		json_object_array_add(array, pair);
		count++;
	}
	return array;
}

static void add_ending(const struct data *data, struct json_object *object, uint32_t p)
{
	const struct facts *facts = data->facts;
	const struct fact_process *process = &facts->processes[p];
	char ending[160];

	text_ending(process, ending, sizeof ending);
	json_add(object, "start", data_json_time(data, process->start_ns));
	json_add(object, "end", data_json_time(data, process->end_ns));
	json_add_text(object, "end_text", ending);
	json_add_bool(object, "focus", p == facts->focus);
	json_add_bool(object, "outlier", p == facts->group.outlier);
	json_add_bool(object, "leader", p == facts->group.leader);
	json_add_bool(object, "failed", process->fatal_incident != 0);
	json_add_index(object, "ended_by", process->ended_by);
	json_add_index(object, "parent", process->parent);
}

static struct json_object *process_json(const struct data *data, uint32_t p)
{
	static const char *const modes[] = { "off", "sampled", "full" };
	const struct fact_process *process = &data->facts->processes[p];
	uint64_t first_ns = data->timeline->processes[p].first_ns[TIMELINE_DEVICE];
	struct json_object *object = json_object_new_object();
	char program[160];

	text_program(process, program, sizeof program);
	json_add_number(object, "pid", process->pid);
	json_add_text(object, "rank", process->rank);
	json_add_text(object, "name", program);
	json_add_text(object, "command_line", process->cmdline);
	json_add_text(object, "hostname", process->hostname);
	add_ending(data, object, p);
	json_add_number(object, "held_bytes", process->held_bytes);
	json_add_number(object, "host_peak_bytes", process->host.rss_peak_bytes);
	json_add_number(object, "host_end_bytes", process->host.rss_bytes);
	json_add_text(object, "host_mode",
		      process->host_mode <= CUF_HOST_FULL ? modes[process->host_mode] : NULL);
	json_add_number(object, "sample_mean_bytes", process->sample_mean_bytes);
	json_add_bool(object, "complete", process->complete);
	json_add_number(object, "events_recorded", process->events_recorded);
	json_add_number(object, "events_overwritten", process->events_overwritten);
	json_add_number(object, "events_lost", process->events_lost);
	json_add(object, "first", first_ns ? data_json_time(data, first_ns) : NULL);
	json_add(object, "environment", environment(process));
	return object;
}

struct json_object *data_processes(const struct data *data)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t p = 0; p < data->facts->process_count && p < JSON_ROWS_MAX; p++)
		json_object_array_add(array, process_json(data, p));
	return array;
}

/* ---- devices ---- */

struct json_object *data_devices(const struct data *data)
{
	const struct facts *facts = data->facts;
	struct json_object *array = json_object_new_array();

	for (uint32_t d = 0; d < facts->device_count; d++) {
		const struct fact_device *device = &facts->devices[d];
		struct json_object *object = json_object_new_object(),
				   *processes = json_object_new_array();
		for (uint32_t p = 0; p < facts->process_count; p++)
			for (unsigned i = 0; i < CUF_DEVICES_MAX; i++)
				if (facts->processes[p].device_of[i] == d)
					json_object_array_add(processes,
							      json_object_new_uint64(p));
		json_add_number(object, "id", device->ordinal);
		json_add_text(object, "name", device->name);
		json_add_number(object, "total_bytes", device->total_bytes);
		json_add_number(object, "peak_bytes", device->peak_bytes);
		json_add(object, "peak", data_json_time(data, device->peak_ns));
		json_add(object, "processes", processes);
		json_object_array_add(array, object);
	}
	return array;
}
