/* SPDX-License-Identifier: Apache-2.0 */
/* A struct that is described once: what is written of it, and what its schema tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/view/json/fields.h"
#include "interpose/abi/format.h"

enum colour { NO_COLOUR, RED, BLUE, COLOURS };
static const char *const colour_names[COLOURS] = { "", "red", "blue" };
static const struct words colour_words = WORDS("colour", colour_names, .meaning = "of the paint");

struct leaf { uint64_t bytes; };
struct tree {
	uint64_t bytes, count;
	uint32_t line;
	uint16_t rings;
	uint8_t boughs, twigs;
	int64_t delta;
	double share, low, high;
	bool is_old;
	const char *name, *why;
	char place[16];
	enum colour colour;
	uint64_t address;
	struct leaf leaf;
	const struct leaf *best;
	const struct leaf *leaves;
	size_t leaf_count;
	const char *const *texts;
	size_t text_count;
};

#define OF struct leaf
static const struct field leaf_fields[] = { { "bytes", NUMBER(bytes) } };
static const struct shape leaf_shape = SHAPE("leaf", leaf_fields, .meaning = "a leaf");
#undef OF

static struct json_object *twice(const struct fields *fields, const void *object)
{
	const struct tree *tree = object;

	return json_number(2 * tree->count);
}

static const void *old(const struct fields *fields, const void *object)
{
	const struct tree *tree = object;

	return tree->is_old ? tree : NULL;
}

static bool is_old(const struct fields *fields, const void *object)
{
	return old(fields, object) != NULL;
}

#define OF struct tree
static const struct field tree_fields[] = {
	{ "bytes", NUMBER(bytes) },
	{ "count", COUNT(count), LIMITS("minimum": 1) },
	{ "line", POSITIVE(line) },
	{ "rings", COUNT(rings) },
	{ "boughs", COUNT(boughs) },
	{ "delta", SIGNED(delta) },
	{ "share", REAL(share), LATER, "of all trees" },
	{ "range", INTERVAL(REALS, true, low, high) },
	{ "is_old", FLAG(is_old) },
	{ "name", TEXT(name) },
	{ "why", WORD(why) },
	{ "place", TEXT_HERE(place) },
	{ "colour", NAME(colour, colour_words) },
	{ "address", HEX(address) },
	{ "leaf", OBJECT(leaf, leaf_shape) },
	{ "best", POINTER(best, leaf_shape) },
	{ "twice", VALUE(NUMBER, twice) },
	{ "old_bytes", .base = old, NUMBER(bytes) },
	{ "old_count", .is_there = is_old, COUNT(count) },
	{ "leaves", LIST(leaves, leaf_count, leaf_shape), COUNTED },
	{ "texts", TEXTS(texts, text_count) },
};
static const struct shape tree_shape = SHAPE("tree", tree_fields, .meaning = "a tree");
#undef OF

static struct json_object *written(const struct tree *tree, size_t rows_max)
{
	struct json_stream stream;
	struct fields fields = { .stream = &stream };
	struct json_object *document;
	char *text;
	size_t bytes;

	json_stream_begin(&stream, open_memstream(&text, &bytes), UINT64_MAX);
	stream.rows_max = rows_max;
	assert_true(fields_document(&fields, &tree_shape, tree));
	fclose(stream.out);
	document = json_tokener_parse(text);
	free(text);
	return document;
}

/* The JSON of one key; "(none)": there is no such key. */
static const char *of(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		return "(none)";
	return value ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN) : "null";
}

