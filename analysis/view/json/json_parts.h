/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that JSON documents of ours are made of. Unknown is null. Texts are valid UTF-8 of at
 * most JSON_TEXT_MAX bytes; a longer one ends with the number of bytes that were left out.
 * Contract: json_add_* add a key to an object that takes ownership of the value; memory is
 * json-c's.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "analysis/facts/cause.h"
#include "analysis/facts/facts.h"
#include "analysis/facts/frames.h"
#include "analysis/view/json/json_stream.h"

/*
 * Values. json-c represents null by a NULL pointer, which every function here accepts and
 * may return.
 */
enum { JSON_TEXT_MAX = 16384 };
struct json_object *json_text(const char *text); /* NULL: null */
struct json_object *json_number(uint64_t number); /* CUF_UNKNOWN: null */
struct json_object *json_double(double number); /* not finite: null */

/* Keys. The object takes ownership of the value. */
void json_add(struct json_object *object, const char *key, struct json_object *value);
/* CUF_UNKNOWN: null */
void json_add_number(struct json_object *object, const char *key, uint64_t number);
/* UINT32_MAX: null */
void json_add_index(struct json_object *object, const char *key, uint32_t number);
/* not finite: null */
void json_add_double(struct json_object *object, const char *key, double number);
void json_add_text(struct json_object *object, const char *key, const char *text);  /* NULL: null */
/* Also "" is null: what has no name is unknown. */
void json_add_word(struct json_object *object, const char *key, const char *text);
/* 0 is null: process ids, line numbers, the numbers of incidents. */
void json_add_positive(struct json_object *object, const char *key, uint64_t number);
void json_add_bool(struct json_object *object, const char *key, bool value);
