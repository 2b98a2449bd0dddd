/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/symbols/library_names.h"

#include <stddef.h>
#include <string.h>

bool is_library_function(const char *name)
{
	static const char *const beginnings[] = {
		"std::", "void std::", "__gnu_cxx::", "operator new", "__cxxabiv1::",
	};

	for (size_t i = 0; name && i < sizeof beginnings / sizeof *beginnings; i++)
		if (!strncmp(name, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}
