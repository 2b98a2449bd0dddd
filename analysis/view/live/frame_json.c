/* SPDX-License-Identifier: Apache-2.0 */
/* cuflight.live/1: one document on one line. */
#include "analysis/view/live/frame.h"

#include <math.h>
#include "analysis/base/units.h"

static const struct words state_words = WORDS(NULL, live_state_names),
			  memory_words = WORDS(NULL, watch_memory_names),
			  resource_words = WORDS(NULL, live_resource_names),
			  verdict_words = WORDS(NULL, top_verdict_names);

/* flag: LATER where the first form of the document had none of them. */
#define OWN_FIELDS(flag) \
	{ "weights", NUMBER(owners[WATCH_WEIGHTS]), flag }, \
	{ "kv", NUMBER(owners[WATCH_KV]), flag, "Keys and values." }, \
	{ "compute", NUMBER(owners[WATCH_COMPUTE]), flag, "Activations and workspace." }, \
	{ "output", NUMBER(owners[WATCH_OUTPUT]), flag }, \
	{ "library", NUMBER(owners[WATCH_LIBRARY]), flag }, \
	{ "communication", NUMBER(owners[WATCH_COMMUNICATION]), flag }, \
	{ "graph", NUMBER(owners[WATCH_GRAPH]), flag }, \
	{ "other", NUMBER(owners[WATCH_OTHER]), flag, "Blocks whose purpose is not known." }, \
	{ "page_rounding", NUMBER(owners[WATCH_PAGE_ROUNDING]), flag, \
	  "Of pages of 2 MiB that small blocks keep." }, \
	{ "pool_slack", NUMBER(owners[WATCH_POOL_SLACK]), flag, \
	  "Reserved by the driver's pools and not in use." }, \
	{ "framework_slack", NUMBER(owners[WATCH_FRAMEWORK_SLACK]), flag, \
	  "Reserved by a framework and not in use." }, \
	{ "context", NUMBER(owners[WATCH_CONTEXT]), flag, \
	  "What the driver allocated for itself." }

static struct json_object *json_uuid(const uint8_t uuid[16])
{
	char text[UUID_TEXT];

	return json_text(uuid_text(uuid, text));
}

static struct json_object *own_uuid(const struct fields *fields, const void *object)
{
	const struct pass_device *device = object;

	return json_uuid(device->uuid);
}

#define OF struct pass_device
static const struct field own_owner_fields[] = { OWN_FIELDS(0) };
static const struct shape own_owners_shape = SHAPE("own_owners", own_owner_fields,
	.meaning = "Bytes by what they are for.");

static const struct field own_device_fields[] = {
	{ "id", COUNT(ordinal), .meaning = "The driver's index in this process." },
	{ "uuid", VALUE_OR_NULL(TEXT, own_uuid) },
	{ "owners", PART(own_owners_shape) },
};
static const struct shape own_device_shape = SHAPE("own_device", own_device_fields);
#undef OF

static struct json_object *is_judged(const struct fields *fields, const void *object)
{
	const struct live_resource *resource = object;

	return json_object_new_boolean(!isnan(resource->oom_s[LIVE_EXPECTED]));
}

static struct json_object *is_growing(const struct fields *fields, const void *object)
{
	const struct live_resource *resource = object;

	return json_object_new_boolean(isfinite(resource->oom_s[LIVE_EXPECTED]));
}

/* What never comes is null, too, and is_growing tells. */
#define OF struct live_resource
static const struct field resource_fields[] = {
	{ "resource", NAME(kind, resource_words) },
	{ "headroom_bytes", REAL(headroom_bytes) },
	{ "is_judged", VALUE(FLAG, is_judged), .meaning = "false: too early to tell." },
	{ "is_growing", VALUE(FLAG, is_growing),
	  .meaning = "Something that is proven to grow uses it up." },
	{ "bytes_per_s", REAL(bytes_per_s[LIVE_EXPECTED]) },
	{ "seconds_left", REAL(oom_s[LIVE_EXPECTED]),
	  .meaning = "null: unknown, or it does not grow." },
};
static const struct shape live_resource_shape = SHAPE("resource", resource_fields,
	.meaning = "Memory that can be used up.");
