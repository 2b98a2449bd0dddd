/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All tables, in the order of the manual. Contract: constant data; table_all is NULL-terminated.
 */
#pragma once

#include "analysis/view/json/shapes.h"
#include "analysis/view/tables/sheet.h"

extern const struct table table_processes, table_coverage, table_counters, table_devices,
	table_owners, table_regions, table_sites, table_frames, table_incidents, table_phases,
	table_blocks, table_events;
extern const struct table *const table_all[];

const struct table *table_find(const char *name); /* NULL: none */

/* The first column of every table. */
#define KEY_COLUMN { "process", .type = FIELD_TEXT, .base = sheet_of, IN(struct sheet, key), \
	.meaning = "which process: HOST.PID.START; joins the tables" }

/* Free ranges by layer. */
#define LAYER_COLUMNS(member) \
	{ "device_upper_bound_bytes", NUMBER(member[LAYER_DEVICE].bytes), \
	  .meaning = "free bytes: no request can be larger" }, \
	{ "measured_bytes", NUMBER(member[LAYER_MEASURED].bytes), \
	  .meaning = "largest request that succeeded when it was probed" }, \
	{ "page_hole_bytes", NUMBER(member[LAYER_PAGE].bytes), \
	  .meaning = "largest free range inside 2 MiB pages" }, \
	{ "pool_bytes", NUMBER(member[LAYER_POOL].bytes), \
	  .meaning = "largest gap between live blocks of one pool" }, \
	{ "vmm_bytes", NUMBER(member[LAYER_VMM].bytes), \
	  .meaning = "largest unmapped run of one reservation" }, \
	{ "segment_bytes", NUMBER(member[LAYER_SEGMENT].bytes), \
	  .meaning = "largest hole inside a framework's segment" }, \
	{ "host_bytes", NUMBER(member[LAYER_HOST].bytes), \
	  .meaning = "largest free extent of the host's allocator" }
