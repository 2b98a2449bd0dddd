/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of one process on their way to a file. A table begins a row, appends its cells in the
 * order of its columns, and ends it.
 *
 * Contract: the facts are those of one recording: process 0. Texts are made valid UTF-8 here and
 * cut to TABLE_TEXT_MAX; they live until sheet_end. Unknown values (CUF_UNKNOWN, FACT_NONE, NAN,
 * NULL) become nulls. An integer beyond 63 bits is unknown: no recorder writes one.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/facts/places.h"
#include "analysis/facts/rows/rows.h"
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
	size_t count;
	char *texts; /* room for TABLE_COLUMNS_MAX texts of TABLE_TEXT_MAX */
	size_t text_bytes;
};

/* Begins a row with the key of the process, which is the first column of every table. */
void sheet_begin(struct sheet *sheet);
void cell_text(struct sheet *sheet, const char *text);
void cell_word(struct sheet *sheet, const char *text); /* also "" is a null */
void cell_number(struct sheet *sheet, uint64_t number);
void cell_positive(struct sheet *sheet, uint64_t number); /* also 0 is a null */
void cell_index(struct sheet *sheet, uint32_t number); /* FACT_NONE: null */
void cell_real(struct sheet *sheet, double real);
void cell_flag(struct sheet *sheet, bool flag);
void cell_time(struct sheet *sheet, uint64_t time_ns);
void cell_null(struct sheet *sheet);
void sheet_end(struct sheet *sheet);

/* Does the filter want rows of this kind (enum cuf_kind), of this device (FACT_NONE: of none)? */
bool sheet_wants(const struct sheet *sheet, uint32_t kind, uint32_t device);
/* What several tables have: the driver's number of a device, the id of a stack. */
void cell_device(struct sheet *sheet, uint32_t device);
void cell_stack(struct sheet *sheet, const struct fact_stack *stack);

static inline const struct fact_process *sheet_process(const struct sheet *sheet)
{
	return &sheet->facts->processes[0];
}

/* A table's descriptor from its array of columns. */
#define TABLE(identifier, table_name, sentence, array, function) \
	const struct table identifier = { table_name, sentence, array, \
					  sizeof array / sizeof *array, function }
