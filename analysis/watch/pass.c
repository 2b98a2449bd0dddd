/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the facts of one recording and copies what is shown live. */
#include "analysis/base/clock.h"
#include "analysis/watch/pass.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "analysis/base/clean.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/cause.h"
#include "analysis/explain/facts_build.h"
#include "analysis/explain/judge.h"
#include "analysis/facts/kinds.h"
#include "analysis/facts/places.h"
#include "analysis/recording/cut_guard.h"
#include "analysis/symbols/symbols.h"
#include "analysis/watch/levels.h"
#include "analysis/watch/pass_sites.h"

const char *const watch_owner_names[WATCH_OWNER_MAX] = {
	"weights", "kv", "compute", "output", "library", "communication", "graph", "other",
	"page_rounding", "pool_slack", "framework_slack", "context", "other_processes",
	"unexplained", "free",
};

const char *const watch_memory_names[WATCH_MEMORY_MAX] = {
	"device", "framework", "host", "pinned",
};

struct pass *pass_copy(const struct pass *pass)
{
	size_t bytes = offsetof(struct pass, sites) + pass->site_count * sizeof *pass->sites;

	return memcpy(xalloc_bytes(bytes), pass, bytes);
}

/* ---- devices ---- */

/* Rows of blocks, by what they are for. */
static enum watch_owner owner_of_role(const char *role)
{
	static const struct { const char *role; enum watch_owner owner; } rows[] = {
		{ "weights", WATCH_WEIGHTS }, { "kv", WATCH_KV }, { "compute", WATCH_COMPUTE },
		{ "activations", WATCH_COMPUTE }, { "workspace", WATCH_COMPUTE },
		{ "scratch", WATCH_COMPUTE }, { "output", WATCH_OUTPUT },
		{ "library", WATCH_LIBRARY }, { "communication", WATCH_COMMUNICATION },
		{ "graph", WATCH_GRAPH },
	};

	for (size_t i = 0; role && i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].role, role))
			return rows[i].owner;
	return WATCH_OTHER;
}

static enum watch_owner owner_of_row(const struct fact_owner_row *row)
{
	switch (row->kind) {
	case OWNER_PAGE_ROUNDING: return WATCH_PAGE_ROUNDING;
	case OWNER_POOL_SLACK: return WATCH_POOL_SLACK;
	case OWNER_FRAMEWORK_SLACK: return WATCH_FRAMEWORK_SLACK;
	case OWNER_CONTEXT: return WATCH_CONTEXT;
	case OWNER_OTHER_PROCESSES: return WATCH_OTHER_PROCESSES;
	case OWNER_UNEXPLAINED: return WATCH_UNEXPLAINED;
	case OWNER_FREE: return WATCH_FREE;
	default: return owner_of_role(row->role);
	}
}

static void copy_frameworks(const struct fact_device *device, struct pass_device *out)
{
	for (size_t i = 0; i < device->fragmentation.framework_count &&
			   i < PASS_FRAMEWORKS; i++) {
		const struct fact_framework *from = &device->fragmentation.frameworks[i];
		struct pass_framework *to = &out->frameworks[out->framework_count++];

		clean_terminal(to->name, sizeof to->name, from->name, false);
		to->allocated_bytes = from->allocated_bytes;
		to->reserved_bytes = from->reserved_bytes;
	}
}

static void copy_recent(const struct facts *facts, uint32_t device, struct pass_device *out)
{
	const struct fact_process *process = &facts->processes[facts->focus];

	for (size_t i = 0; i < process->recent_count; i++) {
		if (process->recent[i].device != device)
			continue;
		out->has_recent = true;
		out->minute = process->recent[i].minute;
		out->hour = process->recent[i].hour;
	}
}

static void copy_device(const struct fact_device *device, struct pass_device *out)
{
	*out = (struct pass_device){ .ordinal = device->ordinal,
				     .total_bytes = device->total_bytes };
	memcpy(out->uuid, device->uuid, sizeof out->uuid);
	for (size_t i = 0; i < device->owner_count; i++) {
		const struct fact_owner_row *row = &device->owners[i];

		if (row->in_sum && row->bytes != CUF_UNKNOWN)
			out->owners[owner_of_row(row)] += row->bytes;
	}
	for (unsigned layer = 0; layer < LAYER_MAX; layer++)
		out->largest_free[layer] = device->largest_free[layer].bytes;
	copy_frameworks(device, out);
}

/* ---- failures ---- */

/* A ladder whose outcome may still change waits for the next pass, and so do those behind it. */
static void count_failures(const struct facts *facts, struct pass *out)
{
	for (size_t i = 0; i < facts->incident_count; i++) {
		const struct fact_incident *incident = &facts->incidents[i];
		uint64_t first = incident->attempt_count ? incident->attempts[0].number :
							   incident->number;
		uint32_t device = incident->device < out->device_count ? incident->device :
									 CUF_DEVICES_MAX;

		if (first <= out->counted_to)
			continue;
		if (incident->outcome == OUTCOME_UNKNOWN)
			return;
		out->failures[device][incident->outcome]++;
		if (incident->number > out->counted_to)
			out->counted_to = incident->number;
	}
}

/* ---- the rest ---- */

static void copy_text(char *out, size_t bytes, const char *text)
{
	clean_terminal(out, bytes, text ? text : "", false);
}

static void copy_cause(const struct facts *facts, struct places *places, struct pass *out)
{
	const struct fact_cause *cause = facts->cause;
	struct place place;

	if (!cause || !*cause->name_id)
		return;
	copy_text(out->cause, sizeof out->cause, cause->name_id);
	copy_text(out->cause_summary, sizeof out->cause_summary, cause->summary);
	out->confidence = cause->confidence;
	if (!cause->site.depth)
		return;
	place_of(places, &cause->site, &place);
	place_text(&place, out->cause_site, sizeof out->cause_site);
	copy_text(out->cause_site, sizeof out->cause_site, out->cause_site);
}

