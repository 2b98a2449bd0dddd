/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables to getopt_long and back. Prints nothing: errors are texts for main. */
#include "analysis/cmd/cli/opts.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cli/suggest.h"
#include "analysis/view/units.h"

#define ROWS(table) table, sizeof table / sizeof *table

static const struct opt common[] = {
	{ "help", 'h', OPT_FLAG, NULL, 0, 0, NULL, "print this help" },
	{ "version", 'V', OPT_FLAG, NULL, 0, 0, NULL, "print the version" },
	{ "quiet", 'q', OPT_FLAG, NULL, 0, 0, NULL, "say errors alone on stderr" },
	{ "verbose", 'v', OPT_FLAG, NULL, 0, 0, NULL, "say more on stderr" },
	{ "color", 0, OPT_CHOICE, "auto|always|never", 0, 0, "auto", "colour in the output; auto: on a terminal, unless NO_COLOR is set" },
};
const struct opt_group opts_common = { "Everywhere", ROWS(common), { NULL } };

static const struct opt result[] = {
	{ "output", 'o', OPT_TEXT, "FILE", 0, 0, "stdout", "write there, by way of a temporary file" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite an existing file" },
	{ "format", 0, OPT_CHOICE, "text|json", 0, 0, "text", "form of the output" },
	{ "json", 0, OPT_FLAG, NULL, 0, 0, NULL, "short for --format=json" },
};
const struct opt_group opts_result = { "Output", ROWS(result), { NULL } };

static bool omitted(const struct opt_group *group, const char *name)
{
	for (size_t i = 0; i < sizeof group->omit / sizeof *group->omit && group->omit[i]; i++)
		if (!strcmp(group->omit[i], name))
			return true;
	return false;
}

static struct opts_row *find_row(const struct opts *opts, const char *name)
{
	for (size_t i = 0; i < opts->count; i++)
		if (!strcmp(opts->rows[i].name, name))
			return (struct opts_row *)&opts->rows[i];
	return NULL;
}

static void add_row(struct opts *opts, const struct opt_group *group, const struct opt *opt)
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

void opts_init(struct opts *opts, const struct opt_group *const *groups)
{
	memset(opts, 0, sizeof *opts);
	for (; *groups; groups++)
		for (size_t i = 0; i < (*groups)->count; i++)
			if (!omitted(*groups, (*groups)->opts[i].name))
				add_row(opts, *groups, &(*groups)->opts[i]);
}

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

static int number_error(struct opts *opts, const struct opts_row *row, const char *text)
{
	bool bytes = row->opt.type == OPT_BYTES;
	snprintf(opts->error, sizeof opts->error, "--%s=%s: wanted a %s from %s to %s", row->name, text, bytes ? "size" : "number",
		 bytes ? units_bytes(row->opt.min).s : units_count(row->opt.min).s,
		 bytes ? units_bytes(row->opt.max).s : units_count(row->opt.max).s);
	return -1;
}

static int take_value(struct opts *opts, struct opts_row *row, const char *text)
{
	const struct opt *opt = &row->opt;
	int index;
	row->set = true;
	row->text = text;
	switch (opt->type) {
	case OPT_FLAG:
		row->number = 1;
		return 0;
	case OPT_TEXT:
		if (*text)
			return 0;
		snprintf(opts->error, sizeof opts->error, "--%s: the value is empty", row->name);
		return -1;
	case OPT_SWITCH:
	case OPT_CHOICE:
		index = text ? choice_index(opt->type == OPT_CHOICE ? opt->value : "0|1", text) : 1;
		row->number = (uint64_t)index;
		if (index >= 0)
			return 0;
		snprintf(opts->error, sizeof opts->error, "--%s=%s: wanted one of %s", row->name, text, opt->type == OPT_CHOICE ? opt->value : "0|1");
		return -1;
	case OPT_COUNT:
	case OPT_BYTES:
		if ((opt->type == OPT_BYTES ? units_parse_bytes : units_parse_count)(text, &row->number) &&
		    row->number >= opt->min && row->number <= opt->max)
			return 0;
		return number_error(opts, row, text);
	}
	return -1;
}

static int unknown_option(struct opts *opts, const char *typed)
{
	const char *names[OPTS_MAX], *near = NULL;
	size_t bytes = strcspn(typed, "=");
	char name[64];
	for (size_t i = 0; i < opts->count; i++)
		names[i] = opts->rows[i].name;
	if (!strncmp(typed, "--", 2) && bytes - 2 < sizeof name) {
		snprintf(name, sizeof name, "%.*s", (int)bytes - 2, typed + 2);
		near = suggest_nearest(name, names, opts->count);
	}
	snprintf(opts->error, sizeof opts->error, near ? "unknown option '%.*s'; did you mean '--%s'?" : "unknown option '%.*s'",
		 (int)(bytes > 100 ? 100 : bytes), typed, near);
	return -1;
}

static void build_getopt(const struct opts *opts, bool stop, char *letters, struct option *longs)
{
	static const int argument[] = {
		[OPT_FLAG] = no_argument, [OPT_SWITCH] = optional_argument, [OPT_TEXT] = required_argument,
		[OPT_CHOICE] = required_argument, [OPT_COUNT] = required_argument, [OPT_BYTES] = required_argument,
	};
	*letters++ = stop ? '+' : '-'; /* '-': operands come in their place, so the element just read is always argv[optind - 1] */
	*letters++ = ':';
	for (size_t i = 0; i < opts->count; i++) {
		const struct opt *opt = &opts->rows[i].opt;
		longs[i] = (struct option){ opts->rows[i].name, argument[opt->type], NULL, (int)(256 + i) };
		if (!opt->letter)
			continue;
		*letters++ = opt->letter;
		if (argument[opt->type] == required_argument)
			*letters++ = ':';
	}
	*letters = 0;
	longs[opts->count] = (struct option){ 0 };
}

/* getopt takes a unique beginning for a long name; we do not. */
static bool abbreviated(const char *typed, const char *name)
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

static int take_option(struct opts *opts, int code, char **argv)
{
	const char *last = argv[optind - 1];
	struct opts_row *row = code >= 256 ? &opts->rows[code - 256] : row_of_letter(opts, code);
	if (code == ':') {
		snprintf(opts->error, sizeof opts->error, "option '%s' needs a value", last);
		return -1;
	}
	if (code == '?' && optopt >= 256) {
		snprintf(opts->error, sizeof opts->error, "option '--%s' takes no value", opts->rows[optopt - 256].name);
		return -1;
	}
	if (code == '?' || !row) {
		char letter[3] = { '-', (char)optopt, 0 };
		return unknown_option(opts, optopt ? letter : last);
	}
	/* "--name value" takes two elements */
	if (code >= 256 && abbreviated(optarg == last ? argv[optind - 2] : last, row->name))
		return unknown_option(opts, optarg == last ? argv[optind - 2] : last);
	return take_value(opts, row, optarg);
}

int opts_parse(struct opts *opts, int argc, char **argv, bool stop_at_operand)
{
	struct option longs[OPTS_MAX + 1];
	char letters[2 * OPTS_MAX + 3];
	int code, operand = 0;
	build_getopt(opts, stop_at_operand, letters, longs);
	opterr = 0;
	optind = 0; /* start over: glibc */
	opts->operands = argv;
	while ((code = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		if (code == 1)
			argv[operand++] = optarg; /* behind what getopt has read already */
		else if (take_option(opts, code, argv))
			return -1;
	}
	while (optind < argc)
		argv[operand++] = argv[optind++];
	argv[operand] = NULL;
	opts->operand_count = operand;
	return 0;
}

static const struct opts_row *must_find(const struct opts *opts, const char *name)
{
	const struct opts_row *row = find_row(opts, name);
	assert(row && "option not in the command's tables");
	return row;
}

bool opts_has(const struct opts *opts, const char *name) { return must_find(opts, name)->set; }
const char *opts_text(const struct opts *opts, const char *name) { return must_find(opts, name)->text; }

uint64_t opts_number(const struct opts *opts, const char *name, uint64_t fallback)
{
	const struct opts_row *row = must_find(opts, name);
	return row->set ? row->number : fallback;
}

void opts_default(const struct opt *opt, char *out, size_t bytes)
{
	const char *word = opt->fallback ? opt->fallback : "";
	uint64_t number;
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
	static const char *const forms[] = {
		[OPT_FLAG] = "%s--%s", [OPT_SWITCH] = "%s--%s[=0|1]", [OPT_TEXT] = "%s--%s=%s",
		[OPT_CHOICE] = "%s--%s=%s", [OPT_COUNT] = "%s--%s=%s", [OPT_BYTES] = "%s--%s=%s",
	};
	char letter[8] = "    ";
	if (row->opt.letter)
		snprintf(letter, sizeof letter, "-%c, ", row->opt.letter);
	snprintf(out, bytes, forms[row->opt.type], letter, row->name, row->opt.value);
}