#undef OF

static const void *judged(const struct fields *fields, const void *object)
{
	const struct pass_site *site = object;

	return site->is_judged ? site : NULL;
}

static const void *on_device(const struct fields *fields, const void *object)
{
	const struct pass_site *site = object;

	return site->device == CUF_DEVICE_NONE ? NULL : site;
}

#define OF struct pass_site
static const struct field site_fields[] = {
	{ "site", WORD_HERE(name) },
	{ "path", WORD_HERE(path), .meaning = "The site and its callers, innermost first." },
	{ "role", WORD_HERE(role) },
	{ "memory", NAME(memory, memory_words) },
	{ "device", .base = on_device, NUMBER(device), LATER,
	  "The driver's index in this process; null: the host." },
	{ "state", .base = judged, .words = &state_words, FIELD(NAME, true, state),
	  .meaning = "null: small, or not judged." },
	{ "is_leak", FLAG(is_leak), LATER },
	{ "bytes", NUMBER(bytes) },
	{ "count", NUMBER(count), .meaning = "Live blocks." },
	{ "bytes_per_s", REAL(slope_bytes_per_s), LATER, "Of what rises, by its state." },
	{ "oldest_ns", POSITIVE(first_ns), LATER, "Birth of the oldest live block." },
};
static const struct shape pass_site_shape = SHAPE("site", site_fields, .meaning = "All blocks that "
	"one line of the program allocated, in one memory of one device.");
#undef OF

static const void *seen(const struct fields *fields, const void *object)
{
	const struct top_process *process = object;

	return process->is_unseen ? NULL : process;
}

static struct json_object *words(const struct fields *fields, const void *object)
{
	char text[PASS_SENTENCE + 64];

	top_words(object, text, sizeof text);
	return *text ? json_text(text) : NULL;
}

static const void *pass_of(const struct fields *fields, const void *object)
{
	const struct top_process *process = object;

	return process->pass;
}

static bool has_pass(const struct fields *fields, const void *object)
{
	return pass_of(fields, object) != NULL;
}

#define OF struct top_process
static const struct field process_fields[] = {
	{ "process", .is_array = true, FIELD(WORD, false, name), .meaning = "The name of its main "
	  "thread, with a rank, and a number where several have the name. A successor takes over "
	  "the name." },
	{ "rank", WORD_HERE(rank), LATER },
	{ "recording", FIELD(WORD, false, recording),
	  .meaning = "Below the directory that was named." },
	{ "pid", COUNT(pid), .meaning = "In its own pid namespace." },
	{ "is_running", .base = seen, FIELD(FLAG, true, is_running),
	  .meaning = "null: it cannot be seen from here whether it runs." },
	{ "error", WORD_HERE(error),
	  .meaning = "Why it could not be analysed: it has levels only." },
	{ "verdict", NAME(verdict, verdict_words), LATER, "From the best news to the worst. "
	  "waiting: not analysed yet; levels: see error; early: it runs too short; rising: "
	  "something warms up or fills; failed: it ended, for a cause." },
	{ "words", VALUE(TEXT, words), LATER, "The verdict as a phrase for people; not stable." },
	{ "gpu_bytes", NUMBER(gpu_bytes), LATER, "Live on all GPUs, at time_ns." },
	{ "gpu_peak_bytes", NUMBER(gpu_peak_bytes), LATER },
	{ "resident_bytes", NUMBER(resident_bytes), LATER },
	{ "failures", NUMBER(failures), LATER, "Requests that were refused, each need once, of all "
	  "processes that had the name." },
#undef OF
#define OF struct pass
#define OF_PASS .is_there = has_pass, .base = pass_of
	{ "devices", OF_PASS, LIST_HERE(devices, device_count, own_device_shape),
	  .meaning = "This and what follows is absent until the first pass." },
	{ "sites", OF_PASS, LIST_HERE(sites, site_count, pass_site_shape),
	  .meaning = "Leaks first, then by bytes; 64 at most." },
	{ "resources", OF_PASS, LIST_HERE(resources, resource_count, live_resource_shape),
	  .meaning = "Empty: it does not run." },
	{ "cause", OF_PASS, WORD_HERE(cause), .meaning = "As in cuflight-causes(7)." },
	{ "cause_site", OF_PASS, WORD_HERE(cause_site) },
	{ "is_too_early", OF_PASS, FLAG(is_too_early) },
#undef OF
#define OF struct top_process
};
static const struct shape top_process_shape = SHAPE("process", process_fields);
#undef OF