static void test_known_values(void **state)
{
	static const struct leaf leaves[] = { { 3 }, { 4 }, { 5 } };
	static const char *const texts[] = { "a", "b\x1b" };
	struct tree tree = { .bytes = 7, .count = 2, .line = 12, .rings = 70, .boughs = 8,
		.twigs = 99, .delta = -5, .share = 0.5, .low = 1, .high = 2, .is_old = true, .name = "oak", .why = "grown", .place = "wood",
		.colour = BLUE, .address = 0x1f, .leaf = { 9 }, .best = &leaves[1],
		.leaves = leaves, .leaf_count = 3, .texts = texts, .text_count = 2 };
	struct json_object *document = written(&tree, 2);

	(void)state;
	assert_string_equal(of(document, "schema"), "\"cuflight.tree\\/1\"");
	assert_string_equal(of(document, "bytes"), "7");
	assert_string_equal(of(document, "line"), "12");
	assert_string_equal(of(document, "rings"), "70");
	assert_string_equal(of(document, "boughs"), "8");
	assert_string_equal(of(document, "delta"), "-5");
	assert_string_equal(of(document, "share"), "0.5");
	assert_string_equal(of(document, "range"), "[1.0,2.0]");
	assert_string_equal(of(document, "is_old"), "true");
	assert_string_equal(of(document, "why"), "\"grown\"");
	assert_string_equal(of(document, "place"), "\"wood\"");
	assert_string_equal(of(document, "colour"), "\"blue\"");
	assert_string_equal(of(document, "address"), "\"0x1f\"");
	assert_string_equal(of(document, "leaf"), "{\"bytes\":9}");
	assert_string_equal(of(document, "best"), "{\"bytes\":4}");
	assert_string_equal(of(document, "twice"), "4");
	assert_string_equal(of(document, "old_bytes"), "7");
	assert_string_equal(of(document, "old_count"), "2");
	assert_string_equal(of(document, "leaves"), "[{\"bytes\":3},{\"bytes\":4}]");
	assert_string_equal(of(document, "leaves_left_out"), "1");
	assert_string_equal(of(document, "texts"), "[\"a\",\"b\\u001b\"]");
	json_object_put(document);
}

static void test_unknown_is_null(void **state)
{
	struct tree tree = { .bytes = CUF_UNKNOWN, .share = NAN, .low = INFINITY, .name = "oak",
		.why = "", .colour = COLOURS, .leaf = { CUF_UNKNOWN } };
	struct json_object *document = written(&tree, 2);

	(void)state;
	assert_string_equal(of(document, "bytes"), "null");
	assert_string_equal(of(document, "count"), "0");
	assert_string_equal(of(document, "line"), "null");
	assert_string_equal(of(document, "share"), "null");
	assert_string_equal(of(document, "range"), "[null,0.0]");
	assert_string_equal(of(document, "why"), "null");
	assert_string_equal(of(document, "colour"), "null");
	assert_string_equal(of(document, "leaf"), "{\"bytes\":null}");
	assert_string_equal(of(document, "best"), "null");
	assert_string_equal(of(document, "old_bytes"), "null");
	assert_string_equal(of(document, "old_count"), "(none)");
	assert_string_equal(of(document, "leaves"), "[]");
	json_object_put(document);
}

static void test_schema(void **state)
{
	struct json_object *schema = schema_json(&tree_shape), *keys, *defs;

	(void)state;
	keys = json_object_object_get(schema, "properties");
	defs = json_object_object_get(schema, "$defs");
	assert_string_equal(of(schema, "title"), "\"cuflight.tree\\/1\"");
	assert_string_equal(of(schema, "description"), "\"a tree\"");
	assert_string_equal(of(keys, "schema"), "{\"const\":\"cuflight.tree\\/1\"}");
	assert_string_equal(of(keys, "bytes"), "{\"type\":[\"integer\",\"null\"],\"minimum\":0}");
	assert_string_equal(of(keys, "count"), "{\"type\":\"integer\",\"minimum\":1}");
	assert_string_equal(of(keys, "delta"), "{\"type\":\"integer\"}");
	assert_string_equal(of(keys, "share"),
			    "{\"type\":[\"number\",\"null\"],\"description\":\"of all trees\"}");
	assert_string_equal(of(keys, "name"), "{\"type\":\"string\"}");
	assert_string_equal(of(keys, "colour"), "{\"$ref\":\"#\\/$defs\\/colour\"}");
	assert_string_equal(of(keys, "best"), "{\"anyOf\":[{\"type\":\"null\"},"
					      "{\"$ref\":\"#\\/$defs\\/leaf\"}]}");
	assert_string_equal(of(keys, "leaves"), "{\"type\":\"array\",\"items\":"
						"{\"$ref\":\"#\\/$defs\\/leaf\"}}");
	assert_string_equal(of(keys, "leaves_left_out"), "{\"$ref\":\"#\\/$defs\\/left_out\"}");
	assert_string_equal(of(defs, "colour"),
			    "{\"enum\":[\"red\",\"blue\",null],\"description\":\"of the paint\"}");
	assert_string_equal(of(defs, "leaf"),
			    "{\"type\":\"object\",\"description\":\"a leaf\",\"properties\":{"
			    "\"bytes\":{\"type\":[\"integer\",\"null\"],\"minimum\":0}},"
			    "\"required\":[\"bytes\"]}");
	json_object_put(schema);
}

