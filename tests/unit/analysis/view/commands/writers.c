/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The documents for CI systems, from findings whose every text is hostile. With a directory as its
 * argument, the program writes them there, for the tests that give them to real readers
 * (tests/e2e/gate/writers.bats).
 */
#include "analysis/view/commands/gate_writers.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "interpose/abi/format.h"

/* Everything that ends a place in one of the formats, invalid UTF-8 and control characters. */
#define HOSTILE "a<b>&\"'`|*_[x](y)\n::error::z\r%0A,:{}\\\t\x01\x1b[31m\xff\xef\xbf\xbf]]>--> # EOF"
#define ROOT "/src/project"

static const struct gate_frame frames[] = {
	{ HOSTILE, HOSTILE, NULL, 0 },
	{ "append_kv", "server", ROOT "/kv cache/a,b:c%.cpp", 88 },
	{ NULL, NULL, NULL, 0 },
};
static const struct gate_site sites[] = {
	{ .identity = "server:append_kv", .function = "append_kv", .module = "server",
	  .file = ROOT "/kv cache/a,b:c%.cpp", .line = 88, .group = GROUP_DEVICE,
	  .bytes_now = 3 << 20, .count_now = 3, .bytes_before = 1 << 20, .frames = frames,
	  .frame_count = 3 },
	{ .identity = HOSTILE, .function = HOSTILE, .module = HOSTILE, .file = HOSTILE, .line = 7,
	  .group = GROUP_DEVICE, .bytes_now = 1 << 20, .count_now = 1, .bytes_before = 0 },
	{ .identity = "nothing", .function = NULL, .module = "", .bytes_now = 17,
	  .count_now = CUF_UNKNOWN, .bytes_before = CUF_UNKNOWN },
};

enum { FINDINGS = 16, EXTRA = 4 };
static struct gate_finding findings[FINDINGS];
static const char *const inconclusive[] = { "events were lost " HOSTILE };
static const char *const notes[] = { HOSTILE };
static struct gate_result result = {
	.path = HOSTILE, .program = "/bin/" HOSTILE, .baseline = "base.json",
	.findings = findings, .finding_count = FINDINGS,
	.inconclusive = inconclusive, .inconclusive_count = 1, .notes = notes, .note_count = 1,
};
static const struct gate_document document = { &result, ROOT };

/* 12 exceeded, then one of each other status. */
static void set_findings(void)
{
	static const enum gate_status others[EXTRA] = { GATE_INCONCLUSIVE, GATE_SUPPRESSED, GATE_OK,
							GATE_OK };
	static char texts[FINDINGS][400];

	for (size_t i = 0; i < FINDINGS; i++) {
		struct gate_finding *finding = &findings[i];
		snprintf(texts[i], sizeof texts[i], "device.peak@%s <= %zuMiB", HOSTILE, i);
		finding->limit.measure = &gate_measures[i % 2 ? MEASURE_DEVICE_PEAK
							      : MEASURE_INCIDENTS_FATAL];
		finding->limit.phase = HOSTILE;
		finding->limit.text = texts[i];
		finding->limit.origin = i % 3 ? "" : ROOT "/cuflight.ini:3";
		finding->status = i < FINDINGS - EXTRA ? GATE_EXCEEDED
						       : others[i - (FINDINGS - EXTRA)];
		finding->observed.value = i == 2 ? CUF_UNKNOWN : (uint64_t)i << 20;
		finding->allowed = i == 3 ? CUF_UNKNOWN : 5;
		finding->message = "peak of " HOSTILE " is too large";
		finding->sites = sites;
		finding->site_count = i < 3 ? 3 - i : 0;
		finding->baseline.runs = i == 0;
	}
	findings[FINDINGS - 3].rule = "leak:" HOSTILE;
}

static char *written(const char *format)
{
	const struct gate_writer *writer = gate_writer_find(format, strlen(format));
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_non_null(writer);
	writer->write(&document, out);
	fclose(out);
	assert_int_equal(strlen(text), bytes);
	return text;
}

static size_t count(const char *text, const char *part)
{
	size_t found = 0;

	for (; (text = strstr(text, part)); text += strlen(part))
		found++;
	return found;
}

static void assert_no_control_characters(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' && *text != '\n')
			fail_msg("control character %d before '%.40s'", *text, text + 1);
}

static void a_format_has_one_name(void **state)
{
	assert_null(gate_writer_find("junit:x", 7));
	assert_null(gate_writer_find("jun", 3));
	assert_string_equal(gate_writer_find("junit:x", 5)->name, "junit");
}

