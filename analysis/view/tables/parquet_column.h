/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One column of a row group of Parquet: collects values, then writes them as a chunk: a dictionary
 * page where texts repeat, and one data page. All columns are optional, in no list.
 *
 * Contract: heap memory, freed by parquet_column_fini. parquet_column_write empties the column for
 * the next row group; write errors stay in the stream. The caller keeps a row group below 1 GiB.
 * Texts are valid UTF-8.
 */
#pragma once

#include <stdio.h>
#include "analysis/base/hash_index.h"
#include "analysis/view/tables/bytes.h"
#include "analysis/view/tables/table.h"
#include "analysis/view/tables/thrift.h"

/* As Parquet numbers them. */
enum parquet_type { PARQUET_BOOLEAN = 0, PARQUET_INT64 = 2, PARQUET_DOUBLE = 5,
	PARQUET_BYTE_ARRAY = 6 };
enum parquet_type parquet_type_of(enum column_type type);

struct parquet_column {
	const struct field *column;
	enum column_type type;
	struct bytes known;      /* one byte a row: 0 null, 1 a value follows */
	struct bytes values;     /* INT64, DOUBLE: 8 bytes; BOOLEAN: 1; texts: 4, the number */
	struct bytes texts;      /* each different text once: its length in 4 bytes, then itself */
	struct bytes starts;     /* 8 bytes each: where a text begins in `texts` */
	struct hash_index index; /* of a text to its number, from 1 */
	uint64_t plain_bytes;    /* of all texts, if they were written one by one */
	uint64_t nulls;
	bool any;                /* a value was seen: the two below are set */
	int64_t least, most;     /* of numbers; of texts their places in `texts` */
	double least_real, most_real;
};

void parquet_column_init(struct parquet_column *column, const struct field *of);
void parquet_column_fini(struct parquet_column *column);
void parquet_column_add(struct parquet_column *column, const struct cell *cell);
/* Memory in use, for whoever decides when a row group is large enough. */
size_t parquet_column_bytes(const struct parquet_column *column);

/* Where the next byte of the file goes; moves on. */
struct parquet_out { FILE *file; uint64_t offset; struct bytes page, packed; };
void parquet_out_add(struct parquet_out *out, const void *data, size_t count);

/* Writes the chunk and appends its ColumnChunk to the list that is open in `meta`. Sizes are those
 * of the chunk with its page headers. */
struct parquet_sizes { uint64_t plain_bytes, written_bytes; };
struct parquet_sizes parquet_column_write(struct parquet_column *column, struct parquet_out *out,
					  struct thrift *meta);
