/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the text views: foreign texts cleaned, lines broken, tables aligned and cut, screens
 * judged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/clean.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/target/library.h"
#include "analysis/base/terminal.h"

static char *text;
static size_t bytes;

static FILE *begin(void) { return open_memstream(&text, &bytes); }

static void ends_as(FILE *out, const char *expected)
{
	fclose(out);
	assert_string_equal(text, expected);
	free(text);
}

static void test_clean__terminal_gets_no_controls(void **state)
{
	char out[64];
	clean_terminal(out, sizeof out, "a\033[31mb\nc\x7f", false);
	assert_string_equal(out, "a?[31mb?c?");
	clean_terminal(out, sizeof out, "\xc2\x9b" "31m", false); /* CSI in one character */
	assert_string_equal(out, "?31m");
	/* turned direction, zero width, byte order mark, line separator, tag */
	clean_terminal(out, sizeof out,
		       "a\xe2\x80\xae" "b\xe2\x80\x8b" "c\xef\xbb\xbf" "d\xe2\x80\xa8"
		       "e\xf3\xa0\x80\xa0" "f", false);
	assert_string_equal(out, "a?b?c?d?e?f");
	clean_terminal(out, sizeof out, "gr\xc3\xbc\xc3\x9f", false);
	assert_string_equal(out, "gr\xc3\xbc\xc3\x9f");
	clean_terminal(out, sizeof out, "gr\xc3\xbc\xc3\x9f", true);
	assert_string_equal(out, "gr??");
	clean_terminal(out, 4, "ab\xc3\xbc", false); /* no half characters */
	assert_string_equal(out, "ab");
}

static void test_clean__json_gets_valid_utf8(void **state)
{
	char out[64];
	clean_utf8(out, sizeof out, "a\xc2\x9b" "31m\x7f\xc2\xa0\x1b"); /* C1, DEL; no-break space */
	assert_string_equal(out, "a\xef\xbf\xbd" "31m\xef\xbf\xbd\xc2\xa0\x1b");
	clean_utf8(out, sizeof out, "a\xff" "b\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe2\x82");
	for (const char *p = out; *p; p += clean_character(p))
		assert_true(clean_character(p) > 0);
	assert_int_equal(out[0], 'a');
	clean_utf8(out, sizeof out, "\xe2\x82\xac\n");
	assert_string_equal(out, "\xe2\x82\xac\n");
}

static void test_flow__breaks_between_words(void **state)
{
	FILE *out = begin();
	flow_text(out, "one two three four", 2, 2, 12);
	ends_as(out, "one two\n  three four\n");
	out = begin();
	flow_text(out, "unbreakable-long-word x", 2, 2, 10);
	ends_as(out, "unbreakable-long-word\n  x\n");
	out = begin();
	flow_text(out, "", 0, 0, 10);
	ends_as(out, "\n");
}

static void test_table__aligns_and_cuts_the_flexible_column(void **state)
{
	static const struct table_column columns[] = { { "n", TABLE_RIGHT },
		                                       { "name", TABLE_FLEX },
		                                       { "end", TABLE_LEFT } };
	struct style style = { .utf8 = true, .columns = 40 };
	struct table *table = table_new(&style, columns, 3);
	FILE *out = begin();
	table_row(table, (const char *[]){ "7", "short", "x" });
	table_row(table,
	          (const char *[]){ "1234", "a name that is much too long for the screen", "y" });
	table_row(table, (const char *[]){ "5", NULL, NULL });
	table_print(table, out, 2);
	table_free(table);
	ends_as(out, "     n  name                         end\n"
		     "     7  short                        x\n"
		     "  1234  a name that is much too l..  y\n"
		     "     5\n");
}

static void test_table__counts_characters_not_bytes(void **state)
{
	static const struct table_column columns[] = { { NULL, TABLE_LEFT }, { NULL, TABLE_LEFT } };
	struct style style = { .utf8 = true, .columns = 80 };
	struct table *table = table_new(&style, columns, 2);
	FILE *out = begin();
	table_row(table, (const char *[]){ "\xc3\xbc", "a" });
	table_row(table, (const char *[]){ "uu", "b" });
	table_print(table, out, 0);
	table_free(table);
	ends_as(out, "\xc3\xbc   a\nuu  b\n");
}

static void test_style__colour_rules(void **state)
{
	static const struct {
		const char *no, *force, *cli;
		enum style_colour asked;
		bool colour;
	} rows[] = {
		{ NULL, NULL, NULL, STYLE_AUTO, false }, /* a memory stream is no terminal */
		{ NULL, "1", NULL, STYLE_AUTO, true },   { NULL, "0", NULL, STYLE_AUTO, false },
		{ NULL, NULL, "1", STYLE_AUTO, true },   { "1", "1", NULL, STYLE_AUTO, false },
		{ "", "1", NULL, STYLE_AUTO, true },     { "1", NULL, NULL, STYLE_ALWAYS, true },
		{ NULL, "1", NULL, STYLE_NEVER, false },
	};
	FILE *out = tmpfile();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct style style;
		unsetenv("NO_COLOR"), unsetenv("FORCE_COLOR"), unsetenv("CLICOLOR_FORCE");
		if (rows[i].no)
			setenv("NO_COLOR", rows[i].no, 1);
		if (rows[i].force)
			setenv("FORCE_COLOR", rows[i].force, 1);
		if (rows[i].cli)
			setenv("CLICOLOR_FORCE", rows[i].cli, 1);
		style_init(&style, out, rows[i].asked);
		assert_int_equal(style.colour, rows[i].colour);
		assert_int_equal(*style_on(&style, STYLE_BAD) != 0, rows[i].colour);
	}
	fclose(out);
}