static void junit_counts_its_cases(void **state)
{
	char *text = written("junit");

	assert_no_control_characters(text);
	assert_int_equal(count(text, "<testcase "), FINDINGS + 1);
	assert_int_equal(count(text, "<failure "), FINDINGS - EXTRA);
	assert_int_equal(count(text, "<error "), 2);
	assert_int_equal(count(text, "<skipped>"), 1);
	assert_int_equal(count(text, "tests=\"17\" failures=\"12\" errors=\"2\""), 2);
	assert_non_null(strstr(text, "a&lt;b&gt;&amp;&quot;'"));
	free(text);
}

/* Ten commands of a kind; a text of the recording never begins a line. */
static void github_annotates_at_most_ten_times(void **state)
{
	char *text = written("github"), *line, *rest = text;
	size_t errors = 0, lines = 0;

	assert_no_control_characters(text);
	while ((line = strsep(&rest, "\n")) && *line) {
		errors += !strncmp(line, "::error ", 8);
		lines += !strncmp(line, "::error ", 8) || !strncmp(line, "::warning ", 10) ||
			 !strncmp(line, "::notice ", 9);
		if (!errors)
			continue;
		if (errors == 1 && !strncmp(line, "::error ", 8))
			assert_non_null(strstr(line, "file=kv cache/a%2Cb%3Ac%25.cpp,line=88,"));
	}
	assert_int_equal(errors, 10);
	assert_int_equal(lines, 13);
	free(text);
	text = written("github");
	assert_int_equal(count(text, "\n"), lines);
	assert_non_null(strstr(text, "::3 more limits\n"));
	free(text);
}

static void markdown_has_no_markup_of_the_recording(void **state)
{
	char *text = written("md");

	assert_no_control_characters(text);
	assert_non_null(strstr(text, "### cuflight: 12 of 16 limits exceeded\n"));
	assert_int_equal(count(text, "\n| "), FINDINGS + 1);
	assert_null(strstr(text, "a<b"));
	assert_null(strstr(text, "[x](y)"));
	assert_null(strstr(text, "::error"));
	free(text);
}

static struct json_object *parsed(const char *format)
{
	char *text = written(format);
	struct json_object *json = json_tokener_parse(text);

	if (!json)
		fail_msg("%s is no JSON", format);
	free(text);
	return json;
}

static struct json_object *at(struct json_object *json, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(json, key, &value))
		fail_msg("no key %s", key);
	return value;
}

static void sarif_has_a_place_and_a_fingerprint_for_each_result(void **state)
{
	struct json_object *top = parsed("sarif");
	struct json_object *run = json_object_array_get_idx(at(top, "runs"), 0);
	struct json_object *results = at(run, "results"), *first, *place;

	assert_int_equal(json_object_array_length(results), FINDINGS - 2 + 3);
	for (size_t i = 0; i < json_object_array_length(results); i++) {
		struct json_object *one = json_object_array_get_idx(results, i);
		place = json_object_array_get_idx(at(one, "locations"), 0);
		at(at(at(place, "physicalLocation"), "artifactLocation"), "uri");
		at(at(one, "partialFingerprints"), "cuflightCallSite/v1");
	}
	first = json_object_array_get_idx(results, 0);
	place = at(json_object_array_get_idx(at(first, "locations"), 0), "physicalLocation");
	assert_string_equal(json_object_get_string(at(at(place, "artifactLocation"), "uri")),
			    "kv%20cache/a%2Cb%3Ac%25.cpp");
	assert_int_equal(json_object_get_int(at(at(place, "region"), "startLine")), 88);
	json_object_put(top);
}

static void a_fingerprint_does_not_depend_on_lines(void **state)
{
	char *before = written("sarif"), *after;
	struct gate_site moved[1] = { sites[0] };

	moved[0].line = 99;
	findings[0].sites = moved;
	findings[0].site_count = 1;
	after = written("sarif");
	set_findings();
	assert_null(strstr(before, "\"startLine\":99"));
	assert_non_null(strstr(after, "\"startLine\":99"));
	assert_int_equal(strncmp(strstr(before, "\"cuflightCallSite/v1\""),
				 strstr(after, "\"cuflightCallSite/v1\""), 40), 0);
	free(before);
	free(after);
}

static int write_all(const char *folder)
{
	char path[4096];

	for (const struct gate_writer *writer = gate_writers; writer->name; writer++) {
		FILE *out;
		snprintf(path, sizeof path, "%s/hostile.%s", folder, writer->name);
		out = fopen(path, "w");
		if (!out)
			return 1;
		writer->write(&document, out);
		if (fclose(out))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_format_has_one_name),
		cmocka_unit_test(junit_counts_its_cases),
		cmocka_unit_test(github_annotates_at_most_ten_times),
		cmocka_unit_test(markdown_has_no_markup_of_the_recording),
		cmocka_unit_test(sarif_has_a_place_and_a_fingerprint_for_each_result),
		cmocka_unit_test(a_fingerprint_does_not_depend_on_lines),
	};

	set_findings();
	if (argc > 1)
		return write_all(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
