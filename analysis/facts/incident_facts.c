/* SPDX-License-Identifier: Apache-2.0 */
/* struct fact_incident: ladders of all processes by time, then each with the state of its device at that moment. */
#include "analysis/facts/build.h"
#include "analysis/base/key_values.h"

#include <stdlib.h>
#include <string.h>

/* Each view replays to its moment; older incidents than the last few have the recorder's own figures alone. */
enum { VIEWS_MAX = 16 };

static const struct cuf_incident *last_try(const struct ladder *l) { return &l->tries[l->try_count - 1]; }

static const char *api_of(const struct build *b, uint32_t process, const struct cuf_incident *i)
{
	const char *name = hook_name(b, process, i->label ? i->label : i->hook);
	return name ? name : "";
}

static const char *driver_api_of(const struct build *b, uint32_t process, const struct cuf_incident *i)
{
	const char *name = hook_name(b, process, i->hook);
	return name ? name : "";
}

/* Tries of the driver: a framework that gave up says the true request, but it is no try. Alone it is one: nobody asked the driver. */
static size_t driver_tries(const struct ladder *l)
{
	return l->try_count > 1 && last_try(l)->kind == CUF_KIND_FRAMEWORK ? l->try_count - 1 : l->try_count;
}

/* The driver was not asked, or its answer was not the reason: the framework itself is what refused. */
static const char *framework_name(const struct build *b, uint32_t process)
{
	const struct meta *meta = &b->run->processes[process].meta;
	for (size_t i = meta->text_count; i--;) {
		size_t bytes;
		const char *name = meta->texts[i].type == CUF_META_FRAMEWORK ? key_value(meta->texts[i].text, "framework", &bytes) : NULL;
		if (name && bytes)
			return arena_text(b->arena, name, bytes);
	}
	return "PyTorch";
}

static void fill_attempts(struct build *b, uint32_t process, const struct ladder *l, struct fact_incident *f)
{
	const struct reader *r = b->run->processes[process].reader;
	f->attempt_count = driver_tries(l);
	f->attempts = arena_zeroed(b->arena, f->attempt_count, sizeof *f->attempts);
	for (size_t i = 0; i < f->attempt_count; i++) {
		const struct cuf_incident *t = &l->tries[i];
		f->attempts[i] = (struct fact_attempt){ .number = t->number, .time_ns = reader_realtime(r, t->time_ns), .seq = t->seq,
			.requested_bytes = t->is_request ? t->requested_bytes : CUF_UNKNOWN, .free_bytes = t->free_bytes, .total_bytes = t->total_bytes,
			.result = t->result, .api = api_of(b, process, t), .driver_api = driver_api_of(b, process, t) };
		if (t->kind == CUF_KIND_FRAMEWORK)
			f->attempts[i].api = f->attempts[i].driver_api = framework_name(b, process);
	}
}

static void fill_sites(struct build *b, uint32_t process, const struct cuf_incident *i, struct fact_incident *f)
{
	struct fact_live_site *sites;
	f->site_count = i->site_count < CUF_INCIDENT_SITES ? i->site_count : CUF_INCIDENT_SITES;
	sites = arena_zeroed(b->arena, f->site_count, sizeof *sites);
	for (size_t s = 0; s < f->site_count; s++) {
		sites[s] = (struct fact_live_site){ { .process = process, .id = i->sites[s].stack }, i->sites[s].kind, i->sites[s].bytes, i->sites[s].count };
		stack_fill(b, &sites[s].stack, i->time_ns);
	}
	f->sites = sites;
}

/* What a framework says beside the driver: the true request, and what it had. */
static void fill_framework(const struct ladder *l, struct fact_incident *f)
{
	const struct cuf_incident *i = last_try(l);
	f->framework_requested_bytes = i->kind == CUF_KIND_FRAMEWORK ? i->requested_bytes : CUF_UNKNOWN;
	f->framework_allocated_bytes = i->framework_allocated_bytes;
	f->framework_reserved_bytes = i->framework_reserved_bytes;
	f->least_requested_bytes = l->rolled_back_bytes ? l->rolled_back_bytes + i->requested_bytes : CUF_UNKNOWN;
}

