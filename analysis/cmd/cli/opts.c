/* SPDX-License-Identifier: Apache-2.0 */
/* Translates option tables to getopt_long and its results back. Errors are texts: main prints. */
#include "analysis/cmd/cli/opts.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cli/suggest.h"
#include "analysis/base/units.h"

#define ROWS(table) table, sizeof table / sizeof *table

enum { LONG_CODE = 256 /* getopt's code for row 0; letters are below it */ };

static const struct opt common[] = {
	{ "help", 'h', OPT_FLAG, NULL, 0, 0, NULL, "print this help" },
	{ "version", 'V', OPT_FLAG, NULL, 0, 0, NULL, "print the version" },
	{ "quiet", 'q', OPT_FLAG, NULL, 0, 0, NULL, "print errors only" },
	{ "verbose", 'v', OPT_FLAG, NULL, 0, 0, NULL, "print more on stderr" },
	{ "color", 0, OPT_CHOICE, "auto|always|never", 0, 0, "auto",
	  "colour the output; auto: on a terminal, unless NO_COLOR is set" },
};
const struct opt_group opts_common = { "Everywhere", ROWS(common), { NULL } };

static const struct opt result[] = {
	{ "output", 'o', OPT_TEXT, "FILE", 0, 0, "stdout",
	  "write to FILE, which appears only when it is complete" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite an existing file" },
	{ "format", 0, OPT_CHOICE, "text|json", 0, 0, "text", "format of the output" },
	{ "json", 0, OPT_FLAG, NULL, 0, 0, NULL, "the same as --format=json" },
};
const struct opt_group opts_result = { "Output", ROWS(result), { NULL } };

/* A group that is shared may have options that a command does not support. */
static bool is_omitted(const struct opt_group *group, const char *name)
{
	for (size_t i = 0; i < sizeof group->omit / sizeof *group->omit && group->omit[i]; i++)
		if (!strcmp(group->omit[i], name))
			return true;
	return false;
}

/* Casts const away: rows belong to *opts, and callers that may change them have it without
 * const. */
static struct opts_row *find_row(const struct opts *opts, const char *name)
{
	for (size_t i = 0; i < opts->count; i++)
		if (!strcmp(opts->rows[i].name, name))
			return (struct opts_row *)&opts->rows[i];
	return NULL;
}

/* Tables that are shared with the recorder spell names with underscores. An option of an earlier
 * group hides one of the same name in a later group. */
static void add_opt_row(struct opts *opts, const struct opt_group *group, const struct opt *opt)
{
	struct opts_row *row = &opts->rows[opts->count];

	snprintf(row->name, sizeof row->name, "%s", opt->name);
	for (char *c = row->name; *c; c++)
		if (*c == '_')
			*c = '-';
	if (find_row(opts, row->name))
		return;
	row->opt = *opt;
	row->group = group;
	opts->count++;
	assert(opts->count < OPTS_MAX);
}

/* The rows are copies, so values can be stored in them. */
void opts_init(struct opts *opts, const struct opt_group *const *groups)
{
	memset(opts, 0, sizeof *opts);
	for (; *groups; groups++)
		for (size_t i = 0; i < (*groups)->count; i++)
			if (!is_omitted(*groups, (*groups)->opts[i].name))
				add_opt_row(opts, *groups, &(*groups)->opts[i]);
}

/* ---- values ---- */

/* The index of a word in "a|b|c", or -1. */
static int choice_index(const char *words, const char *typed)
{
	size_t bytes = strlen(typed);

	for (int index = 0; ; index++) {
		size_t length = strcspn(words, "|");
		if (length == bytes && !memcmp(words, typed, bytes))
			return index;
		if (!words[length])
			return -1;
		words += length + 1;
	}
}

static int take_choice(struct opts *opts, struct opts_row *row, const char *words)
{
	int index = choice_index(words, row->text);

	if (index >= 0) {
		row->number = (uint64_t)index;
		return 0;
	}
	snprintf(opts->error, sizeof opts->error, "invalid value '%s' for --%s: expected one of %s",
		 row->text, row->name, words);
	return -1;
}

/* Both bounds are inclusive. */
static bool is_within(const struct opts_row *row)
{
	return row->number >= row->opt.min && row->number <= row->opt.max;
}

static int take_count(struct opts *opts, struct opts_row *row)
{
	if (units_parse_count(row->text, &row->number) && is_within(row))
		return 0;
	snprintf(opts->error, sizeof opts->error,
		 "invalid value '%s' for --%s: expected a number from %s to %s",
		 row->text, row->name, units_count(row->opt.min).s, units_count(row->opt.max).s);
	return -1;
}

static int take_opt_text(struct opts *opts, const struct opts_row *row)
{
	if (*row->text)
		return 0;
	snprintf(opts->error, sizeof opts->error, "--%s needs a value that is not empty",
		 row->name);
	return -1;
}

static int take_list(struct opts *opts, struct opts_row *row)
{
	if (row->list_count == OPTS_LIST_MAX) {
		snprintf(opts->error, sizeof opts->error, "--%s may be given %d times", row->name,
			 OPTS_LIST_MAX);
		return -1;
	}
	row->list[row->list_count++] = row->text;
	return take_opt_text(opts, row);
}

static int take_bytes(struct opts *opts, struct opts_row *row)
{
	if (units_parse_bytes(row->text, &row->number) && is_within(row))
		return 0;
	snprintf(opts->error, sizeof opts->error,
		 "invalid value '%s' for --%s: expected a size from %s to %s",
		 row->text, row->name, units_bytes(row->opt.min).s, units_bytes(row->opt.max).s);
	return -1;
}

/* text is NULL for a flag, and for a switch without a value. */
static int take_value(struct opts *opts, struct opts_row *row, const char *text)
{
	row->set = true;
	row->text = text;
	row->number = 1;
	switch (row->opt.type) {
	case OPT_FLAG:
		return 0;
	case OPT_TEXT:
		return take_opt_text(opts, row);
	case OPT_LIST:
		return take_list(opts, row);
	case OPT_SWITCH:
		if (!text)
			return 0;
		return take_choice(opts, row, "0|1");
	case OPT_CHOICE:
		return take_choice(opts, row, row->opt.value);
	case OPT_COUNT:
		return take_count(opts, row);
	case OPT_BYTES:
		return take_bytes(opts, row);
	}
	return -1;
}

/* ---- parsing ---- */

/* The part after '=' is left out: it may be a secret. */
static int unknown_option(struct opts *opts, const char *typed)
{
	const char *names[OPTS_MAX], *near = NULL;
	size_t bytes = strcspn(typed, "=");
	char name[64], shown[100];
	int used;

	for (size_t i = 0; i < opts->count; i++)
		names[i] = opts->rows[i].name;
	if (!strncmp(typed, "--", 2) && bytes - 2 < sizeof name) {
		snprintf(name, sizeof name, "%.*s", (int)bytes - 2, typed + 2);
		near = suggest_nearest(name, names, opts->count);
		if (!strcmp(name, "format") && find_row(opts, "to"))
			near = "to"; /* of export, which has formats but no --format */
	}
	snprintf(shown, sizeof shown, "%.*s", (int)bytes, typed);
	used = snprintf(opts->error, sizeof opts->error, "unknown option '%s'", shown);
	if (near)
		snprintf(opts->error + used, sizeof opts->error - (size_t)used,
			 "; did you mean '--%s'?", near);
	return -1;
}

/* Fills getopt's two descriptions of the table: the letters and the long names. */
static void build_getopt(const struct opts *opts, bool stop, char *letters, struct option *longs)
{
	static const int argument[] = {
		[OPT_FLAG] = no_argument,
		[OPT_SWITCH] = optional_argument,
		[OPT_TEXT] = required_argument,
		[OPT_LIST] = required_argument,
		[OPT_CHOICE] = required_argument,
		[OPT_COUNT] = required_argument,
		[OPT_BYTES] = required_argument,
	};

	/* '-' returns operands in their place: argv[optind - 1] is always the element just read */
	*letters++ = stop ? '+' : '-';
	*letters++ = ':';
	for (size_t i = 0; i < opts->count; i++) {
		const struct opt *opt = &opts->rows[i].opt;
		longs[i] = (struct option){
			opts->rows[i].name, argument[opt->type], NULL, LONG_CODE + (int)i,
		};
		if (!opt->letter)
			continue;
		*letters++ = opt->letter;
		if (argument[opt->type] == required_argument)
			*letters++ = ':';
	}
	*letters = 0;
	longs[opts->count] = (struct option){ 0 };
}

/* getopt_long accepts the unique beginning of a name. We do not. */
static bool is_abbreviated(const char *typed, const char *name)
{
	return strncmp(typed, "--", 2) != 0 || strcspn(typed + 2, "=") != strlen(name);
}

static struct opts_row *row_of_letter(struct opts *opts, int letter)
{
	for (size_t i = 0; i < opts->count; i++)
		if (opts->rows[i].opt.letter == letter)
			return &opts->rows[i];
	return NULL;
}

static struct opts_row *row_of_code(struct opts *opts, int code)
{
	if (code >= LONG_CODE)
		return &opts->rows[code - LONG_CODE];
	return row_of_letter(opts, code);
}

/* getopt returned ':' (a value is missing) or '?' (unknown, or a value that is not allowed). */
static int reject_option(struct opts *opts, int code, const char *last)
{
	if (code == ':') {
		snprintf(opts->error, sizeof opts->error, "option '%s' needs a value", last);
		return -1;
	}
	if (optopt >= LONG_CODE) {
		snprintf(opts->error, sizeof opts->error, "option '--%s' takes no value",
			 opts->rows[optopt - LONG_CODE].name);
		return -1;
	}
	if (optopt) {
		char letter[3] = { '-', (char)optopt, 0 };
		return unknown_option(opts, letter);
	}
	return unknown_option(opts, last);
}

static int take_option(struct opts *opts, int code, char **argv)
{
	const char *last = argv[optind - 1];
	struct opts_row *row;

	if (code == ':' || code == '?')
		return reject_option(opts, code, last);
	row = row_of_code(opts, code);
	if (code >= LONG_CODE) {
		const char *typed = last;
		if (optarg == last) /* "--name value" occupies two elements */
			typed = argv[optind - 2];
		if (is_abbreviated(typed, row->name))
			return unknown_option(opts, typed);
	}
	return take_value(opts, row, optarg);
}

int opts_parse(struct opts *opts, int argc, char **argv, bool stop_at_operand)
{
	struct option longs[OPTS_MAX + 1];
	char letters[2 * OPTS_MAX + 3];
	int code, operand = 0;

	build_getopt(opts, stop_at_operand, letters, longs);
	opterr = 0;
	optind = 0; /* glibc: start over */
	opts->operands = argv;
	while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (code == 1)
			argv[operand++] = optarg; /* getopt has already read this slot */
		else if (take_option(opts, code, argv))
			return -1;
	}
	while (optind < argc)
		argv[operand++] = argv[optind++];
	argv[operand] = NULL;
	opts->operand_count = operand;
	return 0;
}

