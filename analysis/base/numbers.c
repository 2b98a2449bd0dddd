/* SPDX-License-Identifier: Apache-2.0 */
/* The one comparison that has no inline form. */
#include "analysis/base/numbers.h"

int compare_uint64(const void *a, const void *b)
{
	return compare_numbers(*(const uint64_t *)a, *(const uint64_t *)b);
}
