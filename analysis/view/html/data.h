/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of DATA.md, part by part: tables of fields, from which the object is written and
 * DATA.md is made. Contract: as in fields.h; columns and texts go to the tables of the struct data
 * when it is their turn. Nothing is decided or measured.
 */
#pragma once

#include "analysis/facts/history/charts.h"
#include "analysis/facts/history/timeline.h"
#include "analysis/view/html/columns.h"
#include "analysis/view/html/tree.h"
#include "analysis/view/json/shapes.h"
#include "analysis/view/text/holders.h"
#include "analysis/view/text/text.h"

/* A table: rows of the struct that its shape describes. */
struct data_table { const void *rows; size_t count, left_out; };

struct data_focus { uint32_t process, device, incident; bool is_host; };

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
	const char *title, *screen, *full; /* the report as text */
	struct data_focus focus;
	struct holders holders;
	struct data_table table; /* that is written */
	void *made;              /* its rows, where they are made for it */
};

/* The whole shape of such a table: how many rows, and a column for each field of `rows_`. */
#define DATA_COLUMNS(rows_) \
	{ NULL, .type = FIELD_COLUMNS, .shape = &(rows_), .rows = data_columns, .size = 0 }
#define DATA_TABLE(name, rows_, ...) \
	static const struct field name##_fields[] = { \
		{ "count", .type = FIELD_NUMBER, IN(struct data_table, count) }, \
		DATA_COLUMNS(rows_), \
	}; \
	const struct shape name = { .fields = name##_fields, .count = 2, .meaning = __VA_ARGS__ }
/* An object of the page that a function makes when it is its turn: it fills tables of texts. */
#define MADE(shape_, base_) \
	.type = FIELD_OBJECT, .shape = &(shape_), .base = (base_), .size = 0

/* A column of its own: numbers that the struct has, or points to. */
#define SERIES(numbers, count_) .count_at = offsetof(OF, count_), .rows = data_series, \
	FIELD(COLUMN, false, numbers)
#define SERIES_HERE(numbers, count_) .is_array = true, SERIES(numbers, count_)
#define TIME_SERIES(numbers, count_) .is_pointer = true, SERIES(numbers, count_)

/* data_table.c */
size_t data_series(struct fields *fields, const struct field *field, const void *object);
/* Nanoseconds since the origin; CUF_UNKNOWN: -1. */
int64_t data_time(const struct data *data, uint64_t time_ns);
struct json_object *data_json_time(const struct data *data, uint64_t time_ns);
size_t data_columns(struct fields *fields, const struct field *field, const void *object);
/* The table that is written next. rows: freed with the next one. */
const struct data_table *data_table(struct data *data, void *rows, size_t count, size_t left_out);
const struct data_table *data_table_of(struct data *data, const void *rows, size_t count);

/* The object, made of `struct data`, which is also fields.state. */
extern const struct shape page_shape;

/* data_run.c */
extern const struct shape names_shape, page_focus_shape, page_holders_shape, page_process_shape,
	page_device_shape;
size_t data_processes(struct fields *fields, const struct field *field, const void *object);
void data_run_init(struct data *data); /* focus and holders, which holders_free frees */
/* data_events.c */
extern const struct shape moments_shape, incidents_shape, lanes_shape;
const void *data_moments(const struct fields *fields, const void *object);
const void *data_incidents(const struct fields *fields, const void *object);
const void *data_lanes(const struct fields *fields, const void *object);
/* data_sites.c */
extern const struct shape sites_shape, values_shape, blocks_shape, ages_shape;
const void *data_sites(const struct fields *fields, const void *object);
const void *data_values(const struct fields *fields, const void *object);
const void *data_blocks(const struct fields *fields, const void *object);
size_t data_ages(struct fields *fields, const struct field *field, const void *object);
/* tree.c */
extern const struct shape frames_shape, nodes_shape;
const void *data_frames(const struct fields *fields, const void *object);
const void *data_nodes(const struct fields *fields, const void *object);
/* data_charts.c */
extern const struct shape chart_shape;
size_t data_charts(struct fields *fields, const struct field *field, const void *object);