/* What is free was asked of the driver at its own failures; what a failed request gave back since is free, too. */
static void fill_free(const struct ladder *l, struct fact_incident *f)
{
	f->free_bytes = f->total_bytes = CUF_UNKNOWN;
	for (size_t i = l->try_count; i-- && f->free_bytes == CUF_UNKNOWN;) {
		f->free_bytes = l->tries[i].free_bytes;
		f->total_bytes = l->tries[i].total_bytes;
	}
	if (f->free_bytes != CUF_UNKNOWN)
		f->free_bytes += l->rolled_back_bytes;
}

static void fill_incident(struct build *b, uint32_t process, const struct ladder *l, struct fact_incident *f)
{
	const struct reader *r = b->run->processes[process].reader;
	const struct cuf_incident *i = last_try(l), *asked = &l->tries[driver_tries(l) - 1];
	*f = (struct fact_incident){
		.outcome = l->outcome, .outcome_why = l->why, .time_ns = reader_realtime(r, i->time_ns), .process = process,
		.pid = r->header.pid, .tid = i->tid, .device = group_of(b, process, i->device), .kind = asked->kind, .is_request = i->is_request,
		.api = api_of(b, process, asked), .driver_api = driver_api_of(b, process, asked), .result = asked->result, .seq = i->seq,
		.settled_seq = l->settled_seq, .number = i->number,
		.requested_bytes = l->tries[0].is_request ? l->tries[0].requested_bytes : CUF_UNKNOWN,
		.fits_if_packed = FACT_CANNOT_TELL, .packed_bytes = CUF_UNKNOWN,
		.stack = { .process = process, .id = i->stack ? i->stack : asked->stack }, .rss_bytes = i->rss_bytes, .cgroup_bytes = i->cgroup_bytes,
		.cgroup_max_bytes = i->cgroup_max_bytes, .host_live_bytes = i->host_live_bytes,
		.resolved_ns = reader_realtime(r, l->resolved_ns), .basis = BASIS_OBSERVED,
	};
	memcpy(f->live_bytes, i->live_bytes, sizeof f->live_bytes);
	memcpy(f->live_count, i->live_count, sizeof f->live_count);
	for (unsigned layer = 0; layer < LAYER_MAX; layer++)
		f->largest_free[layer] = (struct fact_layer){ CUF_UNKNOWN, "" };
	if (asked->kind == CUF_KIND_FRAMEWORK)
		f->api = f->driver_api = framework_name(b, process);
	fill_framework(l, f);
	fill_free(l, f);
	if (f->free_bytes != CUF_UNKNOWN)
		f->largest_free[LAYER_DEVICE] = (struct fact_layer){ f->free_bytes, "upper bound" };
	fill_attempts(b, process, l, f);
	fill_sites(b, process, i, f);
	stack_fill(b, &f->stack, i->time_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct fact_incident *x = a, *y = b;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

void build_incidents(struct build *build)
{
	struct facts *facts = build->facts;
	size_t count = 0;
	for (uint32_t p = 0; p < build->run->count; p++) {
		ladders_init(&build->ladders[p], &build->run->processes[p], &build->endings[p]);
		count += build->ladders[p].count;
	}
	facts->incidents = arena_zeroed(build->arena, count, sizeof *facts->incidents);
	for (uint32_t p = 0; p < build->run->count; p++)
		for (size_t i = 0; i < build->ladders[p].count; i++)
			fill_incident(build, p, &build->ladders[p].items[i], &facts->incidents[facts->incident_count++]);
	if (count)
		qsort(facts->incidents, count, sizeof *facts->incidents, by_time);
	for (size_t i = 0; i < count; i++) {
		struct fact_incident *f = &facts->incidents[i];
		f->id = i + 1;
		if (f->outcome == OUTCOME_FATAL)
			facts->fatal_incident = facts->processes[f->process].fatal_incident = f->id;
	}
}

/* Libraries that keep freed memory for themselves inside blocks that look full from here. */
static bool has_opaque_segments(const struct meta *meta, bool pytorch_seen)
{
	static const char *const caching[] = { "libonnxruntime", "libtensorflow", "xla_cuda", "libxla", "jaxlib", "cupy", "librmm", "libggml-cuda" };
	static const char *const pytorch[] = { "libc10_cuda", "libtorch_cuda" };
	for (size_t m = 0; m < meta->module_count; m++) {
		for (size_t i = 0; i < sizeof caching / sizeof *caching; i++)
			if (strstr(meta->modules[m].path, caching[i]))
				return true;
		for (size_t i = 0; i < sizeof pytorch / sizeof *pytorch && !pytorch_seen; i++)
			if (strstr(meta->modules[m].path, pytorch[i]))
				return true;
	}
	return false;
}

/* What was wanted in one piece, as well as it is known. */
static uint64_t needed_bytes(const struct fact_incident *f)
{
	if (f->framework_requested_bytes != CUF_UNKNOWN)
		return f->framework_requested_bytes;
	return f->least_requested_bytes != CUF_UNKNOWN ? f->least_requested_bytes : f->attempts[f->attempt_count - 1].requested_bytes;
}

static void judge_packing(struct build *b, struct fact_incident *f, const struct device_view *view)
{
	f->packed_bytes = packed_bytes(&view->focus, f->free_bytes);
	if (!f->is_request || f->packed_bytes == CUF_UNKNOWN || f->kind == CUF_KIND_PINNED || f->kind == CUF_KIND_REGISTERED)
		f->fits_if_packed = FACT_CANNOT_TELL;
	else if (f->packed_bytes >= needed_bytes(f))
		f->fits_if_packed = FACT_YES;
	else
		f->fits_if_packed = has_opaque_segments(&b->run->processes[f->process].meta, view->focus.framework_known) ? FACT_CANNOT_TELL : FACT_NO;
}

bool incident_at(const struct build *build, const struct fact_incident *f, struct cuf_incident *out)
{
	if (!reader_incident(build->run->processes[f->process].reader, f->number, out))
		return false;
	out->free_bytes = f->free_bytes;
	out->total_bytes = f->total_bytes;
	return true;
}

static void add_view(struct build *b, struct fact_incident *f)
{
	struct cuf_incident incident;
	struct moment m = { .kind = MOMENT_INCIDENT, .process = f->process, .seq = f->settled_seq, .time_ns = f->time_ns,
		.incident = &incident, .incident_id = f->id };
	struct device_view view;
	if (f->device == FACT_NONE || !incident_at(b, f, &incident))
		return;
	device_view_at(b, f->device, &m, &view);
	if (f->free_bytes == CUF_UNKNOWN) { /* the driver was not asked: a framework gave up by itself */
		f->free_bytes = view.levels.free_bytes;
		f->total_bytes = view.levels.total_bytes;
	}
	f->owners = view.owners;
	f->owner_count = view.owner_count;
	f->basis = view.exact ? BASIS_OBSERVED : BASIS_ESTIMATED;
	memcpy(f->largest_free, view.layers, sizeof f->largest_free);
	judge_packing(b, f, &view);
}

void build_incident_views(struct build *build)
{
	size_t views = 0;
	for (size_t i = build->facts->incident_count; i--;) {
		struct fact_incident *f = &build->facts->incidents[i];
		if (f->outcome == OUTCOME_FATAL ? views < 2 * VIEWS_MAX : views < VIEWS_MAX) {
			add_view(build, f);
			views++;
		}
	}
}