static struct json_object *gpu_uuid(const struct fields *fields, const void *object)
{
	const struct top_gpu *gpu = object;

	return json_uuid(gpu->uuid);
}

static const void *known(const struct fields *fields, const void *object)
{
	const struct top_gpu *gpu = object;

	return gpu->is_known ? gpu : NULL;
}

#define OF struct top_gpu
static const struct field all_owner_fields[] = {
	OWN_FIELDS(LATER),
	{ "other_processes", NUMBER(owners[WATCH_OTHER_PROCESSES]) },
	{ "unexplained", NUMBER(owners[WATCH_UNEXPLAINED]) },
	{ "free", NUMBER(owners[WATCH_FREE]) },
};
static const struct shape all_owners_shape = SHAPE("all_owners", all_owner_fields, .meaning = "Of "
	"all processes together; the values sum to total_bytes. null: no process was analysed "
	"yet.");

/* What no process holds has keys of its own, too: the first form of the document had only those. */
static const struct field gpu_fields[] = {
	{ "id", COUNT(number),
	  .meaning = "The driver's index in the process that began first." },
	{ "uuid", VALUE_OR_NULL(TEXT, gpu_uuid) },
	{ "total_bytes", NUMBER(total_bytes) },
	{ "other_processes", .base = known, NUMBER(owners[WATCH_OTHER_PROCESSES]),
	  .meaning = "Of owners, as are the next two." },
	{ "unexplained", .base = known, NUMBER(owners[WATCH_UNEXPLAINED]) },
	{ "free", .base = known, NUMBER(owners[WATCH_FREE]) },
	{ "owners", FOUND(all_owners_shape, known), LATER },
	{ "free_minute_bytes", NUMBER(free_minute_bytes), LATER,
	  "The least that was free within a minute." },
	{ "free_hour_bytes", NUMBER(free_hour_bytes), LATER,
	  "The least that was free within an hour." },
	{ "largest_free_bytes", NUMBER(largest_free_bytes), LATER,
	  "What the driver could allocate as one block, at most." },
	{ "headroom_bytes", REAL(headroom_bytes), LATER, "Free at the low level between bursts, "
	  "with what frameworks can release, less the largest burst; of the process with the "
	  "least. Negative: the largest work so far would fail now." },
};
static const struct shape gpu_shape = SHAPE("device", gpu_fields,
	.meaning = "A GPU that a running process uses.");
#undef OF

#define OF struct top_frame
static const struct field frame_fields[] = {
	{ "time_ns", COUNT(time_ns) },
	{ "devices", LIST_HERE(gpus, gpu_count, gpu_shape) },
	{ "processes", LIST(processes, process_count, top_process_shape), .meaning = "Those that "
	  "run, or ended within five minutes; the one that began last comes first." },
};
const struct shape live_shape = SHAPE("live", frame_fields, .meaning =
	"What runs, as printed by `cuflight top --json` (one document on a line) and served "
	"as /live.json. Quantities ending in _bytes are bytes. Times ending in _ns are "
	"nanoseconds since 1970. What is unknown is null. Keys are only added to version 1, "
	"never renamed or removed: a reader must ignore keys that it does not know. Texts are"
	" printable UTF-8. Levels are as of time_ns; owners, call sites and resources are of "
	"the last pass over each recording, some seconds ago, and passes of several processes"
	" are not of one moment.");
#undef OF

void top_json(FILE *out, const struct top_frame *frame)
{
	struct fields fields = { .document = frame };

	fields_print_as(out, JSON_C_TO_STRING_PLAIN, &fields, &live_shape, frame);
}
