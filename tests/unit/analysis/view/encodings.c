/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings of other people's formats: each against a reader written from its specification. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/view/export/pickle.h"
#include "analysis/view/export/proto.h"
#include "analysis/view/tables/bytes.h"
#include "analysis/view/tables/table_file.h"
#include "analysis/view/tables/thrift.h"

/* ---- Parquet's hybrid of runs and packed bits ---- */

static uint64_t read_varint(const uint8_t **at)
{
	uint64_t number = 0;
	unsigned shift = 0;

	do
		number |= (uint64_t)(**at & 0x7f) << shift;
	while (shift += 7, *(*at)++ & 0x80);
	return number;
}

static uint32_t read_bits(const uint8_t *bytes, size_t first, unsigned width)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < width; i++)
		number |= (uint32_t)(bytes[(first + i) / 8] >> (first + i) % 8 & 1) << i;
	return number;
}

/* Numbers read, at most `count`: the last packed group may be padded. */
static size_t read_hybrid(const struct bytes *in, uint32_t *numbers, size_t count, unsigned width)
{
	const uint8_t *at = in->at, *end = at + in->count;
	size_t done = 0;

	while (at < end) {
		uint64_t header = read_varint(&at), many = header >> 1;
		uint32_t run = 0;

		if (header & 1) {
			for (size_t i = 0; i < 8 * many && done < count; i++)
				numbers[done++] = read_bits(at, i * width, width);
			at += many * width;
			continue;
		}
		assert_true(done + many <= count);
		memcpy(&run, at, (width + 7) / 8);
		at += (width + 7) / 8;
		while (many--)
			numbers[done++] = run;
	}
	assert_ptr_equal(at, end);
	return done;
}

static uint32_t random_number(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	return (uint32_t)((state ^= state << 17) >> 20);
}

/* Runs of random lengths, so that both ways and their borders come. */
static void fill(uint32_t *numbers, size_t count, unsigned width)
{
	for (size_t i = 0; i < count;) {
		size_t run = random_number() % 2 ? 1 : random_number() % 40;
		uint32_t number = random_number() >> (32 - width);

		while (run-- && i < count)
			numbers[i++] = number;
	}
}

static void test_hybrid__is_read_back(void **state)
{
	enum { MOST = 300 };
	uint32_t numbers[MOST], found[MOST];

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		unsigned width = round % 32 + 1;
		size_t count = random_number() % MOST;
		struct bytes bytes = { 0 };

		fill(numbers, count, width);
		bytes_add_hybrid(&bytes, numbers, count, width);
		assert_int_equal(read_hybrid(&bytes, found, count, width), count);
		assert_memory_equal(found, numbers, count * sizeof *numbers);
		bytes_fini(&bytes);
	}
}