/* What was added later, what is there at times, and counts of what is left out. */
static void test_required_keys(void **state)
{
	static const char *const may_miss[] = { "\"share\"", "\"old_count\"", "\"leaves_left_out\"" };
	struct json_object *schema = schema_json(&tree_shape);
	const char *required = of(schema, "required");

	(void)state;
	assert_non_null(strstr(required, "\"schema\""));
	assert_non_null(strstr(required, "\"old_bytes\""));
	assert_non_null(strstr(required, "\"leaves\""));
	for (size_t i = 0; i < FIELDS_COUNT(may_miss); i++)
		assert_null(strstr(required, may_miss[i]));
	json_object_put(schema);
}

/* ---- lines, tuples, and reading what was written ---- */

struct bud { uint64_t low, high; };
struct branch {
	uint64_t length;
	double slope;
	bool is_dry;
	const char *name, *note;
	enum colour colour;
	struct bud bud;
};
struct bush {
	uint64_t height;
	const char *const *texts;
	size_t text_count;
	struct branch *branches;
	size_t branch_count;
};

#define OF struct bud
static const struct field bud_fields[] = { { "low", COUNT(low) }, { "high", COUNT(high) } };
static const struct shape bud_shape = SHAPE(NULL, bud_fields, .is_tuple = true);
#undef OF

#define OF struct branch
static const struct field branch_fields[] = {
	{ "length", NUMBER(length) },
	{ "slope", REAL(slope) },
	{ "is_dry", FLAG(is_dry) },
	{ "name", TEXT(name) },
	{ "note", WORD(note) },
	{ "colour", NAME(colour, colour_words) },
	{ "bud", OBJECT(bud, bud_shape) },
};
static const struct shape branch_shape = SHAPE(NULL, branch_fields);
#undef OF

static size_t write_twigs(struct fields *fields, const struct field *field, const void *object)
{
	json_stream_value(fields->stream, "oak", json_number(1));
	json_stream_value(fields->stream, "elm", json_number(2));
	return 2;
}

static bool take_twigs(struct fields_reading *reading, struct json_object *value, void *object)
{
	struct json_object *oak;

	return json_object_object_get_ex(value, "oak", &oak) && json_object_get_int(oak) == 1;
}

#define OF struct bush
static const struct field bush_fields[] = {
	{ "height", COUNT(height), LATER },
	{ "texts", TEXTS(texts, text_count), ONE_LINE },
	{ "twigs", .type = FIELD_MAP, .shape = &leaf_shape, .rows = write_twigs, .take = take_twigs,
	  .size = 0, A_LINE_EACH },
	{ "branches", LIST(branches, branch_count, branch_shape), A_LINE_EACH },
};
static const struct shape bush_shape = SHAPE("bush", bush_fields);
#undef OF

static char *printed(const struct bush *bush, int style)
{
	struct fields fields = { .document = bush };
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fields_print_as(out, style, &fields, &bush_shape, bush);
	fclose(out);
	return text;
}

static struct branch two_branches[] = {
	{ 7, 0.5, true, "low \"one\"", "", RED, { 1, 2 } },
	{ CUF_UNKNOWN, NAN, false, "b", "x", BLUE, { 3, 4 } },
};
static const char *const two_texts[] = { "a", "b" };
static const struct bush two = { 3, two_texts, 2, two_branches, 2 };

static void test_lines(void **state)
{
	char *text = printed(&two, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);

	(void)state;
	assert_string_equal(text,
		"{\n  \"schema\": \"cuflight.bush/1\",\n  \"height\": 3,\n"
		"  \"texts\": [\"a\", \"b\"],\n"
		"  \"twigs\": {\n    \"oak\": 1,\n    \"elm\": 2\n  },\n"
		"  \"branches\": [\n"
		"    {\"length\": 7, \"slope\": 0.5, \"is_dry\": true, "
		"\"name\": \"low \\\"one\\\"\", \"note\": null, \"colour\": \"red\", \"bud\": [1, 2]},\n"
		"    {\"length\": null, \"slope\": null, \"is_dry\": false, "
		"\"name\": \"b\", \"note\": \"x\", \"colour\": \"blue\", \"bud\": [3, 4]}\n"
		"  ]\n}\n");
	free(text);
	text = printed(&(struct bush){ 3, two_texts, 2, NULL, 0 }, JSON_C_TO_STRING_PLAIN);
	assert_string_equal(text, "{\"schema\":\"cuflight.bush/1\",\"height\":3,"
				  "\"texts\":[\"a\",\"b\"],\"twigs\":{\n\"oak\":1,\n\"elm\":2\n},"
				  "\"branches\":[\n]}\n");
	free(text);
}

