/* SPDX-License-Identifier: Apache-2.0 */
/* What the report is about: names, focus, the table of holders, processes, devices. */
#include "analysis/view/html/data.h"

#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/focus.h"
#include "analysis/facts/kinds.h"
#include "analysis/view/text/screen.h"

enum { TEXTS_MOST = 256 };

/* ---- names ---- */

static struct json_object *words(const char *(*word)(uint32_t), size_t count)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < count; i++)
		json_object_array_add(array, json_text(word(i)));
	return array;
}

static struct json_object *kind_texts(const struct fields *fields, const void *object)
{
	return words(kind_word, CUF_KIND_MAX);
}

static const char *trend_of(uint32_t shape) { return shape_word((enum fact_shape)shape); }

static struct json_object *trends(const struct fields *fields, const void *object)
{
	return words(trend_of, SHAPE_MAX);
}

static struct json_object *role_texts(const struct fields *fields, const void *object)
{
	struct json_object *roles = json_object_new_object();
	const char *role, *word;

	for (size_t i = 0; role_word_at(i, &role, &word); i++)
		json_object_object_add(roles, role, json_text(word));
	return roles;
}

static const char *const layers[] = { "device", "framework", "host" },
			 *const languages[] = { "native", "python" },
			 *const moments[TIMELINE_MOMENT_KINDS] = { "sample", "incident", "peak",
								   "end", "at" },
			 *const lanes[] = { "mark", "nvtx", "inferred", "capture" };
static const struct words layer_words = WORDS(NULL, layers),
			  language_words = WORDS(NULL, languages),
			  page_moment_words = WORDS(NULL, moments),
			  lane_words = WORDS(NULL, lanes);

#define OF struct data
#define TEXTS_ONLY LIMITS("type": "array", "items": {"type": "string"})
#define ALL(words_) .type = FIELD_WORDS, .words = &(words_), .size = 0
static const struct field names_fields[] = {
	{ "kind", ALL(kind_words) },
	{ "class", ALL(class_words) },
	{ "shape", ALL(growth_words) },
	{ "outcome", ALL(outcome_words) },
	{ "layer", ALL(layer_words), .meaning = "device: the driver's blocks; framework: inside "
	  "device blocks, so never add the two up; host: malloc, maps and Python objects" },
	{ "language", ALL(language_words) },
	{ "moment", ALL(page_moment_words) },
	{ "lane", ALL(lane_words) },
	{ "kind_word", VALUE(ANY, kind_texts), .meaning = "what people read, by kind", TEXTS_ONLY },
	{ "trend", VALUE(ANY, trends), .meaning = "what people read, by shape", TEXTS_ONLY },
	{ "role_word", VALUE(ANY, role_texts),
	  .meaning = "of roles that have another word: {\"kv\": \"KV cache\", ...}",
	  LIMITS("type": "object", "additionalProperties": {"type": "string"}) },
};
const struct shape names_shape = SHAPE(NULL, names_fields, .meaning = "enumerations by number");
#undef OF

/* ---- focus ---- */

#define OF struct data_focus
static const struct field focus_fields[] = {
	{ "process", INDEX(process) },
	{ "device", INDEX(device) },
	{ "incident", INDEX(incident) },
	{ "is_host", FLAG(is_host) },
};
const struct shape page_focus_shape = SHAPE(NULL, focus_fields,
	.meaning = "what the first screen is about: indices, or null");
#undef OF

static struct data_focus focus_of(const struct data *data)
{
	const struct facts *facts = data->facts;
	const struct fact_device *device = focus_device(facts);
	const struct fact_incident *incident = focus_incident(facts);
	struct data_focus focus = {
		.process = (uint32_t)(focus_process(facts) - facts->processes),
		.device = device ? (uint32_t)(device - facts->devices) : FACT_NONE,
		.incident = FACT_NONE,
		.is_host = focus_is_host(facts),
	};

	if (incident) { /* the list has the last ones */
		size_t all = facts->incident_count, at = (size_t)(incident - facts->incidents),
		       first = all - least_of(all, data->rows);
		if (at >= first)
			focus.incident = (uint32_t)(at - first);
	}
	return focus;
}

/* ---- holders ---- */

static const void *of_site(const struct fields *fields, const void *object)
{
	const struct holder *row = object;

	return row->sort == HOLDER_SITE ? row : NULL;
}

static struct json_object *holder_label(const struct fields *fields, const void *object)
{
	const struct holder *row = object;

	return json_text(row->sort == HOLDER_SITE ? row->place.function : row->words);
}

static struct json_object *trend_word(const struct fields *fields, const void *object)
{
	return json_text(holder_trend(object));
}

static struct json_object *share(const struct fields *fields, const void *object)
{
	const struct holders *holders = fields->outer;
	const struct holder *row = object;

	if (!is_known(holders->total_bytes) || !is_known(row->bytes) || !holders->total_bytes)
		return NULL;
	return json_double((double)row->bytes / (double)holders->total_bytes);
}

static const char *const sorts[] = { "site", "part", "free", "outside" };
static const struct words sort_words = WORDS(NULL, sorts);

