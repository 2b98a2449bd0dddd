/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of DATA.md, part by part. Contract: each function returns a new value of json-c, and
 * writes its columns and texts to the tables of the struct data. Nothing is decided or measured.
 */
#pragma once

#include "analysis/facts/timeline/charts.h"
#include "analysis/facts/timeline/timeline.h"
#include "analysis/view/html/columns.h"
#include "analysis/view/html/tree.h"
#include "analysis/view/text/text.h"

struct data {
	const struct facts *facts;
	const struct timeline *timeline;
	const struct text *text; /* names places and holders */
	const uint32_t *row_of_site; /* site_rows.h */
	struct columns columns;
	struct strings strings;
	struct tree tree;
	size_t blocks_most;      /* rows of the table of blocks */
	size_t rows;             /* of each long list of the report */
};

/* Nanoseconds since the origin; CUF_UNKNOWN: -1. */
int64_t data_time(const struct data *data, uint64_t time_ns);
struct json_object *data_json_time(const struct data *data, uint64_t time_ns);

/* data_run.c */
struct json_object *data_names(void);
struct json_object *data_focus(const struct data *data);
struct json_object *data_holders(const struct data *data);
struct json_object *data_processes(const struct data *data);
struct json_object *data_devices(const struct data *data);
/* data_events.c */
struct json_object *data_moments(struct data *data);
struct json_object *data_incidents(struct data *data);
struct json_object *data_lanes(struct data *data);
/* data_sites.c */
struct json_object *data_sites(struct data *data);
struct json_object *data_values(struct data *data);
struct json_object *data_blocks(struct data *data);
struct json_object *data_ages(struct data *data);
/* data_charts.c */
struct json_object *data_charts(struct data *data);