/* The example of the specification: 0 to 7 in three bits each. */
static void test_hybrid__packs_the_lowest_bits_first(void **state)
{
	static const uint32_t numbers[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	static const uint8_t expected[] = { 1 << 1 | 1, 0x88, 0xc6, 0xfa };
	struct bytes bytes = { 0 };

	(void)state;
	bytes_add_hybrid(&bytes, numbers, 8, 3);
	assert_int_equal(bytes.count, sizeof expected);
	assert_memory_equal(bytes.at, expected, sizeof expected);
	bytes_fini(&bytes);
	assert_int_equal(hybrid_width(0), 1);
	assert_int_equal(hybrid_width(7), 3);
	assert_int_equal(hybrid_width(8), 4);
	assert_int_equal(hybrid_width(UINT32_MAX), 32);
}

/* ---- Thrift's compact protocol ---- */

static void test_thrift__fields_are_deltas_and_numbers_zigzag(void **state)
{
	/* 1: i32 -1; 3: text "ab"; 4: struct { 1: true }; 6: list of i32 [64]; end */
	static const uint8_t expected[] = { 0x15, 0x01, 0x28, 2, 'a', 'b', 0x1c, 0x11, 0x00,
					    0x29, 0x15, 0x80, 0x01, 0x00 };
	struct thrift thrift = { .depth = 0 };

	(void)state;
	thrift_i32(&thrift, 1, -1);
	thrift_text(&thrift, 3, "ab");
	thrift_struct(&thrift, 4);
	thrift_bool(&thrift, 1, true);
	thrift_end(&thrift);
	thrift_list(&thrift, 6, THRIFT_I32, 1);
	thrift_element_i32(&thrift, 64);
	thrift_end(&thrift);
	assert_int_equal(thrift.bytes.count, sizeof expected);
	assert_memory_equal(thrift.bytes.at, expected, sizeof expected);
	thrift_fini(&thrift);
}

/* From 15 elements on the length is a number of its own. */
static void test_thrift__long_lists(void **state)
{
	static const uint8_t short_list[] = { 0x19, 0xe5 }, long_list[] = { 0x19, 0xf5, 15 };
	struct thrift thrift = { .depth = 0 };

	(void)state;
	thrift_list(&thrift, 1, THRIFT_I32, 14);
	assert_int_equal(thrift.bytes.count, sizeof short_list);
	assert_memory_equal(thrift.bytes.at, short_list, sizeof short_list);
	thrift_fini(&thrift);
	thrift_list(&thrift, 1, THRIFT_I32, 15);
	assert_int_equal(thrift.bytes.count, sizeof long_list);
	assert_memory_equal(thrift.bytes.at, long_list, sizeof long_list);
	thrift_fini(&thrift);
}

/* ---- protobuf ---- */

/* The examples of the encoding's own documentation: 150, "testing", a message, packed numbers. */
static void test_proto__is_as_documented(void **state)
{
	static const uint64_t packed[] = { 3, 270, 86942 };
	static const uint8_t expected[] = { 0x08, 0x96, 0x01, 0x12, 0x07, 't', 'e', 's', 't', 'i',
					    'n', 'g', 0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7,
					    0x05 };
	static const uint8_t outside[] = { 0x1a, sizeof expected };
	struct proto message = { 0 }, outer = { 0 };

	(void)state;
	proto_number(&message, 1, 150);
	proto_number(&message, 9, 0);
	proto_text(&message, 2, "testing");
	proto_packed(&message, 6, packed, 3);
	proto_packed(&message, 7, packed, 0);
	assert_int_equal(message.count, sizeof expected);
	assert_memory_equal(message.bytes, expected, sizeof expected);
	proto_message(&outer, 3, &message);
	assert_int_equal(outer.count, sizeof outside + sizeof expected);
	assert_memory_equal(outer.bytes, outside, sizeof outside);
	proto_clear(&message);
	proto_number(&message, 1, UINT64_MAX);
	assert_int_equal(message.count, 11);
	proto_fini(&message);
	proto_fini(&outer);
}

/* ---- pickle ---- */

static char *pickled;
static size_t pickled_bytes;

static void pickle_start(struct pickle *pickle)
{
	free(pickled);
	pickle_begin(pickle, open_memstream(&pickled, &pickled_bytes));
}

static void assert_pickled(struct pickle *pickle, const char *expected, size_t bytes)
{
	pickle_end(pickle);
	fclose(pickle->out);
	assert_int_equal(pickled_bytes, bytes);
	assert_memory_equal(pickled, expected, bytes);
}

/* Each border of the four sizes of numbers; from 2^63 on a ninth byte keeps the sign positive. */
static void test_pickle__numbers(void **state)
{
	static const char expected[] = "\x80\x02](K\xffM\x00\x01M\xff\xffJ\x00\x00\x01\x00"
				       "J\xff\xff\xff\x7f\x8a\x05\x00\x00\x00\x80\x00"
				       "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"
				       "\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00" "e.";
	static const uint64_t numbers[] = { 255, 256, 65535, 65536, INT32_MAX, 1ull << 31,
					    INT64_MAX, 1ull << 63 };
	struct pickle pickle;

	(void)state;
	pickle_start(&pickle);
	pickle_begin_list(&pickle);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		pickle_number(&pickle, numbers[i]);
	pickle_end_list(&pickle);
	assert_pickled(&pickle, expected, sizeof expected - 1);
}

/* A word is written once, and is number 0 of the memo from then on. */
static void test_pickle__words_are_repeated_by_number(void **state)
{
	static const char expected[] = "\x80\x02](}(X\x01\x00\x00\x00" "aq\x00K\x01u}(h\x00\x88ue.";
	struct pickle pickle;

	(void)state;
	pickle_start(&pickle);
	pickle_begin_list(&pickle);
	for (int second = 0; second < 2; second++) {
		pickle_begin_dict(&pickle);
		pickle_word(&pickle, "a");
		if (second)
			pickle_bool(&pickle, 1);
		else
			pickle_number(&pickle, 1);
		pickle_end_dict(&pickle);
	}
	pickle_end_list(&pickle);
	assert_pickled(&pickle, expected, sizeof expected - 1);
	free(pickled);
	pickled = NULL;
}

/* ---- times of tables ---- */

static void test_time__is_utc_to_the_microsecond(void **state)
{
	char text[TABLE_TIME_BYTES];

	(void)state;
	table_time(text, 0);
	assert_string_equal(text, "1970-01-01T00:00:00.000000Z");
	table_time(text, 1763820202118000999);
	assert_string_equal(text, "2025-11-22T14:03:22.118000Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hybrid__is_read_back),
		cmocka_unit_test(test_hybrid__packs_the_lowest_bits_first),
		cmocka_unit_test(test_thrift__fields_are_deltas_and_numbers_zigzag),
		cmocka_unit_test(test_thrift__long_lists),
		cmocka_unit_test(test_proto__is_as_documented),
		cmocka_unit_test(test_pickle__numbers),
		cmocka_unit_test(test_pickle__words_are_repeated_by_number),
		cmocka_unit_test(test_time__is_utc_to_the_microsecond),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