#define OF struct holder
static const struct field holder_fields[] = {
	{ "sort", NAME(sort, sort_words), .meaning = "all but outside sum to total_bytes" },
	{ "label", VALUE(TEXT, holder_label) },
	{ "file", .base = of_site, WORD_HERE(place.file) },
	{ "line", .base = of_site, POSITIVE(place.line) },
	{ "callers", .base = of_site, WORD_HERE(place.callers) },
	{ "role", TEXT_OR_NULL(role) },
	{ "role_is_likely", FLAG(role_is_likely) },
	{ "leaks", FLAG(leaks) },
	{ "suspect", FLAG(suspect), .meaning = "the cause is about it" },
	{ "sampled", FLAG(sampled) },
	{ "trend", NAME(shape, growth_words) },
	{ "trend_word", VALUE_OR_NULL(TEXT, trend_word),
	  .meaning = "as the first screen prints it" },
	{ "bytes", NUMBER(bytes) },
	{ "count", NUMBER(count) },
	{ "share", VALUE_OR_NULL(REAL, share), .meaning = "of total_bytes, 0 to 1" },
};
static const struct shape holder_shape = SHAPE(NULL, holder_fields);
#undef OF

#define OF struct holders
static const struct field holders_fields[] = {
	{ "title", TEXT_HERE(title) },
	{ "total_bytes", NUMBER(total_bytes) },
	{ "rows", LIST(rows, count, holder_shape), LONG },
};
const struct shape page_holders_shape = SHAPE(NULL, holders_fields,
	.meaning = "the table of the first screen, unfolded");
#undef OF

/* ---- processes ---- */

/* What the recording keeps of the environment, and its notes: pairs of a name and a text. */
static struct json_object *environment(const struct fields *fields, const void *object)
{
	const struct fact_process *process = object; /* the first member of its cells */
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

struct process_cells {
	struct fact_process process;
	char name[160], end_text[160];
	bool is_focus, is_outlier, is_leader, has_failed;
	uint64_t first_ns; /* CUF_UNKNOWN: nothing was lost */
};

#define OF struct process_cells
static const struct field process_fields[] = {
	{ "pid", COUNT(process.pid) },
	{ "rank", TEXT_OR_NULL(process.rank) },
	{ "name", TEXT_HERE(name) },
	{ "command_line", TEXT_OR_NULL(process.cmdline) },
	{ "hostname", TEXT_OR_NULL(process.hostname) },
	{ "start", TIME(process.start_ns) },
	{ "end", TIME(process.end_ns) },
	{ "end_text", TEXT_HERE(end_text) },
	{ "focus", FLAG(is_focus) },
	{ "outlier", FLAG(is_outlier) },
	{ "leader", FLAG(is_leader) },
	{ "failed", FLAG(has_failed) },
	{ "ended_by", INDEX(process.ended_by) },
	{ "parent", INDEX(process.parent) },
	{ "held_bytes", NUMBER(process.held_bytes) },
	{ "host_peak_bytes", NUMBER(process.host.rss_peak_bytes) },
	{ "host_end_bytes", NUMBER(process.host.rss_bytes) },
	{ "host_mode", .words = &host_mode_words, FIELD(NAME, true, process.host_mode) },
	{ "sample_mean_bytes", NUMBER(process.sample_mean_bytes) },
	{ "complete", FLAG(process.complete) },
	{ "events_recorded", NUMBER(process.events_recorded) },
	{ "events_overwritten", NUMBER(process.events_overwritten) },
	{ "events_lost", NUMBER(process.events_lost) },
	{ "first", TIME(first_ns), .meaning = "of the oldest "
	  "event that is left of its device ring; before it, charts have samples only (part "
	  "older); null: nothing was lost" },
	{ "environment", VALUE(ANY, environment),
	  .meaning = "the recording's allow-list, redacted, with limits and notes: [[\"NAME\", "
	  "\"value\"], ...]",
	  LIMITS("type": "array", "items": {"type": "array", "items": {"type": "string"}}) },
};
const struct shape page_process_shape = SHAPE(NULL, process_fields);
#undef OF

size_t data_processes(struct fields *fields, const struct field *field, const void *object)
{
	const struct data *data = object;
	const struct facts *facts = data->facts;

	for (uint32_t p = 0; fields_wants(fields, field, p, facts->process_count); p++) {
		const struct fact_process *process = &facts->processes[p];
		uint64_t first_ns = data->timeline->processes[p].first_ns[TIMELINE_DEVICE];
		struct process_cells cells = {
			.process = *process,
			.is_focus = p == facts->focus,
			.is_outlier = p == facts->group.outlier,
			.is_leader = p == facts->group.leader,
			.has_failed = process->fatal_incident != 0,
			.first_ns = first_ns ? first_ns : CUF_UNKNOWN,
		};

		text_program(process, cells.name, sizeof cells.name);
		text_ending(process, cells.end_text, sizeof cells.end_text);
		fields_row(fields, NULL, field->shape, &cells);
	}
	return facts->process_count;
}

/* ---- devices ---- */

static struct json_object *users(const struct fields *fields, const void *object)
{
	const struct facts *facts = fields->facts;
	ptrdiff_t device = (const struct fact_device *)object - facts->devices;
	struct json_object *processes = json_object_new_array();

	for (uint32_t p = 0; p < facts->process_count; p++)
		for (unsigned i = 0; i < CUF_DEVICES_MAX; i++)
			if (facts->processes[p].device_of[i] == device)
				json_object_array_add(processes, json_object_new_uint64(p));
	return processes;
}

#define OF struct fact_device
static const struct field device_fields[] = {
	{ "id", COUNT(ordinal) },
	{ "name", TEXT(name) },
	{ "total_bytes", NUMBER(total_bytes) },
	{ "peak_bytes", NUMBER(peak_bytes) },
	{ "peak", TIME(peak_ns) },
	{ "processes", VALUE(ANY, users), .meaning = "indices of those that use it",
	  LIMITS("type": "array", "items": {"type": "integer", "minimum": 0}) },
};
const struct shape page_device_shape = SHAPE(NULL, device_fields);
#undef OF

void data_run_init(struct data *data)
{
	data->focus = focus_of(data);
	screen_holders(data->text, &data->holders);
}