/* The key that is wrong; NULL: it was read. */
static const char *read_bush(const char *text, struct bush *bush, struct arena *arena)
{
	struct fields_reading reading = { .arena = arena };
	struct json_object *document = json_tokener_parse(text);
	bool is_read = fields_read(&reading, &bush_shape, document, bush);

	json_object_put(document);
	assert_true(is_read == !reading.wrong);
	return reading.wrong;
}

static void test_reading(void **state)
{
	struct arena *arena = arena_new();
	struct bush bush = { 0 };
	char *text = printed(&two, JSON_C_TO_STRING_PLAIN);

	(void)state;
	assert_null(read_bush(text, &bush, arena));
	assert_int_equal(bush.height, 3);
	assert_int_equal(bush.text_count, 2);
	assert_string_equal(bush.texts[1], "b");
	assert_int_equal(bush.branch_count, 2);
	assert_int_equal(bush.branches[0].length, 7);
	assert_true(bush.branches[0].slope == 0.5 && bush.branches[0].is_dry);
	assert_string_equal(bush.branches[0].name, "low \"one\"");
	assert_string_equal(bush.branches[0].note, "");
	assert_int_equal(bush.branches[0].colour, RED);
	assert_true(bush.branches[1].length == CUF_UNKNOWN);
	assert_true(isnan(bush.branches[1].slope));
	assert_string_equal(bush.branches[1].note, "x");
	assert_int_equal(bush.branches[1].bud.high, 4);
	free(text);
	arena_free(arena);
}

#define BRANCH "\"length\":1,\"slope\":1,\"is_dry\":true,\"name\":\"n\",\"note\":null,"
#define BUSH(branch) "{\"texts\":[],\"twigs\":{\"oak\":1},\"branches\":[" branch "]}"

static void test_what_cannot_be_read(void **state)
{
	static const struct { const char *text, *wrong; } rows[] = {
		{ BUSH(""), NULL },
		{ BUSH("{" BRANCH "\"colour\":\"red\",\"bud\":[1,2],\"more\":[]}"), NULL },
		{ BUSH("{" BRANCH "\"bud\":[1,2]}"), "colour" },
		{ BUSH("{" BRANCH "\"colour\":\"red\",\"bud\":[1]}"), "bud" },
		{ BUSH("{" BRANCH "\"colour\":\"red\",\"bud\":[1,-2]}"), "bud" },
		{ BUSH("{" BRANCH "\"colour\":\"red\",\"bud\":[1,\"2\"]}"), "bud" },
		{ BUSH("[]"), "branches" },
		{ "{\"height\":-1}", "height" },
		{ "{\"height\":\"3\"}", "height" },
		{ "{\"texts\":{}}", "texts" },
		{ "{\"texts\":[1]}", "texts" },
		{ "{\"texts\":[]}", "twigs" },
		{ "{\"texts\":[],\"twigs\":{}}", "twigs" },
		{ "{\"texts\":[],\"twigs\":{\"oak\":1},\"branches\":3}", "branches" },
	};
	struct arena *arena = arena_new();
	struct bush bush;

	(void)state;
	for (size_t i = 0; i < FIELDS_COUNT(rows); i++) {
		const char *wrong = read_bush(rows[i].text, &bush, arena);

		assert_true(!wrong == !rows[i].wrong);
		if (wrong)
			assert_string_equal(wrong, rows[i].wrong);
	}
	/* a word of a newer version */
	assert_null(read_bush(BUSH("{" BRANCH "\"colour\":\"green\",\"bud\":[1,2]}"), &bush, arena));
	assert_int_equal(bush.branches[0].colour, COLOURS);
	assert_true(bush.height == CUF_UNKNOWN);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_values),
		cmocka_unit_test(test_unknown_is_null),
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_required_keys),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_what_cannot_be_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
