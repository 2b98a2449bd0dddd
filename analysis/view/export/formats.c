/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats. */
#include "analysis/view/export/formats.h"

#include <string.h>

const struct export_format *const export_formats[] = {
	&export_folded,
	&export_pprof,
	&export_perfetto,
	&export_torch_snapshot,
	&export_heaptrack,
	NULL,
};

const struct export_format *export_format_find(const char *name)
{
	for (size_t i = 0; export_formats[i]; i++)
		if (!strcmp(export_formats[i]->name, name))
			return export_formats[i];
	return NULL;
}
