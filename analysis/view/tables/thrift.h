/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compact protocol of Thrift, as far as the metadata of Parquet needs it.
 *
 * Contract: fields of a struct come in ascending order of their ids. What begins is ended:
 * thrift_struct and thrift_element by thrift_end. An element of a list has no field id. The
 * outermost struct has begun with a zeroed writer.
 */
#pragma once

#include <stdbool.h>
#include "analysis/view/tables/bytes.h"

enum { THRIFT_DEPTH_MAX = 8 };
enum thrift_type { THRIFT_I8 = 3, THRIFT_I16 = 4, THRIFT_I32 = 5, THRIFT_I64 = 6,
	THRIFT_BINARY = 8, THRIFT_LIST = 9, THRIFT_STRUCT = 12 };

struct thrift {
	struct bytes bytes;
	int last[THRIFT_DEPTH_MAX]; /* field of each open struct */
	unsigned depth;
};

void thrift_fini(struct thrift *thrift);
void thrift_bool(struct thrift *thrift, int field, bool value);
void thrift_i8(struct thrift *thrift, int field, int8_t value);
void thrift_i32(struct thrift *thrift, int field, int32_t value);
void thrift_i64(struct thrift *thrift, int field, int64_t value);
void thrift_binary(struct thrift *thrift, int field, const void *data, size_t count);
void thrift_text(struct thrift *thrift, int field, const char *text);
void thrift_struct(struct thrift *thrift, int field);
/* A struct without fields, as unions have them for their choices. */
void thrift_empty(struct thrift *thrift, int field);
void thrift_list(struct thrift *thrift, int field, enum thrift_type type, size_t count);
/* Elements of the list that was begun last. */
void thrift_element(struct thrift *thrift);
void thrift_element_i32(struct thrift *thrift, int32_t value);
void thrift_element_text(struct thrift *thrift, const char *text);
/* Ends the struct that was begun last, or the outermost one. */
void thrift_end(struct thrift *thrift);