static void copy_process(const struct facts *facts, struct pass *out)
{
	const struct fact_process *process = &facts->processes[facts->focus];

	copy_text(out->end, sizeof out->end, end_names[process->end]);
	copy_text(out->model, sizeof out->model, process->model);
	for (size_t d = 0; d < facts->device_count && !*out->framework; d++)
		if (facts->devices[d].fragmentation.framework_count) {
			const struct fact_framework *framework =
				facts->devices[d].fragmentation.frameworks;
			copy_text(out->framework, sizeof out->framework, framework->name);
			copy_text(out->version, sizeof out->version, framework->version);
		}
}

static void copy_judgement(const struct judgement *judgement, struct pass *out)
{
	out->observed_s = judgement->observed_s;
	out->needed_s = judgement->needed_s;
	out->is_too_early = judgement->is_too_early;
	for (size_t i = 0; i < judgement->resource_count &&
			   i < CUF_DEVICES_MAX + LIVE_RESOURCES; i++) {
		struct live_resource *to = &out->resources[out->resource_count++];

		*to = judgement->resources[i];
		if (to->device >= out->device_count)
			to->device = FACT_NONE;
	}
}

static void copy_facts(const struct facts *facts, const struct judgement *judgement,
		       struct symbols *symbols, struct pass *out)
{
	struct frames *frames = frames_new(facts, symbols);
	struct places *places = places_new(facts, frames);

	copy_process(facts, out);
	for (uint32_t i = 0; i < facts->device_count && i < CUF_DEVICES_MAX; i++) {
		copy_device(&facts->devices[i], &out->devices[i]);
		copy_recent(facts, i, &out->devices[i]);
		out->device_count++;
	}
	if (judgement)
		copy_judgement(judgement, out);
	count_failures(facts, out);
	copy_cause(facts, places, out);
	pass_sites_fill(out, facts, judgement, places);
	places_free(places);
	frames_free(frames);
}

/* ---- the judge of each recording ---- */

enum { JUDGES = 256 };

struct kept_judge { char *path; uint64_t start_ns; struct live_judge *judge; };

struct pass_maker {
	struct symbols *symbols;
	double warm_up_s;
	struct kept_judge judges[JUDGES]; /* the newest first */
};

struct pass_maker *pass_maker_new(double warm_up_s)
{
	struct pass_maker *maker = xalloc_zeroed(1, sizeof *maker);

	maker->symbols = symbols_new(NULL);
	maker->warm_up_s = warm_up_s;
	return maker;
}

void pass_maker_trim(struct pass_maker *maker)
{
	symbols_free(maker->symbols);
	maker->symbols = symbols_new(NULL);
}

static void forget_judge(struct kept_judge *kept)
{
	free(kept->path);
	live_judge_free(kept->judge);
	*kept = (struct kept_judge){ 0 };
}

/* A process that writes to the file of another one begins anew. */
static struct live_judge *judge_of(struct pass_maker *maker, const char *path, uint64_t start_ns)
{
	struct judge_rules rules = { .warm_up_s = maker->warm_up_s };
	struct kept_judge kept;
	size_t at = 0;

	while (at < JUDGES - 1 && maker->judges[at].path && strcmp(maker->judges[at].path, path))
		at++;
	kept = maker->judges[at];
	memmove(&maker->judges[1], &maker->judges[0], at * sizeof kept);
	if (!kept.path || strcmp(kept.path, path) || kept.start_ns != start_ns) {
		forget_judge(&kept);
		kept = (struct kept_judge){ xalloc_string(path), start_ns, live_judge_new(&rules) };
	}
	maker->judges[0] = kept;
	return kept.judge;
}

static uint64_t available_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib ? kib << 10 : CUF_UNKNOWN;
}

/* NULL: the process has ended, or the moment is that of a failure. */
static const struct judgement *judge_now(struct pass_maker *maker, const struct facts *facts,
					 const char *path, uint64_t now_ns)
{
	const struct fact_process *process = &facts->processes[facts->focus];
	struct judge_seen seen = { .facts = facts, .now_ns = now_ns,
				   .cgroup_working_bytes = CUF_UNKNOWN,
				   .machine_available_bytes = available_bytes() };

	if (!facts->judgement)
		return NULL;
	for (size_t i = 0; i < process->text_count; i++)
		if (process->texts[i].type == CUF_META_CGROUP)
			seen.cgroup_working_bytes =
				cgroup_levels(process->texts[i].text).working_bytes;
	return live_judge_pass(judge_of(maker, path, process->start_ns), &seen);
}

void pass_make(struct pass_maker *maker, struct pass *out, const char *path, uint64_t counted_to)
{
	struct facts_options options = { .symbols = maker->symbols, .without_replay = true,
					 .threads = 1, .warm_up_s = maker->warm_up_s };
	uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct reader_error error = { 0 };
	struct facts *facts;

	*out = (struct pass){ .begun_ns = clock_ns(CLOCK_REALTIME), .counted_to = counted_to,
			      .per_request_bytes = NAN };
	if (facts_build(path, &options, &facts, &error)) {
		snprintf(out->error, sizeof out->error, "%s",
			 error.system ? strerror(error.system) : reader_error_sentence(error.code));
	} else {
		copy_facts(facts, judge_now(maker, facts, path, out->begun_ns), maker->symbols,
			   out);
		facts_free(facts);
		if (cut_guard_seen())
			snprintf(out->error, sizeof out->error, "it was cut while it was read");
	}
	out->cost_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
}
