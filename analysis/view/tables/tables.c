/* SPDX-License-Identifier: Apache-2.0 */
/* A new table is a descriptor next to the function that writes its sheet, and a line here. */
#include "analysis/view/tables/tables.h"

#include <string.h>

const struct table *const table_all[] = {
	&table_processes,
	&table_devices,
	&table_owners,
	&table_regions,
	&table_sites,
	&table_frames,
	&table_incidents,
	&table_phases,
	&table_counters,
	&table_coverage,
	&table_blocks,
	&table_events,
	NULL,
};

const char *const column_type_names[COLUMN_TYPES] = { "text", "integer", "real", "boolean",
						      "time" };

enum column_type column_type(const struct field *column)
{
	switch (column->type) {
	case FIELD_TEXT:
	case FIELD_WORD:
	case FIELD_NAME: return COLUMN_TEXT;
	case FIELD_REAL: return COLUMN_REAL;
	case FIELD_FLAG:
	case FIELD_ANSWER: return COLUMN_BOOLEAN;
	case FIELD_TIME: return COLUMN_TIME;
	default: return COLUMN_INTEGER;
	}
}

const struct table *table_find(const char *name)
{
	for (size_t i = 0; table_all[i]; i++)
		if (!strcmp(table_all[i]->name, name))
			return table_all[i];
	return NULL;
}
