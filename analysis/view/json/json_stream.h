/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document that is written while it is made, so that its size never is in memory. The outer
 * objects and arrays are opened and closed here; what is inside one row is a small tree of json-c.
 * Contract: one thread; key is NULL inside an array and the outermost value. Nothing more is
 * written once the document has reached its limit or the stream has failed: json_stream_end()
 * tells. Write errors stay in the stream for its owner.
 */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH_MAX = 16 };

struct json_stream {
	FILE *out;
	uint64_t bytes, bytes_max; /* written so far, and the limit of the document */
	unsigned depth;
	bool any[JSON_DEPTH_MAX];  /* this object or array has a member */
	char close[JSON_DEPTH_MAX];
	bool stopped;
	size_t rows_max; /* of a list */
	int style; /* JSON_C_TO_STRING_*: PRETTY, unless it is set to PLAIN or PRETTY and SPACED */
	unsigned lines; /* members at this depth have a line each, whatever the style, and what is
			 * inside them has none of its own; 0: as the style has it */
};

void json_stream_begin(struct json_stream *stream, FILE *out, uint64_t bytes_max);
/* Ends the line of the document. False: it is not whole. */
bool json_stream_end(struct json_stream *stream);

void json_stream_object(struct json_stream *stream, const char *key);
void json_stream_array(struct json_stream *stream, const char *key);
void json_stream_close(struct json_stream *stream); /* what was opened last */

/* Whoever calls it writes the value to stream.out. */
void json_stream_key(struct json_stream *stream, const char *key);
/* A complete value; releases it. NULL: null. */
void json_stream_value(struct json_stream *stream, const char *key, struct json_object *value);

/* Rows of one list, unless json_stream.rows_max is set to fewer. More are left out, and a key next
 * to the list counts them. */
enum { JSON_ROWS_MAX = 4096 };
/* Whether row `i` of `count` is to be written: for the condition of a loop. */
bool json_stream_wants(const struct json_stream *stream, size_t i, size_t count);
/* "KEY_left_out": how many of count rows are not in the list. */
void json_stream_left_out(struct json_stream *stream, const char *key, size_t count);