static void test_style__width(void **state)
{
	struct style style;
	FILE *out = tmpfile();
	unsetenv("COLUMNS");
	style_init(&style, out, STYLE_AUTO);
	assert_int_equal(style.columns, 80);
	setenv("COLUMNS", "132", 1);
	style_init(&style, out, STYLE_AUTO);
	assert_int_equal(style.columns, 132);
	setenv("COLUMNS", "3", 1);
	style_init(&style, out, STYLE_AUTO);
	assert_int_equal(style.columns, 40);
	unsetenv("COLUMNS");
	fclose(out);
}

static void test_preload__ours_first_and_once(void **state)
{
	char out[128];
	assert_int_equal(library_compose_preload("/a/libcuflight.so", NULL, out, sizeof out), 0);
	assert_string_equal(out, "/a/libcuflight.so");
	assert_int_equal(library_compose_preload("/a/libcuflight.so",
	                                         "/x/libjemalloc.so:/b/libcuflight.so /y.so", out,
	                                         sizeof out),
	                 0);
	assert_string_equal(out, "/a/libcuflight.so:/x/libjemalloc.so:/y.so");
	assert_int_equal(library_compose_preload("/a/libcuflight.so", "/x/notlibcuflight.so", out,
	                                         sizeof out),
	                 0);
	assert_string_equal(out, "/a/libcuflight.so:/x/notlibcuflight.so");
	assert_int_equal(library_compose_preload("/a/libcuflight.so", "/x.so", out, 20), -1);
}

static void test_recordings__runs_by_parents_and_launchers(void **state)
{
	struct recording_file files[] = {
		{ .path = "root", .pid = 20, .ppid = 10, .start_ns = 100, .launcher = 10 },
		{ .path = "child", .pid = 21, .ppid = 20, .start_ns = 110, .saw_cuda = true },
		{ .path = "grandchild",
		  .pid = 22,
		  .ppid = 21,
		  .start_ns = 120,
		  .saw_cuda = true,
		  .incident_count = 1 },
		{ .path = "behind an unrecorded shell",
		  .pid = 30,
		  .ppid = 29,
		  .start_ns = 130,
		  .launcher = 10 },
		{ .path = "other", .pid = 40, .ppid = 3, .start_ns = 90, .incident_count = 7 },
	};
	struct recordings list = { .files = files, .count = 5, .room = 5 };
	assert_int_equal(recordings_mark_run(&list, 20, 0), 3);
	assert_false(files[3].of_run || files[4].of_run);
	assert_string_equal(recordings_best(&list)->path, "grandchild");
	assert_int_equal(recordings_mark_run(&list, 20, 10), 1);
	assert_true(files[3].of_run);
	for (size_t i = 0; i < 5; i++)
		files[i].of_run = false;
	assert_int_equal(recordings_mark_newest_run(&list), 4);
	assert_false(files[4].of_run);
	files[4].start_ns = 200;
	for (size_t i = 0; i < 5; i++)
		files[i].of_run = false;
	assert_int_equal(recordings_mark_newest_run(&list), 1);
	assert_string_equal(recordings_best(&list)->path, "other");
	files[4].replaced = true; /* by an image of the same pid */
	files[4].incident_count = 0;
	files[3] = (struct recording_file){
		.path = "image", .pid = 40, .ppid = 3, .start_ns = 201, .of_run = true,
	};
	assert_string_equal(recordings_best(&list)->path, "image");
	list = (struct recordings){ .files = files };
	assert_int_equal(recordings_mark_newest_run(&list), 0);
	assert_null(recordings_best(&list));
}

static void test_recordings__paths_are_quoted_for_the_shell(void **state)
{
	char out[64];
	recordings_show_path("/a/b c.cuf", out, sizeof out);
	assert_string_equal(out, "'/a/b c.cuf'");
	recordings_show_path("/it's", out, sizeof out);
	assert_string_equal(out, "'/it'\\''s'");
	recordings_show_path("/a/b.cuf", out, sizeof out);
	assert_string_equal(out, "/a/b.cuf");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean__terminal_gets_no_controls),
		cmocka_unit_test(test_clean__json_gets_valid_utf8),
		cmocka_unit_test(test_flow__breaks_between_words),
		cmocka_unit_test(test_table__aligns_and_cuts_the_flexible_column),
		cmocka_unit_test(test_table__counts_characters_not_bytes),
		cmocka_unit_test(test_style__colour_rules),
		cmocka_unit_test(test_style__width),
		cmocka_unit_test(test_preload__ours_first_and_once),
		cmocka_unit_test(test_recordings__runs_by_parents_and_launchers),
		cmocka_unit_test(test_recordings__paths_are_quoted_for_the_shell),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
