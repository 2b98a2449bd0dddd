/* SPDX-License-Identifier: Apache-2.0 */
/* The whole document cuflight.report/1. Keys are a contract: they are added, never changed or removed. */
#include "analysis/view/json/report_json.h"

#include "analysis/view/focus.h"
#include "analysis/view/json/json_parts.h"

static struct json_object *json_capture(const struct facts *facts)
{
	const struct fact_process *focus = &facts->processes[facts->focus];
	struct json_object *object = json_object_new_object();
	json_add_text(object, "path", facts->path);
	json_add_text(object, "end_state", end_names[focus->end]);
	json_add_number(object, "end_status", focus->end_status);
	json_add_number(object, "processes", facts->process_count);
	json_add_number(object, "pid", focus->pid);
	json_add_number(object, "events_recorded", facts->events_recorded);
	json_add_number(object, "events_overwritten", facts->events_overwritten);
	json_add_number(object, "events_lost", facts->events_lost);
	json_add_bool(object, "complete", facts->coverage.complete);
	return object;
}

static struct json_object *json_process(const struct facts *facts, struct frames *frames, const struct fact_process *p)
{
	static const char *const modes[] = { "off", "sampled", "full" };
	struct json_object *object = json_object_new_object();
	json_add_number(object, "pid", p->pid);
	json_add_number(object, "ppid", p->ppid);
	json_add(object, "parent", json_pid(facts, p->parent));
	json_add_text(object, "path", p->path);
	json_add_text(object, "executable", p->exe);
	json_add_text(object, "command_line", p->cmdline);
	json_add_text(object, "hostname", p->hostname);
	json_add_number(object, "start_ns", p->start_ns);
	json_add_number(object, "end_ns", p->end_ns);
	json_add_text(object, "end_state", end_names[p->end]);
	json_add_number(object, "end_status", p->end_status);
	json_add_text(object, "end_basis", p->end_basis == BASIS_NONE ? NULL : basis_names[p->end_basis]);
	json_add_text(object, "end_why", p->end_why && *p->end_why ? p->end_why : NULL);
	json_add_bool(object, "complete", p->complete);
	json_add_bool(object, "switched_off", p->switched_off);
	json_add_number(object, "driver_version", p->driver_version ? p->driver_version : CUF_UNKNOWN);
	json_add_number(object, "first_cuda_ns", p->first_cuda_ns);
	json_add_text(object, "host_mode", p->host_mode <= CUF_HOST_FULL ? modes[p->host_mode] : NULL);
	json_add_number(object, "sample_mean_bytes", p->sample_mean_bytes);
	json_add_number(object, "stack_depth", p->stack_depth);
	json_add_number(object, "events_recorded", p->events_recorded);
	json_add_number(object, "events_overwritten", p->events_overwritten);
	json_add_number(object, "events_lost", p->events_lost);
	json_add_number(object, "fatal_incident", p->fatal_incident ? p->fatal_incident : CUF_UNKNOWN);
	json_add_text(object, "rank", p->rank);
	json_add(object, "ended_by", json_pid(facts, p->ended_by));
	json_add_number(object, "held_bytes", p->held_bytes);
	json_add(object, "host", json_host(frames, &p->host));
	json_add(object, "requests", json_requests(p));
	return object;
}

static struct json_object *json_crowd(const struct facts *facts)
{
	const struct fact_process_group *c = &facts->group;
	struct json_object *object = json_object_new_object();
	json_add(object, "first_failed", json_pid(facts, c->leader));
	json_add_number(object, "failed", c->failed_count);
	json_add_number(object, "ended_by_it", c->ended_count);
	json_add_number(object, "peers", c->peer_count);
	json_add_number(object, "median_held_bytes", c->median_bytes);
	json_add(object, "outlier", json_pid(facts, c->outlier));
	return object;
}

static struct json_object *json_texts(const char *const *texts, size_t count)
{
	struct json_object *array = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		json_object_array_add(array, json_text(texts[i]));
	return array;
}

static struct json_object *json_stack_stops(const struct fact_coverage *coverage)
{
	static const char *const names[CUF_STOP_MAX] = { "end", "depth", "no_rule", "unsupported", "bounds", "signal" };
	struct json_object *object = json_object_new_object();
	for (size_t i = 0; i < CUF_STOP_MAX; i++)
		if (names[i])
			json_add_number(object, names[i], coverage->stack_stops[i]);
	return object;
}

static struct json_object *json_coverage(const struct facts *facts)
{
	const struct fact_coverage *c = &facts->coverage;
	struct json_object *object = json_object_new_object(), *lost = json_object_new_array(), *blind = json_object_new_array();
	for (size_t i = 0; i < c->lost_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "what", c->lost[i].what);
		json_add_number(row, "count", c->lost[i].count);
		json_add(row, "pid", json_pid(facts, c->lost[i].process));
		json_object_array_add(lost, row);
	}
	for (size_t i = 0; i < c->blind_count; i++) {
		struct json_object *row = json_object_new_object();
		json_add_text(row, "text", c->blind[i].text);
		json_add(row, "pid", json_pid(facts, c->blind[i].process));
		json_object_array_add(blind, row);
	}
	json_add(object, "hooked", json_texts(c->hooked, c->hooked_count));
	json_add(object, "unhooked", json_texts(c->unhooked, c->unhooked_count));
	json_add(object, "static_cudart", json_texts(c->static_cudart, c->static_cudart_count));
	json_add(object, "lost", lost);
	json_add(object, "blind", blind);
	json_add_bool(object, "complete", c->complete);
	json_add(object, "stack_stops", json_stack_stops(c));
	json_add_number(object, "unknown_frees", c->unknown_frees);
	json_add_number(object, "replaced", c->replaced);
	json_add_number(object, "undone_frees", c->undone_frees);
	json_add_number(object, "recorder_ns", c->recorder_ns);
	return object;
}

#define ADD_ARRAY(document, key, count, value) do { \
	struct json_object *array = json_object_new_array(); \
	for (size_t i = 0; i < (count); i++) \
		json_object_array_add(array, value); \
	json_add(document, key, array); \
} while (0)

void report_json(FILE *out, const struct facts *facts, struct frames *frames)
{
	struct json_object *document = json_object_new_object();
	const struct fact_device *device = focus_device(facts);
	json_add_text(document, "schema", "cuflight.report/1");
	json_add_text(document, "generator", "cuflight " CUFLIGHT_VERSION);
	json_add(document, "capture", json_capture(facts));
	json_add(document, "cause", json_cause(facts, frames, facts->cause));
	json_add(document, "run", json_crowd(facts));
	ADD_ARRAY(document, "processes", facts->process_count, json_process(facts, frames, &facts->processes[i]));
	ADD_ARRAY(document, "devices", facts->device_count, json_device(facts, frames, &facts->devices[i]));
	ADD_ARRAY(document, "incidents", facts->incident_count, json_incident(facts, frames, &facts->incidents[i]));
	json_add(document, "phases", json_phases(facts));
	json_add(document, "requests", json_requests(&facts->processes[facts->focus]));
	ADD_ARRAY(document, "leaks", facts->leak_count, json_site(facts, frames, &facts->leaks[i]));
	ADD_ARRAY(document, "growth", facts->growth_count, json_site(facts, frames, &facts->growth[i]));
	json_add(document, "fragmentation", device ? json_fragmentation(facts, frames, device) : NULL);
	json_add(document, "host", json_host(frames, &facts->processes[facts->focus].host));
	json_add(document, "coverage", json_coverage(facts));
	json_print(document, out);
}
