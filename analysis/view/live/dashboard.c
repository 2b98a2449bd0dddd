/* SPDX-License-Identifier: Apache-2.0 */
/* The dashboard: panels, and Grafana's document of them. */
#include "analysis/view/live/rules.h"

#include <json-c/json.h>

const struct panel panels[] = {
	{ "Who holds the GPU", "sum by (UUID, owner) (cuflight_gpu_memory_bytes)",
	  "{{owner}} {{UUID}}", "bytes" },
	{ "Own memory of a process",
	  "sum by (process) (cuflight_gpu_memory_bytes{process!=\"\"})", "{{process}}", "bytes" },
	{ "Headroom", "cuflight_gpu_memory_headroom_bytes", "{{process}} GPU {{gpu}}", "bytes" },
	{ "Time to out of memory", "cuflight_time_to_oom_seconds{bound=\"expected\"}",
	  "{{process}} {{resource}} {{gpu}}", "s" },
	{ "Peak of the last minute", "cuflight_gpu_memory_interval_peak_bytes{window=\"1m\"}",
	  "{{process}} GPU {{gpu}}", "bytes" },
	{ "Reserved and not allocated",
	  "cuflight_framework_reserved_bytes - cuflight_framework_allocated_bytes",
	  "{{process}} {{framework}}", "bytes" },
	{ "Largest free block", "cuflight_gpu_largest_free_bytes", "{{process}} {{layer}}",
	  "bytes" },
	{ "Call sites", "cuflight_site_bytes", "{{process}} {{site}}", "bytes" },
	{ "Leaks", "cuflight_leak_bytes > 0", "{{process}} {{site}}", "bytes" },
	{ "Failed requests a minute", "60 * rate(cuflight_allocation_failures_total[5m])",
	  "{{process}} {{outcome}}", "short" },
	{ "Resident memory", "cuflight_host_resident_bytes", "{{process}}", "bytes" },
	{ "Control group, working set", "cuflight_cgroup_memory_working_bytes", "{{process}}",
	  "bytes" },
	{ "Allocations a second", "rate(cuflight_allocations_total[5m])",
	  "{{process}} GPU {{gpu}}", "short" },
	{ "Causes", "cuflight_cause", "{{process}}: {{cause}} at {{site}}", "short" },
};
const size_t panel_count = sizeof panels / sizeof *panels;

static void add_text(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key, json_object_new_string(text));
}

static void add_number(struct json_object *to, const char *key, int number)
{
	json_object_object_add(to, key, json_object_new_int(number));
}

static struct json_object *add_object(struct json_object *to, const char *key)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(to, key, object);
	return object;
}

static struct json_object *add_list(struct json_object *to, const char *key,
				    struct json_object *only)
{
	struct json_object *list = json_object_new_array();

	if (only)
		json_object_array_add(list, only);
	json_object_object_add(to, key, list);
	return list;
}

static void add_source(struct json_object *to)
{
	struct json_object *source = add_object(to, "datasource");

	add_text(source, "type", "prometheus");
	add_text(source, "uid", "${source}");
}

/* Two panels a row. */
static struct json_object *panel_to_json(const struct panel *panel, int index)
{
	struct json_object *object = json_object_new_object(), *place, *target, *defaults;

	add_number(object, "id", index + 1);
	add_text(object, "type", "timeseries");
	add_text(object, "title", panel->title);
	add_source(object);
	place = add_object(object, "gridPos");
	add_number(place, "x", index % 2 * 12);
	add_number(place, "y", index / 2 * 8);
	add_number(place, "w", 12);
	add_number(place, "h", 8);
	defaults = add_object(add_object(object, "fieldConfig"), "defaults");
	add_text(defaults, "unit", panel->unit);
	target = json_object_new_object();
	add_source(target);
	add_text(target, "refId", "A");
	add_text(target, "expr", panel->expr);
	add_text(target, "legendFormat", panel->legend);
	add_list(object, "targets", target);
	return object;
}

void rules_grafana(FILE *out)
{
	struct json_object *top = json_object_new_object(), *variable = json_object_new_object();
	struct json_object *time, *list;

	add_text(top, "title", "cuflight");
	add_text(top, "uid", "cuflight");
	add_number(top, "schemaVersion", 39);
	add_text(top, "refresh", "30s");
	time = add_object(top, "time");
	add_text(time, "from", "now-3h");
	add_text(time, "to", "now");
	add_text(variable, "name", "source");
	add_text(variable, "type", "datasource");
	add_text(variable, "query", "prometheus");
	add_list(add_object(top, "templating"), "list", variable);
	list = add_list(top, "panels", NULL);
	for (size_t i = 0; i < panel_count; i++)
		json_object_array_add(list, panel_to_json(&panels[i], (int)i));
	fprintf(out, "%s\n", json_object_to_json_string_ext(
				     top, JSON_C_TO_STRING_PRETTY |
						  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}
