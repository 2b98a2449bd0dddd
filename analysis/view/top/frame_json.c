/* SPDX-License-Identifier: Apache-2.0 */
/* cuflight.live/1: one document on one line. */
#include "analysis/view/top/frame.h"

#include <json-c/json.h>
#include <math.h>
#include <time.h>
#include "analysis/device/uuid.h"
#include "analysis/watch/devices.h"

static void add_text(struct json_object *to, const char *key, const char *text)
{
	json_object_object_add(to, key, *text ? json_object_new_string(text) : NULL);
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

static struct json_object *own_device(const struct pass_device *device)
{
	struct json_object *object = json_object_new_object(), *owners;

	add_number(object, "id", device->ordinal);
	add_uuid(object, device->uuid);
	owners = json_object_new_object();
	for (unsigned owner = 0; owner < WATCH_OWN_MAX; owner++)
		add_number(owners, watch_owner_names[owner], device->owners[owner]);
	json_object_object_add(object, "owners", owners);
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
	add_text(object, "state", site->is_judged ? live_state_names[site->state] : "");
	add_number(object, "bytes", site->bytes);
	add_number(object, "count", site->count);
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

static struct json_object *process_to_json(const struct watch *watch,
					   const struct watch_process *process)
{
	struct json_object *object = json_object_new_object();

	add_text(object, "process", process->name);
	add_text(object, "recording", watch_short_path(watch, process->path));
	add_number(object, "pid", process->identity.pid);
	json_object_object_add(object, "is_running", json_object_new_boolean(watch_runs(process)));
	add_text(object, "error", process->pass_error);
	if (process->pass)
		add_pass(object, process->pass);
	return object;
}

static struct json_object *device_to_json(const struct watch_device *device)
{
	struct json_object *object = json_object_new_object();

	add_number(object, "id", device->gpu);
	add_uuid(object, device->uuid);
	add_number(object, "total_bytes", device->total_bytes);
	for (unsigned owner = WATCH_OWN_MAX; owner < WATCH_OWNER_MAX; owner++)
		add_number(object, watch_owner_names[owner],
			   device->has_pass ? device->rest[owner] : CUF_UNKNOWN);
	return object;
}

void top_json(FILE *out, const struct watch *watch)
{
	struct json_object *top = json_object_new_object();
	struct json_object *devices, *processes;
	struct watch_device found[WATCH_DEVICES];
	size_t count = watch_devices(watch, found);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	add_text(top, "schema", "cuflight.live/1");
	add_number(top, "time_ns", (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	devices = add_list(top, "devices");
	for (size_t i = 0; i < count; i++)
		json_object_array_add(devices, device_to_json(&found[i]));
	processes = add_list(top, "processes");
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->processes[i]->is_succeeded)
			json_object_array_add(processes,
					      process_to_json(watch, watch->processes[i]));
	fprintf(out, "%s\n", json_object_to_json_string_ext(
				     top, JSON_C_TO_STRING_PLAIN |
						  JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}
