/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The moment that devices, owners, fragmentation, host and call sites are reported for.
 * Contract: as in facts.h.
 */
#pragma once

#include "analysis/recording/fact_types.h"

enum fact_moment_kind { MOMENT_INCIDENT, MOMENT_END, MOMENT_AT, MOMENT_NOW, MOMENT_MAX };
extern const char *const moment_names[MOMENT_MAX]; /* incident end at now */

struct fact_moment {
	enum fact_moment_kind kind;
	uint64_t time_ns;
	uint32_t process; /* whose moment it is */
	uint64_t seq; /* in that process's recording */
	uint64_t incident; /* id; 0 unless kind is MOMENT_INCIDENT */
	enum fact_basis basis; /* estimated: events since then were overwritten */
};
