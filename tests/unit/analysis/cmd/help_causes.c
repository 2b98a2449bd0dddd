/* SPDX-License-Identifier: Apache-2.0 */
/* Help on causes: every cause has prose, and names are found by id, beginning and word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/cmd/help.h"
#include "analysis/explain/cause_guide.h"

/* What help prints for a name; NULL: no cause has it. The caller frees. */
static char *help_text(bool (*help)(FILE *, const char *), const char *name)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	bool found = help(out, name);

	fclose(out);
	if (found)
		return text;
	assert_int_equal(bytes, 0);
	free(text);
	return NULL;
}

static void assert_lists(const char *name, const char *cause, bool listed)
{
	char *text = help_text(help_causes, name);
	char line[64];

	assert_non_null(text);
	snprintf(line, sizeof line, "\n  %s ", cause);
	assert_int_equal(strstr(text, line) != NULL, listed);
	free(text);
}

static void test_guide__every_cause_has_prose(void **state)
{
	const struct cause_rule *rule;
	size_t count = 0, guides = 0;

	for (; (rule = help_cause_at(count)); count++) {
		const struct cause_guide *guide = cause_guide_find(rule->name_id);
		struct help_advice advice;
		if (!guide)
			fail_msg("%s has no row in cause_guide.c", rule->name_id);
		assert_true(strlen(guide->recognise) > 20 && strlen(guide->example) > 20);
		assert_true(strlen(help_cause_about(rule->id)) > 20);
		if (strcmp(rule->name_id, "recovered") != 0)
			assert_true(help_cause_advice(rule->id, 0, &advice));
	}
	while (cause_guides[guides].name_id)
		guides++;
	assert_int_equal(guides, count); /* no prose about a cause that does not exist */
}

static void test_help__an_exact_name_is_prose(void **state)
{
	char *by_name = help_text(help_causes, "gpu-leak"), *by_id = help_text(help_causes, "s8");

	assert_non_null(strstr(by_name, "How to recognise it"));
	assert_null(strstr(by_name, "{"));
	assert_string_equal(by_name, by_id);
	free(by_name);
	free(by_id);
}

static void test_help__a_beginning_or_a_word_is_a_list(void **state)
{
	assert_lists("fragmentation", "fragmentation-pinned", true);
	assert_lists("fragmentation", "gpu-leak", false);
	assert_lists("S9", "host-out-of-memory", false); /* S9 is exact: prose, no list */
	assert_lists("S9.", "host-leak", true);
	assert_lists("leak", "host-leak", true);
	assert_lists("leak", "gpu-leak", true);
	assert_lists("causes", "host-out-of-memory", true);
	assert_null(help_text(help_causes, ""));
	assert_null(help_text(help_causes, "oom"));
}

static void test_help__rules_have_weights_and_confidence(void **state)
{
	char *text = help_text(help_cause_rules, "fragmentation-pinned");

	assert_non_null(strstr(text, "  needs  "));
	assert_non_null(strstr(text, "Named if the budget blames it\n"));
	assert_null(strstr(text, "Base "));
	assert_non_null(strstr(text, "Confidence\n"));
	free(text);
	text = help_text(help_cause_rules, "host-leak");
	assert_non_null(strstr(text, "Base 0."));
	free(text);
	assert_null(help_text(help_cause_rules, "report"));
}

static void test_nearest__suggests(void **state)
{
	assert_string_equal(help_causes_nearest("oom"), "causes");
	assert_string_equal(help_causes_nearest("gpu-leek"), "gpu-leak");
	assert_null(help_causes_nearest("xyzzy"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guide__every_cause_has_prose),
		cmocka_unit_test(test_help__an_exact_name_is_prose),
		cmocka_unit_test(test_help__a_beginning_or_a_word_is_a_list),
		cmocka_unit_test(test_help__rules_have_weights_and_confidence),
		cmocka_unit_test(test_nearest__suggests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
