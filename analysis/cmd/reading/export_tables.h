/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cuflight export` of tables: many recordings, one process at a time.
 *
 * Contract: returns the exit status: 0, 2 after an error that is printed, 3 when some recordings
 * were left out. Memory is that of one recording.
 */
#pragma once

#include "analysis/cmd/reading/places.h"
#include "analysis/facts/facts.h"
#include "analysis/symbols/symbols.h"
#include "analysis/facts/history/rows.h"

/* Exit statuses, as in cmd.h. */
enum { EXPORT_FINE = 0, EXPORT_FAILED = 2, EXPORT_PARTIAL = 3 };

struct export_tables {
	const struct opts *opts;
	struct places_request places;
	struct facts_options facts; /* the moment */
	struct rows_filter filter;  /* without the device, which each recording numbers */
	uint64_t device;            /* the driver's number; CUF_UNKNOWN: all */
	struct symbols *symbols;
};

/* Fills places from --to, --table, -o and -f. 0, or -1 after an error. */
int export_tables_read(struct export_tables *tables, const struct opts *opts);
int export_tables(struct export_tables *tables);
