/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the enums of host.h, as in the JSON. */
#include "analysis/facts/host.h"

const char *const host_part_names[PART_MAX] = { "malloc_live",	 "fragmented",	  "cached",
						"allocator",	 "python_objects",
						"python_arenas", "maps",
						"other",	 "stack",	  "files",
						"files_private", "shared",	  "recorder" };

const char *const host_verdict_names[HOST_VERDICT_MAX] = { "", "fine", "fragmented", "cached" };

const char *const host_fix_names[FIX_MAX] = { "malloc_trim", "MALLOC_ARENA_MAX", "separate",
					      "jemalloc", "decay" };
