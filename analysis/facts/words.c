/* SPDX-License-Identifier: Apache-2.0 */
/* Names of enums of the facts, as in the JSON. */
#include "analysis/facts/host.h"
#include "analysis/facts/moment.h"

const char *const moment_names[MOMENT_MAX] = { "incident", "end", "at", "now" };

const char *const host_part_names[PART_MAX] = { "malloc_live",	 "fragmented",	  "cached",
						"allocator",	 "python_objects",
						"python_arenas", "maps",
						"other",	 "stack",	  "files",
						"files_private", "shared",	  "recorder" };

const char *const host_verdict_names[HOST_VERDICT_MAX] = { "", "fine", "fragmented", "cached" };

const char *const host_fix_names[FIX_MAX] = { "malloc_trim", "MALLOC_ARENA_MAX", "separate",
					      "jemalloc", "decay" };
