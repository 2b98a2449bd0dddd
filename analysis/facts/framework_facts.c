/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's own view of its memory at a moment, put together of its reports and of the driver's blocks. */
#include "analysis/facts/framework_facts.h"

#include <string.h>
#include "analysis/device/framework_segments.h"
#include "analysis/base/key_values.h"
#include "analysis/facts/roles.h"

/* META FRAMEWORK comes in pieces, as things are learnt: the last text that has a key has its value. */
static const char *told(struct build *b, uint32_t process, const char *key, const char *otherwise)
{
	const struct fact_process *p = &b->facts->processes[process];
	for (size_t i = p->text_count; i--;) {
		size_t bytes;
		const char *value = p->texts[i].type == CUF_META_FRAMEWORK ? key_value(p->texts[i].text, key, &bytes) : NULL;
		if (value && bytes)
			return arena_text(b->arena, value, bytes);
	}
	return otherwise;
}

/*
 * Streams keep their free blocks to themselves, graphs their pools, and no report says whose a block is: where there may be
 * any, the largest hole is a bound. It is exact where the recorder looked for streams and saw none.
 */
static bool may_have_streams(struct build *b, uint32_t process) { return strcmp(told(b, process, "streams", "1"), "0") != 0; }

static enum fact_owner owner_of_range(const struct framework_range *r)
{
	switch (r->kind) {
	case CUF_KIND_DEVICE: return OWNER_DEVICE;
	case CUF_KIND_ASYNC: return OWNER_ASYNC;
	case CUF_KIND_IMPORTED: return OWNER_IMPORTED;
	case CUF_KIND_MAPPING: return OWNER_VMM;
	default: return OWNER_MAX; /* managed: beside the sum */
	}
}

static void take_slack(const struct framework_map *map, struct holding *h)
{
	for (size_t i = 0; i < map->range_count; i++) {
		const struct framework_range *r = &map->ranges[i];
		enum fact_owner owner = owner_of_range(r);
		if (r->is_segment && owner != OWNER_MAX && r->bytes > r->live_bytes)
			h->slack_bytes[owner] += r->bytes - r->live_bytes;
	}
}

/* The replay has gaps: the framework's counters stand in, and the slack is taken out of what the segments are made of. */
static void estimate_slack(const struct fact_framework *f, struct holding *h)
{
	static const enum fact_owner parts[] = { OWNER_DEVICE, OWNER_VMM, OWNER_ASYNC };
	uint64_t left = f->reserved_bytes != CUF_UNKNOWN && f->reserved_bytes > f->allocated_bytes ? f->reserved_bytes - f->allocated_bytes : 0;
	memset(h->slack_bytes, 0, sizeof h->slack_bytes);
	for (size_t i = 0; i < sizeof parts / sizeof *parts && left; i++) {
		uint64_t most = h->bytes[parts[i]], taken = left < most ? left : most;
		h->slack_bytes[parts[i]] = taken;
		left -= taken;
	}
}

static void settle_totals(const struct framework_question *q, const struct run_process *p, uint64_t segment_bytes, const struct framework_map *map,
			  struct fact_framework *f)
{
	struct framework_report r = framework_reported(p->events, q->device, q->seq);
	uint64_t live_bytes = 0;
	for (size_t i = 0; i < map->block_count; i++)
		live_bytes += map->blocks[i].bytes;
	f->allocated_bytes = live_bytes;
	f->reserved_bytes = segment_bytes;
	f->basis = BASIS_OBSERVED;
	if (q->exact.device && q->exact.framework && live_bytes == f->placed_bytes)
		return;
	f->basis = BASIS_ESTIMATED;
	if (q->incident && q->incident->framework_allocated_bytes != CUF_UNKNOWN) {
		r.allocated_bytes = q->incident->framework_allocated_bytes;
		r.reserved_bytes = q->incident->framework_reserved_bytes;
	}
	if (r.allocated_bytes != CUF_UNKNOWN) {
		f->allocated_bytes = r.allocated_bytes;
		f->reserved_bytes = r.reserved_bytes;
	}
}

static struct fact_framework measure_pytorch(struct build *b, const struct framework_question *q, const struct framework_map *map, struct holding *h)
{
	const struct run_process *p = &b->run->processes[q->process];
	struct fact_framework f = { .process = q->process, .name = told(b, q->process, "framework", "PyTorch"),
		.version = told(b, q->process, "version", ""), .backend = told(b, q->process, "backend", "") };
	uint64_t segment_bytes = framework_segments_measure(map, q->process, q->requested_bytes, b->arena, &f);
	settle_totals(q, p, segment_bytes, map, &f);
	f.largest_hole.words = f.basis == BASIS_OBSERVED && !may_have_streams(b, q->process) ? "exact" : "upper bound";
	if (!f.segment_count)
		f.largest_hole = (struct fact_layer){ CUF_UNKNOWN, "" };
	take_slack(map, h);
	if (f.basis == BASIS_ESTIMATED)
		estimate_slack(&f, h);
	return f;
}

static void sum_slack(struct holding *h)
{
	for (unsigned i = 0; i < OWNER_MAX; i++) {
		if (h->slack_bytes[i] > h->bytes[i])
			h->slack_bytes[i] = h->bytes[i];
		h->bytes[OWNER_FRAMEWORK_SLACK] += h->slack_bytes[i];
	}
}

static bool is_seen(const struct build *b, const struct framework_question *q, const struct framework_map *map)
{
	return map->block_count || framework_reported(b->run->processes[q->process].events, q->device, q->seq).allocated_bytes != CUF_UNKNOWN;
}

void framework_facts(struct build *build, const struct framework_question *question, const struct liveset *live, struct holding *holding)
{
	struct framework_map map;
	struct framework_regions regions;
	struct fact_framework *rows;
	bool seen;
	framework_map_make(live, question->device, &map);
	seen = is_seen(build, question, &map);
	if (seen)
		framework_marks_set(&build->marks[question->process], &build->run->processes[question->process], &map);
	regions = framework_regions_of(build, question->process, &map, seen);
	rows = arena_zeroed(build->arena, regions.count + 1, sizeof *rows);
	if (seen) {
		rows[holding->fragmentation.framework_count++] = measure_pytorch(build, question, &map, holding);
		holding->framework_known = true;
		holding->framework_basis = rows[0].basis;
		sum_slack(holding);
	}
	if (regions.count)
		memcpy(rows + holding->fragmentation.framework_count, regions.items, regions.count * sizeof *rows);
	holding->fragmentation.framework_count += regions.count;
	holding->fragmentation.frameworks = rows;
	if (question->with_roles)
		roles_sum(build, question->process, question->device, live, &map, holding);
	framework_map_fini(&map);
}
