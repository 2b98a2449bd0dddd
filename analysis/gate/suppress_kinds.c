/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of rules. A new one is a row here. */
#include <string.h>
#include "analysis/gate/suppress_rules.h"

#define GROUP(group) (1u << GROUP_##group)
#define ALL_GROUPS ((1u << GROUP_MAX) - 1)
#define MEASURES(first, last) (((2u << MEASURE_##last) - 1) & ~((1u << MEASURE_##first) - 1))
#define ENDS MEASURES(DEVICE_END, PYTHON_END)
#define LEAKS MEASURES(DEVICE_LEAK, REQUEST_GROWTH)
#define ALL_MEASURES ((1u << MEASURE_MAX) - 1)
#define INCIDENTS MEASURES(INCIDENTS_FATAL, INCIDENTS_RECOVERED)

/* A rule applies where both its measures and its groups do. Groups are those of the call site. */
const struct suppress_kind suppress_kinds[] = {
	{ "leak", LEAKS | ENDS, ALL_GROUPS,
	  "what remains: at the end, or from request to request" },
	{ "once", ENDS, ALL_GROUPS, "what remains at the end, but no proven leak" },
	{ "growth", LEAKS, ALL_GROUPS, "proven leaks and growth per request" },
	{ "incident", INCIDENTS, ~0u, "requests that failed at this place" },
	{ "device", ALL_MEASURES, GROUP(DEVICE) | GROUP(FRAMEWORK), "GPU memory, also its peak" },
	{ "framework", ALL_MEASURES, GROUP(FRAMEWORK), "blocks of a framework, also their peak" },
	{ "pinned", ALL_MEASURES, GROUP(PINNED), "page-locked memory, also its peak" },
	{ "managed", ALL_MEASURES, GROUP(MANAGED), "managed memory, also its peak" },
	{ "host", ALL_MEASURES, GROUP(HOST) | GROUP(PYTHON), "host memory, also its peak" },
	{ "python", ALL_MEASURES, GROUP(PYTHON), "host memory of Python code, also its peak" },
	{ NULL, 0, 0, NULL },
};

const struct suppress_kind *suppress_kind_find(const char *name)
{
	for (const struct suppress_kind *kind = suppress_kinds; kind->name; kind++)
		if (!strcmp(kind->name, name))
			return kind;
	return NULL;
}
