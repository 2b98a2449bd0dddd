/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes share, from the first one to the last. */
#include "analysis/facts/passes/build.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"
#include "analysis/measure/framework_segments.h"
#include "analysis/facts/passes/roles.h"
#include "analysis/measure/heap.h"

struct build build_begin(struct run *run, struct facts *facts, const struct facts_options *options)
{
	size_t count = run->count;
	struct build build = {
		.run = run,
		.facts = facts,
		.arena = run->arena,
		.exit_reasons = xalloc_zeroed(count, sizeof *build.exit_reasons),
		.ladders = xalloc_zeroed(count, sizeof *build.ladders),
		.host_memory = xalloc_zeroed(count, sizeof *build.host_memory),
		.host_maps = xalloc_zeroed(count, sizeof *build.host_maps),
		.marks = xalloc_zeroed(count, sizeof *build.marks),
		.event_passes = xalloc_zeroed(count, sizeof *build.event_passes),
		.roles = xalloc_zeroed(count, sizeof *build.roles),
		.hooks_used = xalloc_zeroed(count, sizeof *build.hooks_used),
		.quiet = xalloc_zeroed(count, sizeof *build.quiet),
	};

	if (options)
		build.options = *options;
	return build;
}

void build_end(struct build *build)
{
	for (size_t i = 0; i < build->run->count; i++) {
		ladders_fini(&build->ladders[i]);
		framework_marks_free(build->marks[i]);
		roles_free(build->roles[i]);
		free(build->quiet[i].items);
	}
	for (size_t i = 0; i < build->group_count; i++)
		free(build->groups[i].members);
	free(build->groups);
	free(build->hooks_used);
	free(build->quiet);
	free(build->marks);
	free(build->event_passes);
	free(build->roles);
	free(build->host_memory);
	free(build->host_maps);
	free(build->ladders);
	free(build->exit_reasons);
}
