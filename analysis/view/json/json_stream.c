/* SPDX-License-Identifier: Apache-2.0 */
/* Writes brackets and indentation itself; values are printed by json-c. */
#include "analysis/view/json/json_stream.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"

/* The limit is checked before the bytes are written, so that no document exceeds it. */
static void put(struct json_stream *stream, const char *text, size_t bytes)
{
	if (stream->stopped)
		return;
	if (bytes > stream->bytes_max - stream->bytes ||
	    fwrite(text, 1, bytes, stream->out) != bytes) {
		stream->stopped = true;
		return;
	}
	stream->bytes += bytes;
}

/* For what is in an object or array whose members are at `inner`. */
static void put_line_start(struct json_stream *stream, unsigned depth, unsigned inner)
{
	static const char spaces[] = "\n                                ";
	bool is_pretty = stream->style & JSON_C_TO_STRING_PRETTY;

	if (stream->lines ? inner <= stream->lines : is_pretty)
		put(stream, spaces, 1 + (is_pretty ? 2 * (size_t)depth : 0));
	else if (depth == inner && stream->any[depth - 1] &&
		 stream->style & JSON_C_TO_STRING_SPACED)
		put(stream, " ", 1);
}

/* The lines of a value stand as deep as the object that it is in. Strings have no line ends. */
static void put_value(struct json_stream *stream, const char *text)
{
	const char *end;

	while ((end = strchr(text, '\n'))) {
		put(stream, text, (size_t)(end - text));
		put_line_start(stream, stream->depth, stream->depth);
		text = end + 1;
	}
	put(stream, text, strlen(text));
}

/* Everything before the value of a member. Keys are constants of ours: nothing to escape. */
static void begin_member(struct json_stream *stream, const char *key)
{
	if (!stream->depth)
		return;
	if (stream->any[stream->depth - 1])
		put(stream, ",", 1);
	put_line_start(stream, stream->depth, stream->depth);
	stream->any[stream->depth - 1] = true;
	if (!key)
		return;
	put(stream, "\"", 1);
	put(stream, key, strlen(key));
	put(stream, "\": ", stream->style & JSON_C_TO_STRING_SPACED ? 3 : 2);
}

void json_stream_key(struct json_stream *stream, const char *key)
{
	begin_member(stream, key);
}

static void open_bracket(struct json_stream *stream, const char *key, const char brackets[2])
{
	if (stream->depth == JSON_DEPTH_MAX)
		abort(); /* the document's own shape is too deep: a bug here */
	begin_member(stream, key);
	put(stream, brackets, 1);
	stream->any[stream->depth] = false;
	stream->close[stream->depth++] = brackets[1];
}

void json_stream_begin(struct json_stream *stream, FILE *out, uint64_t bytes_max)
{
	*stream = (struct json_stream){ .out = out, .bytes_max = bytes_max,
					.rows_max = JSON_ROWS_MAX,
					.style = JSON_C_TO_STRING_PRETTY };
}

bool json_stream_end(struct json_stream *stream)
{
	put(stream, "\n", 1);
	return !stream->stopped;
}

void json_stream_object(struct json_stream *stream, const char *key)
{
	open_bracket(stream, key, "{}");
}

void json_stream_array(struct json_stream *stream, const char *key)
{
	open_bracket(stream, key, "[]");
}

/* An empty one is closed in a line of its own, too, as json-c does. */
void json_stream_close(struct json_stream *stream)
{
	stream->depth--;
	put_line_start(stream, stream->depth, stream->depth + 1);
	put(stream, &stream->close[stream->depth], 1);
}

/* Plain slashes: paths in the output can be copied as they are. json-c returns NULL when it has no
 * memory for the text. */
void json_stream_value(struct json_stream *stream, const char *key, struct json_object *value)
{
	const char *text = "null";

	if (value && !stream->stopped)
		text = json_object_to_json_string_ext(
			value, stream->style | JSON_C_TO_STRING_NOSLASHESCAPE);
	begin_member(stream, key);
	if (text)
		put_value(stream, text);
	else
		stream->stopped = true;
	json_object_put(value);
}

bool json_stream_wants(const struct json_stream *stream, size_t i, size_t count)
{
	return i < count && i < stream->rows_max && !stream->stopped;
}

void json_stream_left_out(struct json_stream *stream, const char *key, size_t count)
{
	json_stream_value(stream, key,
			  json_object_new_uint64(subtract_to_zero(count, stream->rows_max)));
}
