/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Parquet file of one table, written from the specification of the format (parquet.thrift and
 * Encodings.md of Apache Parquet): flat optional columns with logical types and statistics, one
 * page a chunk, compressed with zstd.
 *
 * Contract: one row group is in memory, at most some 16 MiB. parquet_end writes the footer and
 * frees everything; write errors stay in the stream for its owner. Texts are valid UTF-8. The file
 * is the same for the same rows.
 */
#pragma once

#include <stdio.h>
#include "analysis/view/tables/table.h"

struct parquet;
struct parquet *parquet_begin(FILE *file, const struct table *table);
void parquet_row(struct parquet *parquet, const struct cell *cells);
void parquet_end(struct parquet *parquet);
