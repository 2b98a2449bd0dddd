/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats in which one file has one table: CSV, NDJSON, Parquet.
 *
 * Contract: begin, rows, end. Memory is bounded; end frees the state. Write errors stay in the
 * stream for its owner. Texts are valid UTF-8. A null is an empty field in CSV (an empty text is
 * ""), null in NDJSON, and a null in Parquet. TIME is in UTC to the microsecond.
 */
#pragma once

#include <stdio.h>
#include "analysis/view/tables/table.h"

struct table_file {
	void *(*begin)(FILE *file, const struct table *table);
	void (*row)(void *state, const struct cell *cells);
	void (*end)(void *state);
};

extern const struct table_file table_file_csv, table_file_ndjson, table_file_parquet;

/* "2026-11-22T14:03:22.118000Z" of CLOCK_REALTIME nanoseconds. */
enum { TABLE_TIME_BYTES = 64 };
void table_time(char out[TABLE_TIME_BYTES], int64_t time_ns);
