/* SPDX-License-Identifier: Apache-2.0 */
/* Options by table: every type, every error, operands, and the tables of the real commands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/cli/settings.h"
#include "analysis/cmd/cli/suggest.h"

static struct opts opts;

/* Parses a command line of blanks-separated words, as the command does. */
static int parse(const struct cmd *cmd, const char *line)
{
	static char words[512];
	static char *argv[32];
	int argc = 0;
	snprintf(words, sizeof words, "%s", line);
	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	opts_init(&opts, cmd->groups);
	return opts_parse(&opts, argc, argv, cmd->takes_command);
}

static void refused(const struct cmd *cmd, const char *line, const char *error)
{
	assert_int_equal(parse(cmd, line), -1);
	assert_string_equal(opts.error, error);
}

static void test_parse__values(void **state)
{
	assert_int_equal(
		parse(&cmd_run,
	              "run --host=full --size=8MiB --stack-depth 12 --python=0 --probe -fqo out -- prog -v"),
		0);
	assert_int_equal(opts_number(&opts, "host", 9), 2);
	assert_int_equal(opts_number(&opts, "size", 0), 8 << 20);
	assert_int_equal(opts_number(&opts, "stack-depth", 0), 12);
	assert_int_equal(opts_number(&opts, "python", 9), 0);
	assert_int_equal(opts_number(&opts, "probe", 9), 1);
	assert_true(opts_has(&opts, "force") && opts_has(&opts, "quiet"));
	assert_string_equal(opts_text(&opts, "output"), "out");
	assert_false(opts_has(&opts, "mmap"));
	assert_int_equal(opts_number(&opts, "mmap", 7), 7);
	assert_int_equal(opts.operand_count, 2);
	assert_string_equal(opts.operands[0], "prog");
	assert_string_equal(opts.operands[1], "-v");
	assert_null(opts.operands[2]);
}

static void test_parse__a_command_ends_our_options(void **state)
{
	assert_int_equal(parse(&cmd_run, "run prog --host=full --json"), 0);
	assert_int_equal(opts.operand_count, 3);
	assert_false(opts_has(&opts, "host"));
}

static void test_parse__report_takes_options_after_its_operand(void **state)
{
	assert_int_equal(parse(&cmd_report, "report a.cuf --json -o x"), 0);
	assert_int_equal(opts.operand_count, 1);
	assert_string_equal(opts.operands[0], "a.cuf");
	assert_true(opts_has(&opts, "json"));
	assert_string_equal(opts_text(&opts, "output"), "x");
	assert_int_equal(parse(&cmd_report, "report --json -- --json"), 0);
	assert_int_equal(opts.operand_count, 1);
	assert_string_equal(opts.operands[0], "--json");
}

static void test_parse__errors_name_what_is_expected(void **state)
{
	refused(&cmd_report, "report --jsn", "unknown option '--jsn'; did you mean '--json'?");
	refused(&cmd_report, "report --zzzzzz=3", "unknown option '--zzzzzz'");
	refused(&cmd_report, "report -x", "unknown option '-x'");
	refused(&cmd_report, "report -qx", "unknown option '-x'");
	refused(&cmd_report, "report --json=1", "option '--json' takes no value");
	refused(&cmd_report, "report --output", "option '--output' needs a value");
	refused(&cmd_report, "report -o", "option '-o' needs a value");
	refused(&cmd_report, "report --output=", "--output needs a value that is not empty");
	refused(&cmd_report, "report --format=xml",
	        "invalid value 'xml' for --format: expected one of text|json|html");
	refused(&cmd_run, "run --python=2", "invalid value '2' for --python: expected one of 0|1");
	refused(&cmd_run, "run --size=1",
	        "invalid value '1' for --size: expected a size from 4.00 MiB to 4.00 GiB");
	refused(&cmd_run, "run --stack-depth=0",
	        "invalid value '0' for --stack-depth: expected a number from 1 to 256");
}

