/* SPDX-License-Identifier: Apache-2.0 */
/* Documents written as a stream: the same text as a tree of json-c, within their limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/view/json/json_parts.h"

static char *text;
static size_t text_bytes;

static void begin(struct json_stream *stream, uint64_t bytes_max)
{
	free(text);
	json_stream_begin(stream, open_memstream(&text, &text_bytes), bytes_max);
}

static bool end(struct json_stream *stream)
{
	bool whole = json_stream_end(stream);
	fclose(stream->out);
	return whole;
}

/* Nested lists, an empty one, null, and a value of several lines. */
static void write_sample(struct json_stream *stream)
{
	struct json_object *row = json_tokener_parse("{\"deep\":[1,{\"a\":\"x/y\"}],\"b\":null}");
	json_stream_object(stream, NULL);
	json_stream_value(stream, "first", json_text("line\nend \"quoted\" \x1b"));
	json_stream_array(stream, "rows");
	json_stream_value(stream, NULL, row);
	json_stream_value(stream, NULL, NULL);
	json_stream_close(stream);
	json_stream_array(stream, "empty");
	json_stream_close(stream);
	json_stream_object(stream, "inner");
	json_stream_value(stream, "p", json_number(1));
	json_stream_value(stream, "q", json_tokener_parse("[2]"));
	json_stream_close(stream);
	json_stream_value(stream, "last", json_number(CUF_UNKNOWN));
	json_stream_close(stream);
}

static void remove_blanks(char *all)
{
	char *to = all;
	for (const char *from = all; *from; from++)
		if (*from != ' ' && *from != '\n')
			*to++ = *from;
	*to = '\0';
}

/* In each style that documents have. */
static void expect_text_of_a_tree(int style)
{
	struct json_stream stream;
	struct json_object *tree;
	char *as_tree;
	begin(&stream, 10000);
	stream.style = style;
	write_sample(&stream);
	assert_true(end(&stream));
	tree = json_tokener_parse(text);
	assert_non_null(tree);
	assert_true(asprintf(&as_tree, "%s\n",
			     json_object_to_json_string_ext(tree,
				     style | JSON_C_TO_STRING_NOSLASHESCAPE)) > 0);
	if (strstr(as_tree, "[]")) { /* as json-c writes an empty list from 0.17 on */
		remove_blanks(text);
		remove_blanks(as_tree);
	}
	assert_string_equal(text, as_tree);
	assert_int_equal(stream.bytes, text_bytes);
	free(as_tree);
	json_object_put(tree);
}

static void test_text__is_that_of_a_tree(void **state)
{
	(void)state;
	expect_text_of_a_tree(JSON_C_TO_STRING_PRETTY);
	expect_text_of_a_tree(JSON_C_TO_STRING_PLAIN);
	expect_text_of_a_tree(JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
}

/* One byte less than it needs, and the document is not whole, and not longer than allowed. */
static void test_limit__is_never_exceeded(void **state)
{
	struct json_stream stream;
	size_t needed;
	(void)state;
	begin(&stream, 10000);
	write_sample(&stream);
	assert_true(end(&stream));
	needed = text_bytes;
	for (size_t limit = 0; limit < needed; limit++) {
		begin(&stream, limit);
		write_sample(&stream);
		assert_false(end(&stream));
		assert_true(text_bytes <= limit);
		assert_false(json_stream_wants(&stream, 0, 1));
	}
	begin(&stream, needed);
	write_sample(&stream);
	assert_true(end(&stream));
}

static void test_failed_write__stops_the_document(void **state)
{
	struct json_stream stream;
	FILE *full = fopen("/dev/full", "w");
	(void)state;
	assert_non_null(full);
	setvbuf(full, NULL, _IONBF, 0);
	json_stream_begin(&stream, full, 10000);
	write_sample(&stream);
	assert_false(json_stream_end(&stream));
	assert_true(ferror(full));
	fclose(full);
}

static void test_rows__are_limited_and_counted(void **state)
{
	struct json_stream stream;
	struct json_object *document, *rows, *left_out;
	const size_t count = JSON_ROWS_MAX + 5;
	(void)state;
	begin(&stream, 1 << 20);
	json_stream_object(&stream, NULL);
	json_stream_array(&stream, "rows");
	for (size_t i = 0; json_stream_wants(&stream, i, count); i++)
		json_stream_value(&stream, NULL, json_number(i));
	json_stream_close(&stream);
	json_stream_left_out(&stream, "rows_left_out", count);
	json_stream_left_out(&stream, "none_left_out", 3);
	json_stream_close(&stream);
	assert_true(end(&stream));
	document = json_tokener_parse(text);
	assert_true(json_object_object_get_ex(document, "rows", &rows));
	assert_int_equal(json_object_array_length(rows), JSON_ROWS_MAX);
	assert_true(json_object_object_get_ex(document, "rows_left_out", &left_out));
	assert_int_equal(json_object_get_uint64(left_out), 5);
	assert_true(json_object_object_get_ex(document, "none_left_out", &left_out));
	assert_int_equal(json_object_get_uint64(left_out), 0);
	json_object_put(document);
}

static void test_long_text__says_what_is_missing(void **state)
{
	char *all = calloc(1, JSON_TEXT_MAX + 102), expected[64];
	struct json_object *value;
	const char *found;
	(void)state;
	memset(all, 'n', JSON_TEXT_MAX);
	value = json_text(all);
	assert_string_equal(json_object_get_string(value), all);
	json_object_put(value);
	/* a character of two bytes at the limit is not cut in half */
	memset(all, 'n', JSON_TEXT_MAX + 101);
	memcpy(all + JSON_TEXT_MAX - 1, "\xc3\xa9", 2);
	value = json_text(all);
	found = json_object_get_string(value);
	snprintf(expected, sizeof expected, "nn... (%d bytes more)", 102);
	assert_int_equal(strlen(found), JSON_TEXT_MAX - 3 + strlen(expected));
	assert_string_equal(found + JSON_TEXT_MAX - 3, expected);
	json_object_put(value);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text__is_that_of_a_tree),
		cmocka_unit_test(test_limit__is_never_exceeded),
		cmocka_unit_test(test_failed_write__stops_the_document),
		cmocka_unit_test(test_rows__are_limited_and_counted),
		cmocka_unit_test(test_long_text__says_what_is_missing),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	free(text);
	return failed;
}
