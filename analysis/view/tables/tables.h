/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables, in the order of the manual. Contract: constant data; table_all is NULL-terminated.
 */
#pragma once

#include "analysis/view/tables/sheet.h"

extern const struct table table_processes, table_coverage, table_counters, table_devices,
	table_owners, table_regions, table_sites, table_frames, table_incidents, table_phases,
	table_blocks, table_events;
extern const struct table *const table_all[];

const struct table *table_find(const char *name); /* NULL: none */

/* The first column of every table. */
#define KEY_COLUMN { "process", COLUMN_TEXT, "which process: HOST.PID.START; joins the tables" }
