/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what a watch knows. */
#include "analysis/base/clock.h"
#include "analysis/view/live/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"

const char *const top_verdict_names[VERDICT_MAX] = {
	"ended", "steady", "waiting", "levels", "early", "rising", "failed", "growing",
};

/* ---- GPUs ---- */

static void add_frame_process(struct top_gpu *gpu, const struct watch_process *process,
			      uint64_t *newest_ns)
{
	const struct pass_device *own = watch_device_of(process, gpu->uuid, gpu->number);
	const struct pass *pass = process->pass;

	if (!own)
		return;
	for (unsigned owner = 0; owner < WATCH_OWN_MAX; owner++)
		gpu->owners[owner] += own->owners[owner];
	if (own->has_recent) {
		gpu->free_minute_bytes = least_of(gpu->free_minute_bytes, own->minute.free_bytes);
		gpu->free_hour_bytes = least_of(gpu->free_hour_bytes, own->hour.free_bytes);
	}
	if (process->pass_ns >= *newest_ns) {
		*newest_ns = process->pass_ns;
		gpu->largest_free_bytes = own->largest_free[LAYER_DEVICE];
	}
	for (size_t i = 0; i < pass->resource_count; i++)
		if (pass->resources[i].kind == LIVE_GPU &&
		    pass->resources[i].device == (uint32_t)(own - pass->devices))
			gpu->headroom_bytes = fmin(gpu->headroom_bytes,
						   pass->resources[i].headroom_bytes);
}

static void take_gpu(struct top_gpu *gpu, const struct watch *watch,
		     const struct watch_device *device)
{
	uint64_t newest_ns = 0;

	*gpu = (struct top_gpu){ .number = device->gpu, .total_bytes = device->total_bytes,
				   .is_known = device->has_pass, .free_minute_bytes = CUF_UNKNOWN,
				   .free_hour_bytes = CUF_UNKNOWN,
				   .largest_free_bytes = CUF_UNKNOWN, .headroom_bytes = NAN };
	memcpy(gpu->uuid, device->uuid, sizeof gpu->uuid);
	for (size_t i = 0; i < watch->count; i++)
		if (watch_runs(watch->processes[i]))
			add_frame_process(gpu, watch->processes[i], &newest_ns);
	for (unsigned owner = WATCH_OWN_MAX; owner < WATCH_OWNER_MAX; owner++)
		gpu->owners[owner] = device->rest[owner];
}

size_t top_gpu_of(const struct top_frame *frame, const struct top_process *process,
		    unsigned ordinal)
{
	static const uint8_t none[16];
	const uint8_t *uuid = none;
	size_t gpu = 0;

	for (size_t i = 0; process->pass && i < process->pass->device_count; i++)
		if (process->pass->devices[i].ordinal == ordinal)
			uuid = process->pass->devices[i].uuid;
	while (gpu < frame->gpu_count &&
	       !watch_is_same_device(frame->gpus[gpu].uuid, frame->gpus[gpu].number, uuid, ordinal))
		gpu++;
	return gpu;
}

/* ---- verdicts ---- */

/* The largest site of the worst state; NULL: all are steady. */
static const struct pass_site *worst_site(const struct pass *pass)
{
	const struct pass_site *worst = NULL;

	for (size_t i = 0; i < pass->site_count; i++) {
		const struct pass_site *site = &pass->sites[i];

		if (site->is_judged && site->state != LIVE_STEADY &&
		    (!worst || site->state > worst->state))
			worst = site;
	}
	return worst;
}

static enum top_verdict verdict_of(const struct watch_process *process)
{
	const struct pass *pass = process->pass;
	const struct pass_site *worst;

	if (!watch_runs(process))
		return pass && *pass->cause ? VERDICT_FAILED : VERDICT_ENDED;
	if (*process->pass_error)
		return VERDICT_LEVELS;
	if (!pass)
		return VERDICT_WAITING;
	if (pass->is_too_early)
		return VERDICT_EARLY;
	worst = worst_site(pass);
	if (live_first_to_end(pass->resources, pass->resource_count) ||
	    (worst && worst->state >= LIVE_GROWING))
		return VERDICT_GROWING;
	return worst ? VERDICT_RISING : VERDICT_STEADY;
}

static struct unit_text seconds_text(double seconds)
{
	return units_duration((uint64_t)(fmin(seconds, 1e9) * 1e9)); /* no machine runs longer */
}

static void put_forecast(const struct pass *pass, const struct live_resource *first, char *out,
			 size_t bytes)
{
	char resource[24];

	snprintf(resource, sizeof resource, "%s", live_resource_words[first->kind]);
	if (first->kind == LIVE_GPU && first->device < pass->device_count)
		snprintf(resource, sizeof resource, "GPU %u", pass->devices[first->device].ordinal);
	snprintf(out, bytes, " %s/s, %s is full in %s",
		 units_bytes_signed(first->bytes_per_s[LIVE_EXPECTED]).s, resource,
		 seconds_text(first->oom_s[LIVE_EXPECTED]).s);
}

