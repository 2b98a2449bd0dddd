/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of suppression files: what they match, how lines are read, what is reported about them. */
#include "analysis/gate/suppress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TODAY "2026-11-22"

static struct suppressions *rules_of(const char *text)
{
	struct suppressions *rules = suppressions_new(TODAY, false);
	char error[400] = "";

	if (suppressions_parse(rules, text, strlen(text), "a.supp", error, sizeof error))
		fail_msg("%s: %s", text, error);
	return rules;
}

/* The results that LeakSanitizer's TemplateMatch returns for the same pairs. */
static void patterns_match_as_in_leaksanitizer(void **state)
{
	static const struct { const char *pattern, *text; bool match; } cases[] = {
		{ "b", "abc", true },        { "abcd", "abc", false },   { "^ab", "abc", true },
		{ "^bc", "abc", false },     { "bc$", "abc", true },     { "ab$", "abc", false },
		{ "^abc$", "abc", true },    { "a*c", "abbc", true },    { "^*c$", "abc", true },
		{ "a*d", "abc", false },     { "", "abc", true },        { "*", "abc", true },
		{ "a", "", false },          { "b$", "bb", false },      { "^a*", "ba", false },
		{ "*b*", "abc", true },      { "a*$", "abc", true },     { "a*b$", "abab", false },
		{ " b", "ab", false },       { "^$", "a", false },       { "c*", "abc", true },
		{ "c*d", "abc", false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (suppress_matches(cases[i].pattern, cases[i].text) != cases[i].match)
			fail_msg("'%s' on '%s'", cases[i].pattern, cases[i].text);
	assert_false(suppress_matches("a", NULL));
}

static void lines_are_read(void **state)
{
	struct suppressions *rules = rules_of(
		"# a comment with leak:nothing\n"
		"\n"
		"  #cuflight until=2027-01-31 reason=\"two words\"\n"
		"\tleak:one* \r\n"
		"leak: two\n"
		"#cuflight: until=2026-11-21 device:three:colons\n"
		"#cuflightless leak:no\n"
		"#cuflight until=2026-11-22 pinned:last");
	const struct suppress_rule *rule = suppressions_rule(rules, 0);

	assert_int_equal(suppressions_count(rules), 4);
	assert_string_equal(rule->pattern, "one*");
	assert_string_equal(rule->reason, "two words");
	assert_string_equal(rule->until, "2027-01-31");
	assert_string_equal(rule->origin, "a.supp:4");
	assert_false(rule->expired);
	rule = suppressions_rule(rules, 1);
	assert_string_equal(rule->pattern, " two"); /* LeakSanitizer keeps the blank, too */
	assert_string_equal(rule->until, "");
	rule = suppressions_rule(rules, 2);
	assert_string_equal(rule->kind, "device");
	assert_string_equal(rule->pattern, "three:colons");
	assert_true(rule->expired);
	assert_false(suppressions_rule(rules, 3)->expired); /* its last day is today */
	suppressions_free(rules);
}

static void bad_lines_name_their_place(void **state)
{
	static const struct { const char *text, *part; } cases[] = {
		{ "leak:a\nrace:b\n", "a.supp:2: unknown kind" },
		{ "leak\n", "a.supp:1: expected KIND:PATTERN" },
		{ "leak:\n", "has no pattern" },
		{ "#cuflight until=2026-13-01 leak:a", "expected until=" },
		{ "#cuflight until=soon leak:a", "expected until=" },
		{ "#cuflight reason=\"open", "quotation mark" },
		{ "#cuflight colour=red leak:a", "expected until=DATE" },
		{ "#cuflight device", "expected KIND:PATTERN" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct suppressions *rules = suppressions_new(TODAY, false);
		char error[400] = "";
		assert_int_equal(suppressions_parse(rules, cases[i].text, strlen(cases[i].text),
						    "a.supp", error, sizeof error), -1);
		if (!strstr(error, cases[i].part))
			fail_msg("'%s' has no '%s'", error, cases[i].part);
		assert_int_equal(suppressions_count(rules), 0);
		suppressions_free(rules);
	}
}

static const struct gate_frame frames[] = {
	{ "cuMemAlloc_v2", "libcuda.so.1", NULL, 0 },
	{ "ncclCommInitRank", "libnccl.so.2", NULL, 0 },
	{ "load", "server", "/src/server/load.cpp", 12 },
};

static const char *match(struct suppressions *rules, enum gate_measure_id measure,
			 enum gate_group group)
{
	struct gate_site site = { .identity = "", .function = "load", .module = "server",
				  .group = group, .frames = frames, .frame_count = 3 };

	return suppressions_match(rules, &gate_measures[measure], &site);
}

static void a_rule_is_found_in_any_frame(void **state)
{
	static const char *const found[] = { "ncclComm", "^load$", "server/load.cpp", "libnccl.so" };

	for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
		char line[100];
		struct suppressions *rules;
		snprintf(line, sizeof line, "leak:%s\n", found[i]);
		rules = rules_of(line);
		line[strlen(line) - 1] = 0;
		assert_string_equal(match(rules, MEASURE_DEVICE_LEAK, GROUP_DEVICE), line);
		assert_int_equal(suppressions_rule(rules, 0)->sites, 1);
		suppressions_free(rules);
	}
}

static void kinds_decide_where_a_rule_applies(void **state)
{
	static const struct {
		const char *kind;
		enum gate_measure_id measure;
		enum gate_group group;
		bool match;
	} cases[] = {
		{ "leak", MEASURE_HOST_END, GROUP_HOST, true },
		{ "leak", MEASURE_REQUEST_GROWTH, GROUP_DEVICE, true },
		{ "leak", MEASURE_DEVICE_PEAK, GROUP_DEVICE, false },
		{ "once", MEASURE_DEVICE_END, GROUP_DEVICE, true },
		{ "once", MEASURE_DEVICE_LEAK, GROUP_DEVICE, false },
		{ "growth", MEASURE_HOST_LEAK, GROUP_HOST, true },
		{ "growth", MEASURE_HOST_END, GROUP_HOST, false },
		{ "device", MEASURE_DEVICE_PEAK, GROUP_DEVICE, true },
		{ "device", MEASURE_FRAMEWORK_PEAK, GROUP_FRAMEWORK, true },
		{ "device", MEASURE_HOST_PEAK, GROUP_HOST, false },
		{ "pinned", MEASURE_PINNED_PEAK, GROUP_PINNED, true },
		{ "host", MEASURE_HOST_PEAK, GROUP_PYTHON, true },
		{ "host", MEASURE_DEVICE_END, GROUP_DEVICE, false },
		{ "incident", MEASURE_INCIDENTS_FATAL, GROUP_DEVICE, true },
		{ "incident", MEASURE_DEVICE_ALLOCATIONS, GROUP_DEVICE, false },
		{ "incident", MEASURE_DEVICE_PEAK, GROUP_DEVICE, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char line[64];
		struct suppressions *rules;
		snprintf(line, sizeof line, "%s:load", cases[i].kind);
		rules = rules_of(line);
		if (!!match(rules, cases[i].measure, cases[i].group) != cases[i].match)
			fail_msg("%s and %s", cases[i].kind, gate_measures[cases[i].measure].name);
		suppressions_free(rules);
	}
}

static void what_the_driver_keeps_is_built_in(void **state)
{
	struct suppressions *rules = suppressions_new(TODAY, true);

	assert_true(suppressions_count(rules) > 10);
	assert_non_null(match(rules, MEASURE_HOST_END, GROUP_HOST));
	assert_null(match(rules, MEASURE_HOST_LEAK, GROUP_HOST));
	assert_null(match(rules, MEASURE_HOST_PEAK, GROUP_HOST));
	assert_int_equal(suppressions_print_stale(rules, "", stderr), 0);
	suppressions_free(rules);
}

static void unused_and_expired_rules_are_reported(void **state)
{
	struct suppressions *rules =
		rules_of("leak:load\nleak:gone\n#cuflight until=2020-01-01\nleak:server\n");
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	match(rules, MEASURE_HOST_LEAK, GROUP_HOST);
	assert_int_equal(suppressions_print_stale(rules, "- ", out), 2);
	fclose(out);
	assert_string_equal(text, "- a.supp:2: rule 'leak:gone' matched nothing\n"
				  "- a.supp:4: rule 'leak:server' has expired on 2020-01-01; it "
				  "suppresses nothing\n");
	free(text);
	suppressions_free(rules);
}

/* Each generated rule must be one that suppresses its site. */
static void generated_rules_suppress_what_they_are_for(void **state)
{
	static const struct gate_site sites[] = {
		{ .identity = "", .function = "keep$x\n", .module = "a.so", .group = GROUP_HOST },
		{ .identity = "", .function = "ns::f(int*)", .module = "a", .group = GROUP_DEVICE },
		{ .identity = "", .function = NULL, .module = "/lib/b.so", .group = GROUP_PINNED },
		{ .identity = "", .function = NULL, .module = "", .group = GROUP_PINNED },
	};
	static const enum gate_measure_id measures[] = { MEASURE_HOST_LEAK, MEASURE_DEVICE_PEAK };
	struct gate_finding findings[2] = { { .limit.measure = &gate_measures[measures[0]] },
					    { .limit.measure = &gate_measures[measures[1]] } };
	struct gate_result result = { .findings = findings, .finding_count = 2 };
	struct suppressions *rules;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	for (size_t i = 0; i < 2; i++) {
		findings[i].status = GATE_EXCEEDED;
		findings[i].sites = sites;
		findings[i].site_count = 4;
	}
	assert_int_equal(suppressions_generate(&result, out), 6);
	fclose(out);
	assert_non_null(strstr(text, "\nleak:^keep*x*$\n"));
	assert_non_null(strstr(text, "\n#cuflight device:^ns::f(\n"));
	rules = rules_of(text);
	for (size_t i = 0; i < 6; i++)
		assert_non_null(suppressions_match(rules, &gate_measures[measures[i / 3]],
						   &sites[i % 3]));
	assert_int_equal(suppressions_print_stale(rules, "", stderr), 0);
	suppressions_free(rules);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_as_in_leaksanitizer),
		cmocka_unit_test(lines_are_read),
		cmocka_unit_test(bad_lines_name_their_place),
		cmocka_unit_test(a_rule_is_found_in_any_frame),
		cmocka_unit_test(kinds_decide_where_a_rule_applies),
		cmocka_unit_test(what_the_driver_keeps_is_built_in),
		cmocka_unit_test(unused_and_expired_rules_are_reported),
		cmocka_unit_test(generated_rules_suppress_what_they_are_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
