/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's own view of its memory at a moment, put together of its reports and of the driver's
 * blocks. */
#include "analysis/facts/passes/framework_facts.h"

#include <string.h>
#include "analysis/measure/framework_segments.h"
#include "analysis/base/key_values.h"
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/roles.h"

/* META FRAMEWORK comes in pieces, as things are learnt: the last text that has a key has its value.
 */
static const char *told(const struct facts *facts, uint32_t process, const char *key,
			const char *otherwise)
{
	const struct fact_process *recorded = &facts->processes[process];
	for (size_t i = recorded->text_count; i--;) {
		const char *value;
		size_t bytes;

		if (recorded->texts[i].type != CUF_META_FRAMEWORK)
			continue;
		value = key_value(recorded->texts[i].text, key, &bytes);
		if (value && bytes)
			return arena_text(facts->arena, value, bytes);
	}
	return otherwise;
}

/*
 * Streams keep their free blocks to themselves, graphs their pools, and no report states whose a
 * block is: where there may be any, the largest hole is a bound. It is exact where the recorder
 * looked for streams and saw none.
 */
static bool may_have_streams(const struct facts *facts, uint32_t process)
{
	return strcmp(told(facts, process, "streams", "1"), "0") != 0;
}

/* Free memory inside segments, by the kind of driver memory that they are made of. */
static void take_slack(const struct framework_map *map, struct usage *usage)
{
	for (size_t i = 0; i < map->range_count; i++) {
		const struct framework_range *range = &map->ranges[i];
		enum fact_owner owner = owner_of_block(range->kind);
		if (range->is_segment && owner != OWNER_MAX && range->bytes > range->live_bytes)
			usage->slack_bytes[owner] += range->bytes - range->live_bytes;
	}
}

/* The replay has gaps: the framework's counters stand in, and the slack is taken out of what the
 * segments are made of. */
static void estimate_slack(const struct fact_framework *framework, struct usage *usage)
{
	static const enum fact_owner parts[] = { OWNER_DEVICE, OWNER_VMM, OWNER_ASYNC };
	uint64_t left = 0;

	if (framework->reserved_bytes != CUF_UNKNOWN)
		left = subtract_to_zero(framework->reserved_bytes, framework->allocated_bytes);
	memset(usage->slack_bytes, 0, sizeof usage->slack_bytes);
	for (size_t i = 0; i < sizeof parts / sizeof *parts && left; i++) {
		uint64_t most = usage->bytes[parts[i]], taken = least_of(left, most);
		usage->slack_bytes[parts[i]] = taken;
		left -= taken;
	}
}

/* The map is exact if both rings are complete and every block was found inside a segment.
 * Otherwise the framework's counters at the incident, or its last report before it, replace the
 * sums. */
static void settle_totals(const struct framework_question *question,
			  const struct run_process *process, uint64_t segment_bytes,
			  const struct framework_map *map, struct fact_framework *framework)
{
	struct framework_report report = framework_reported(process->events, question->device,
							    question->seq);
	uint64_t live_bytes = 0;
	for (size_t i = 0; i < map->block_count; i++)
		live_bytes += map->blocks[i].bytes;
	framework->allocated_bytes = live_bytes;
	framework->reserved_bytes = segment_bytes;
	framework->basis = BASIS_OBSERVED;
	if (question->exact.device && question->exact.framework &&
	    live_bytes == framework->placed_bytes)
		return;
	framework->basis = BASIS_ESTIMATED;
	if (question->incident && question->incident->framework_allocated_bytes != CUF_UNKNOWN) {
		report.allocated_bytes = question->incident->framework_allocated_bytes;
		report.reserved_bytes = question->incident->framework_reserved_bytes;
	}
	if (report.allocated_bytes != CUF_UNKNOWN) {
		framework->allocated_bytes = report.allocated_bytes;
		framework->reserved_bytes = report.reserved_bytes;
	}
}

/* One row for PyTorch's allocator: totals, segments, pins, and the largest gap. */
static struct fact_framework measure_pytorch(const struct facts *facts,
					     const struct framework_question *question,
					     const struct framework_map *map, struct usage *usage)
{
	const struct run_process *process = &facts->run->processes[question->process];
	struct fact_framework framework = {
		.process = question->process,
		.name = told(facts, question->process, "framework", "PyTorch"),
		.version = told(facts, question->process, "version", ""),
		.backend = told(facts, question->process, "backend", "")
	};
	uint64_t segment_bytes = framework_segments_measure(map, question->process,
							    question->requested_bytes,
							    facts->arena, &framework);
	settle_totals(question, process, segment_bytes, map, &framework);
	framework.largest_hole.words = "upper bound";
	if (framework.basis == BASIS_OBSERVED && !may_have_streams(facts, question->process))
		framework.largest_hole.words = "exact";
	if (!framework.segment_count)
		framework.largest_hole = (struct fact_layer){ CUF_UNKNOWN, "" };
	take_slack(map, usage);
	if (framework.basis == BASIS_ESTIMATED)
		estimate_slack(&framework, usage);
	return framework;
}

/* Slack cannot exceed what the row holds: damaged recordings may have overlapping blocks. */
static void sum_slack(struct usage *held)
{
	for (unsigned i = 0; i < OWNER_MAX; i++) {
		if (held->slack_bytes[i] > held->bytes[i])
			held->slack_bytes[i] = held->bytes[i];
		held->bytes[OWNER_FRAMEWORK_SLACK] += held->slack_bytes[i];
	}
}

/* Did the framework report anything up to the moment? */
static bool is_seen(const struct facts *facts, const struct framework_question *question,
		    const struct framework_map *map)
{
	return map->block_count ||
	       framework_reported(facts->run->processes[question->process].events, question->device,
				  question->seq)
			       .allocated_bytes != CUF_UNKNOWN;
}

/* PyTorch comes first where it reports. Regions of allocators that report nothing follow. */
void framework_facts(const struct facts *facts, struct block_memory *memory,
		     const struct framework_question *question,
		     const struct liveset *live, struct usage *usage)
{
	struct framework_map map;
	struct framework_regions regions;
	struct fact_framework *rows;
	bool seen;
	struct device_blocks blocks = { facts->run->processes[question->process].reader, live,
					question->device, question->process };
	framework_map_make(&blocks, &map);
	seen = is_seen(facts, question, &map);
	if (seen)
		framework_marks_set(&memory[question->process].marks,
				    &facts->run->processes[question->process], &map);
	regions = framework_regions_of(facts, question->process, &map, seen);
	rows = arena_zeroed(facts->arena, regions.count + 1, sizeof *rows);
	if (seen) {
		rows[usage->fragmentation.framework_count++] = measure_pytorch(facts, question,
									       &map, usage);
		usage->framework_known = true;
		usage->framework_basis = rows[0].basis;
		sum_slack(usage);
	}
	if (regions.count)
		memcpy(rows + usage->fragmentation.framework_count, regions.items,
		       regions.count * sizeof *rows);
	usage->fragmentation.framework_count += regions.count;
	usage->fragmentation.frameworks = rows;
	if (question->with_roles)
		roles_sum(roles_of(memory, facts, question->process), question->device, live, &map,
			  usage);
	framework_map_fini(&map);
}
