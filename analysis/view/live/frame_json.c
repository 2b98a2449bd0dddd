/* SPDX-License-Identifier: Apache-2.0 */
/* cuflight.live/1: one document on one line. */
#include "analysis/view/live/frame.h"

#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"

/* A file may have any name. */
static void add_text(struct json_object *to, const char *key, const char *text)
{
	char clean[PATH_MAX];

	clean_utf8(clean, sizeof clean, text);
	json_object_object_add(to, key, *text ? json_object_new_string(clean) : NULL);
}

static void add_number(struct json_object *to, const char *key, uint64_t number)
{
	json_object_object_add(to, key,
			       number == CUF_UNKNOWN ? NULL : json_object_new_uint64(number));
}

/* "inf" is no number of JSON: what never comes is null, too, and is_growing tells. */
static void add_double(struct json_object *to, const char *key, double number)
{
	json_object_object_add(to, key, isfinite(number) ? json_object_new_double(number) : NULL);
}

static struct json_object *add_list(struct json_object *to, const char *key)
{
	struct json_object *list = json_object_new_array();

	json_object_object_add(to, key, list);
	return list;
}

static void add_uuid(struct json_object *to, const uint8_t uuid[16])
{
	char text[UUID_TEXT];

	add_text(to, "uuid", uuid_text(uuid, text) ? text : "");
}

static struct json_object *owners_to_json(const uint64_t *owners, unsigned count)
{
	struct json_object *object = json_object_new_object();

	for (unsigned owner = 0; owner < count; owner++)
		add_number(object, watch_owner_names[owner], owners[owner]);
	return object;
}

static struct json_object *own_device(const struct pass_device *device)
{
	struct json_object *object = json_object_new_object();

	add_number(object, "id", device->ordinal);
	add_uuid(object, device->uuid);
	json_object_object_add(object, "owners", owners_to_json(device->owners, WATCH_OWN_MAX));
	return object;
}

static struct json_object *resource_to_json(const struct live_resource *resource)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "resource", live_resource_names[resource->kind]);
	add_double(object, "headroom_bytes", resource->headroom_bytes);
	json_object_object_add(object, "is_judged", json_object_new_boolean(
						!isnan(resource->oom_s[LIVE_EXPECTED])));
	json_object_object_add(object, "is_growing", json_object_new_boolean(
						isfinite(resource->oom_s[LIVE_EXPECTED])));
	add_double(object, "bytes_per_s", resource->bytes_per_s[LIVE_EXPECTED]);
	add_double(object, "seconds_left", resource->oom_s[LIVE_EXPECTED]);
	return object;
}

static struct json_object *site_to_json(const struct pass_site *site)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "site", site->name);
	add_text(object, "path", site->path);
	add_text(object, "role", site->role);
	add_text(object, "memory", watch_memory_names[site->memory]);
	add_number(object, "device", site->device == CUF_DEVICE_NONE ? CUF_UNKNOWN : site->device);
	add_text(object, "state", site->is_judged ? live_state_names[site->state] : "");
	json_object_object_add(object, "is_leak", json_object_new_boolean(site->is_leak));
	add_number(object, "bytes", site->bytes);
	add_number(object, "count", site->count);
	add_double(object, "bytes_per_s", site->slope_bytes_per_s);
	add_number(object, "oldest_ns", site->first_ns ? site->first_ns : CUF_UNKNOWN);
	return object;
}

static void add_pass(struct json_object *to, const struct pass *pass)
{
	struct json_object *devices = add_list(to, "devices"), *sites = add_list(to, "sites");
	struct json_object *resources = add_list(to, "resources");

	add_text(to, "cause", pass->cause);
	add_text(to, "cause_site", pass->cause_site);
	json_object_object_add(to, "is_too_early", json_object_new_boolean(pass->is_too_early));
	for (size_t i = 0; i < pass->device_count; i++)
		json_object_array_add(devices, own_device(&pass->devices[i]));
	for (size_t i = 0; i < pass->resource_count; i++)
		json_object_array_add(resources, resource_to_json(&pass->resources[i]));
	for (size_t i = 0; i < pass->site_count; i++)
		json_object_array_add(sites, site_to_json(&pass->sites[i]));
}

static struct json_object *process_to_json(const struct top_process *process)
{
	struct json_object *object = json_object_new_object();
	char words[PASS_SENTENCE + 64];

	top_words(process, words, sizeof words);
	add_text(object, "process", process->name);
	add_text(object, "rank", process->rank);
	add_text(object, "recording", process->recording);
	add_number(object, "pid", process->pid);
	json_object_object_add(object, "is_running", process->is_unseen ? NULL :
			       json_object_new_boolean(process->is_running));
	add_text(object, "error", process->error);
	add_text(object, "verdict", top_verdict_names[process->verdict]);
	add_text(object, "words", words);
	add_number(object, "gpu_bytes", process->gpu_bytes);
	add_number(object, "gpu_peak_bytes", process->gpu_peak_bytes);
	add_number(object, "resident_bytes", process->resident_bytes);
	add_number(object, "failures", process->failures);
	if (process->pass)
		add_pass(object, process->pass);
	return object;
}

/* What no process holds has keys of its own, too: the first form of the document had only those. */
static struct json_object *gpu_to_json(const struct top_gpu *gpu)
{
	struct json_object *object = json_object_new_object(), *owners = NULL;

	add_number(object, "id", gpu->number);
	add_uuid(object, gpu->uuid);
	add_number(object, "total_bytes", gpu->total_bytes);
	for (unsigned owner = WATCH_OWN_MAX; owner < WATCH_OWNER_MAX; owner++)
		add_number(object, watch_owner_names[owner],
			   gpu->is_known ? gpu->owners[owner] : CUF_UNKNOWN);
	if (gpu->is_known)
		owners = owners_to_json(gpu->owners, WATCH_OWNER_MAX);
	json_object_object_add(object, "owners", owners);
	add_number(object, "free_minute_bytes", gpu->free_minute_bytes);
	add_number(object, "free_hour_bytes", gpu->free_hour_bytes);
	add_number(object, "largest_free_bytes", gpu->largest_free_bytes);
	add_double(object, "headroom_bytes", gpu->headroom_bytes);
	return object;
}

void top_json(FILE *out, const struct top_frame *frame)
{
	struct json_object *top = json_object_new_object(), *gpus, *processes;

	add_text(top, "schema", "cuflight.live/1");
	add_number(top, "time_ns", frame->time_ns);
	gpus = add_list(top, "devices");
	for (size_t i = 0; i < frame->gpu_count; i++)
		json_object_array_add(gpus, gpu_to_json(&frame->gpus[i]));
	processes = add_list(top, "processes");
	for (size_t i = 0; i < frame->process_count; i++)
		json_object_array_add(processes, process_to_json(&frame->processes[i]));
	fprintf(out, "%s\n", json_object_to_json_string_ext(
				     top, JSON_C_TO_STRING_PLAIN |
						  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}