/* ---- results ---- */

static const struct opts_row *require_row(const struct opts *opts, const char *name)
{
	const struct opts_row *row = find_row(opts, name);

	assert(row && "option not in the command's tables");
	return row;
}

bool opts_has(const struct opts *opts, const char *name)
{
	return require_row(opts, name)->set;
}

const char *opts_text(const struct opts *opts, const char *name)
{
	return require_row(opts, name)->text;
}

const char *const *opts_list(const struct opts *opts, const char *name, size_t *count)
{
	const struct opts_row *row = find_row(opts, name);

	assert(row);
	*count = row->list_count;
	return row->list;
}

uint64_t opts_number(const struct opts *opts, const char *name, uint64_t fallback)
{
	const struct opts_row *row = require_row(opts, name);
	return row->set ? row->number : fallback;
}

void opts_default(const struct opt *opt, char *out, size_t bytes)
{
	const char *word = opt->fallback;
	uint64_t number;

	if (!word)
		word = "";
	snprintf(out, bytes, "%s", word);
	if (!units_parse_count(word, &number))
		return;
	if (opt->type == OPT_BYTES)
		snprintf(out, bytes, "%s", units_bytes(number).s);
	if (opt->type != OPT_CHOICE)
		return;
	for (word = opt->value; number && *word; word++)
		number -= *word == '|';
	snprintf(out, bytes, "%.*s", (int)strcspn(word, "|"), word);
}

void opts_spell(const struct opts_row *row, char *out, size_t bytes)
{
	char letter[8] = "    ";

	if (row->opt.letter)
		snprintf(letter, sizeof letter, "-%c, ", row->opt.letter);
	switch (row->opt.type) {
	case OPT_FLAG:
		snprintf(out, bytes, "%s--%s", letter, row->name);
		break;
	case OPT_SWITCH:
		snprintf(out, bytes, "%s--%s[=0|1]", letter, row->name);
		break;
	default:
		snprintf(out, bytes, "%s--%s=%s", letter, row->name, row->opt.value);
		break;
	}
}