static void put_growing(const struct pass *pass, char *out, size_t bytes)
{
	const struct live_resource *first = live_first_to_end(pass->resources,
							      pass->resource_count);
	const struct pass_site *worst = worst_site(pass);
	const char *name = worst ? worst->name : "?";
	char forecast[128] = "";

	if (*pass->cause_site)
		name = pass->cause_site;
	if (first)
		put_forecast(pass, first, forecast, sizeof forecast);
	else if (worst && !isnan(worst->slope_bytes_per_s))
		snprintf(forecast, sizeof forecast, " %s/s",
			 units_bytes_signed(worst->slope_bytes_per_s).s);
	snprintf(out, bytes, "growing: %s%s", name, forecast);
}

static void put_verdict(const struct top_process *process, char *out, size_t bytes)
{
	const struct pass *pass = process->pass;

	switch (process->verdict) {
	case VERDICT_GROWING: put_growing(pass, out, bytes); return;
	case VERDICT_RISING:
		snprintf(out, bytes, "%s: %s", live_state_names[worst_site(pass)->state],
			 worst_site(pass)->name);
		return;
	case VERDICT_EARLY:
		snprintf(out, bytes, "too early: %s of %s", seconds_text(pass->observed_s).s,
			 seconds_text(pass->needed_s).s);
		return;
	case VERDICT_LEVELS: snprintf(out, bytes, "levels only: %s", process->error); return;
	case VERDICT_WAITING: snprintf(out, bytes, "not analysed yet"); return;
	case VERDICT_STEADY: snprintf(out, bytes, "steady"); return;
	default:
		snprintf(out, bytes, "ended: %s%s%s", pass ? pass->end : "?",
			 process->verdict == VERDICT_FAILED ? ", " : "",
			 process->verdict == VERDICT_FAILED ? pass->cause : "");
	}
}

void top_words(const struct top_process *process, char *out, size_t bytes)
{
	static const char unseen[] = "it may have ended, which cannot be seen from here; ";
	size_t length = process->is_unseen ? strlen(unseen) : 0;

	memcpy(out, unseen, length);
	put_verdict(process, out + length, bytes - length);
}

/* ---- processes ---- */

static uint64_t device_bytes(const struct cuf_device *device)
{
	static const unsigned kinds[] = { CUF_KIND_DEVICE, CUF_KIND_ARRAY, CUF_KIND_ASYNC,
					  CUF_KIND_GRAPH, CUF_KIND_VMM };
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		sum += known_or_zero(device->live_bytes[kinds[i]]);
	return sum;
}

static void take_levels(struct top_process *to, const struct watch *watch,
			const struct watch_process *process)
{
	const struct watch_counters counters = watch_counters_of(watch, process->name);
	const struct levels *levels = &process->levels;

	for (size_t i = 0; i < levels->device_count; i++) {
		to->gpu_bytes += device_bytes(&levels->devices[i]);
		to->gpu_peak_bytes += known_or_zero(levels->devices[i].peak_bytes);
	}
	to->resident_bytes = levels->sample.time_ns ? levels->sample.rss_bytes : CUF_UNKNOWN;
	for (unsigned device = 0; device <= CUF_DEVICES_MAX; device++)
		for (unsigned outcome = 0; outcome < OUTCOME_MAX; outcome++)
			to->failures += counters.failures[device][outcome];
}

/* The slope of anything else is that of its first milliseconds, or noise. */
static bool rises(const struct pass_site *site)
{
	return site->is_judged && site->state != LIVE_STEADY && site->slope_bytes_per_s > 0;
}

static void take_process(struct top_process *to, const struct watch *watch,
			 const struct watch_process *process)
{
	*to = (struct top_process){ .path = xalloc_string(process->path),
				      .recording = xalloc_string(
					      watch_short_path(watch, process->path)),
				      .pid = process->identity.pid,
				      .is_running = watch_runs(process),
				      .is_unseen = process->levels.life == LIFE_UNKNOWN,
				      .verdict = verdict_of(process) };
	memcpy(to->name, process->name, sizeof to->name);
	memcpy(to->program, process->identity.name, sizeof to->program);
	memcpy(to->rank, process->identity.rank, sizeof to->rank);
	memcpy(to->error, process->pass_error, sizeof to->error);
	take_levels(to, watch, process);
	if (!process->pass)
		return;
	to->pass = pass_copy(process->pass);
	for (size_t i = 0; i < to->pass->site_count; i++)
		if (!rises(&to->pass->sites[i]))
			to->pass->sites[i].slope_bytes_per_s = NAN;
}

void top_take(struct top_frame *frame, const struct watch *watch)
{
	struct watch_device devices[WATCH_DEVICES];

	*frame = (struct top_frame){
		.time_ns = clock_ns(CLOCK_REALTIME),
		.processes = xalloc_bytes(watch->count * sizeof *frame->processes) };
	frame->gpu_count = watch_devices(watch, devices);
	for (size_t i = 0; i < frame->gpu_count; i++)
		take_gpu(&frame->gpus[i], watch, &devices[i]);
	for (size_t i = watch->count; i-- > 0; )
		if (!watch->processes[i]->is_succeeded)
			take_process(&frame->processes[frame->process_count++], watch,
				     watch->processes[i]);
}

void top_fini(struct top_frame *frame)
{
	for (size_t i = 0; i < frame->process_count; i++) {
		free(frame->processes[i].path);
		free(frame->processes[i].recording);
		free(frame->processes[i].pass);
	}
	free(frame->processes);
	*frame = (struct top_frame){ 0 };
}
