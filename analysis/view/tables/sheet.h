/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one process on their way to a file.
 *
 * Contract: the facts are those of one recording: process 0. Texts are made valid UTF-8 here and
 * cut to TABLE_TEXT_MAX. Unknown values (CUF_UNKNOWN, FACT_NONE, NAN,
 * NULL) become nulls. An integer beyond 63 bits is unknown: no recorder writes one.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/facts/places.h"
#include "analysis/facts/history/rows.h"
#include "analysis/view/tables/table.h"

struct sheet {
	const struct facts *facts;
	struct rows *rows;            /* streams of blocks and events, filtered */
	struct frames *frames;
	struct places *places;
	const char *key;              /* of the process: process_key.h */
	bool at_moment;               /* blocks: those that were live at the moment of the facts */
	const struct table *table;
	void (*put)(void *state, const struct table *table, const struct cell *cells);
	void *state;
	struct cell cells[TABLE_COLUMNS_MAX];
	char *texts; /* room for TABLE_COLUMNS_MAX texts of TABLE_TEXT_MAX */
	size_t text_bytes;
};

/* One row: its cells are the columns of the table, as fields of the struct. */
void sheet_row(struct sheet *sheet, const void *row);

/* Does the filter want rows of this kind (enum cuf_kind), of this device (FACT_NONE: of none)? */
bool sheet_wants(const struct sheet *sheet, uint32_t kind, uint32_t device);
/* For columns of the sheet itself. */
const void *sheet_of(const struct fields *fields, const void *row);

static inline const struct fact_process *sheet_process(const struct sheet *sheet)
{
	return &sheet->facts->processes[0];
}

/* A table's descriptor from its array of columns. */
#define TABLE(identifier, table_name, sentence, array, function) \
	_Static_assert(sizeof array / sizeof *array <= TABLE_COLUMNS_MAX, "too many columns"); \
	const struct table identifier = { table_name, sentence, array, \
					  sizeof array / sizeof *array, function }
