/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of integers and interned texts, as DATA.md describes them.
 *
 * Contract: heap memory, freed by the _fini functions. Unknown numbers are CUF_UNKNOWN and become
 * -1; numbers beyond 2^52 are cut to it. Texts are cleaned to valid UTF-8 when they are written.
 * One thread.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/hash_index.h"

#define COLUMN_NUMBER_MOST ((int64_t)1 << 52)

/* The bytes of all columns, one after another. */
struct columns {
	uint8_t *bytes;
	size_t count, room;
};
void columns_fini(struct columns *columns);

/* One column that is being written. */
struct column {
	struct columns *to;
	size_t begin, numbers;
	int64_t last;
};
struct column column_begin(struct columns *columns);
void column_add(struct column *column, int64_t number);
void column_add_unsigned(struct column *column, uint64_t number);
/* An index: FACT_NONE becomes -1. */
void column_add_index(struct column *column, uint32_t index);
/* {"column": [offset, bytes, count]} */
struct json_object *column_end(const struct column *column);

/* A table of texts: equal texts have one number. */
struct strings {
	char **items;
	size_t count, room, bytes;
	struct hash_index index;
};
void strings_init(struct strings *strings);
void strings_fini(struct strings *strings);
/* FACT_NONE for NULL. Once the table has reached its limit, new texts are "(left out)". */
uint32_t strings_add(struct strings *strings, const char *text);
struct json_object *strings_json(const struct strings *strings);