static void test_parse__no_abbreviations(void **state)
{
	refused(&cmd_report, "report --forma=json",
	        "unknown option '--forma'; did you mean '--format'?");
	refused(&cmd_report, "report --forma json",
	        "unknown option '--forma'; did you mean '--format'?");
	refused(&cmd_report, "report --js", "unknown option '--js'; did you mean '--json'?");
}

/* Every key of options.def but what run sets itself is an option of run, by its own name. */
static void test_settings__every_key_is_an_option(void **state)
{
	opts_init(&opts, cmd_run.groups);
#define OPTION(key, type, def, min, max, unit, text) { \
		char name[] = #key; \
		for (char *c = name; *c; c++) \
			*c = *c == '_' ? '-' : *c; \
		bool found = false; \
		for (size_t i = 0; i < opts.count; i++) \
			found |= !strcmp(opts.rows[i].name, name); \
		if (strcmp(name, "start") != 0) \
			assert_true(found); \
	}
#include "interpose/abi/options.def"
}

static void test_settings__compose(void **state)
{
	char out[256], error[256];
	assert_int_equal(parse(&cmd_run, "run --host=full --probe --stack-depth=12 -v x"), 0);
	assert_int_equal(settings_compose(&opts, "size=8MiB", "start=1", out, sizeof out, error,
	                                  sizeof error),
	                 0);
	assert_string_equal(out, "size=8MiB:start=1:verbose=1:host=full:stack_depth=12:probe=1");
	assert_int_equal(settings_compose(&opts, NULL, NULL, out, 12, error, sizeof error), -1);
	assert_int_equal(parse(&cmd_run, "run --termination-log=/a:b x"), 0);
	assert_int_equal(settings_compose(&opts, NULL, NULL, out, sizeof out, error, sizeof error),
	                 -1);
	assert_non_null(strstr(error, "separates settings by ':'"));
}

static void test_tables__fit_and_are_whole(void **state)
{
	for (size_t i = 0; cmd_table[i]; i++) {
		opts_init(&opts, cmd_table[i]->groups); /* asserts that the rows fit */
		assert_non_null(cmd_table[i]->run);
		assert_ptr_equal(cmd_find(cmd_table, cmd_table[i]->name), cmd_table[i]);
		for (size_t a = 0; a < opts.count; a++) {
			assert_true(strlen(opts.rows[a].opt.help) > 5);
			assert_true((opts.rows[a].opt.type == OPT_FLAG ||
			             opts.rows[a].opt.type == OPT_SWITCH) ==
			            !opts.rows[a].opt.value);
			for (size_t b = 0; b < a; b++)
				assert_true(!opts.rows[a].opt.letter ||
				            opts.rows[a].opt.letter != opts.rows[b].opt.letter);
		}
		/* everywhere */
		opts_has(&opts, "help"), opts_has(&opts, "version"), opts_has(&opts, "quiet"),
			opts_has(&opts, "verbose"), opts_has(&opts, "color");
	}
}

static void test_suggest__near_and_far(void **state)
{
	assert_int_equal(suggest_distance("report", "report"), 0);
	assert_int_equal(suggest_distance("reprot", "report"), 1); /* a swap */
	assert_int_equal(suggest_distance("rport", "report"), 1);
	assert_int_equal(suggest_distance("", "abc"), 3);
	assert_string_equal(cmd_nearest(cmd_table, "reprt"), "report");
	assert_string_equal(cmd_nearest(cmd_table, "docter"), "doctor");
	assert_null(cmd_nearest(cmd_table, "xyzzy"));
	assert_null(cmd_nearest(
		cmd_table,
		"a-very-long-word-that-no-command-has-and-that-goes-on-and-on-and-on-and-on"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse__values),
		cmocka_unit_test(test_parse__a_command_ends_our_options),
		cmocka_unit_test(test_parse__report_takes_options_after_its_operand),
		cmocka_unit_test(test_parse__errors_name_what_is_expected),
		cmocka_unit_test(test_parse__no_abbreviations),
		cmocka_unit_test(test_settings__every_key_is_an_option),
		cmocka_unit_test(test_settings__compose),
		cmocka_unit_test(test_tables__fit_and_are_whole),
		cmocka_unit_test(test_suggest__near_and_far),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
