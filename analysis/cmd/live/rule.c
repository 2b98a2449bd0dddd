/* SPDX-License-Identifier: Apache-2.0 */
/* From left to right, one word after another. */
#include "analysis/cmd/live/rule.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/units.h"

struct parser {
	struct rule *rule;
	const char *at;      /* in rule->text */
	char *free;          /* in rule->storage */
	size_t arg_count;
	struct rule_error *error;
};

static bool __attribute__((format(printf, 3, 4)))
fault(struct parser *parser, const char *at, const char *format, ...)
{
	va_list args;

	parser->error->at = (size_t)(at - parser->rule->text);
	va_start(args, format);
	vsnprintf(parser->error->text, sizeof parser->error->text, format, args);
	va_end(args);
	return false;
}

static const char *skip(struct parser *parser)
{
	while (*parser->at == ' ' || *parser->at == '\t')
		parser->at++;
	return parser->at;
}

static bool take_text(struct parser *parser, const char *text)
{
	size_t bytes = strlen(text);

	if (strncmp(skip(parser), text, bytes) != 0)
		return false;
	parser->at += bytes;
	return true;
}

/* Letters, digits and _; up to an end, an operator or a blank. Cut to fit. */
static const char *take_word(struct parser *parser, char *out, size_t room)
{
	const char *begin = skip(parser);
	size_t bytes;

	while (isalnum((unsigned char)*parser->at) || *parser->at == '_')
		parser->at++;
	bytes = (size_t)(parser->at - begin);
	snprintf(out, room, "%.*s", (int)bytes, begin);
	return begin;
}

/* Up to a blank or an arrow. */
static const char *take_quantity(struct parser *parser, char *out, size_t room)
{
	const char *begin = skip(parser);

	while (*parser->at && !strchr(" \t,", *parser->at) && strncmp(parser->at, "->", 2) != 0)
		parser->at++;
	snprintf(out, room, "%.*s", (int)(parser->at - begin), begin);
	return begin;
}

/* ---- quantities ---- */

/* Digits with a point; no exponent, no sign. The rest is the unit. */
static bool parse_number(const char *text, double *number, const char **unit)
{
	size_t bytes = strspn(text, "0123456789.");
	char digits[32], *end;

	if (!bytes || bytes >= sizeof digits)
		return false;
	memcpy(digits, text, bytes);
	digits[bytes] = 0;
	*number = strtod(digits, &end);
	*unit = text + bytes;
	return !*end && isdigit((unsigned char)*digits);
}

static bool parse_duration(const char *text, double *seconds)
{
	static const struct { const char *unit; double seconds; } units[] = {
		{ "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 },
	};
	const char *unit;

	if (!parse_number(text, seconds, &unit))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (!strcmp(unit, units[i].unit)) {
			*seconds *= units[i].seconds;
			return true;
		}
	return !*unit && *seconds == 0;
}

static bool parse_bytes(const char *text, double *bytes)
{
	bool is_negative = *text == '-';
	uint64_t number;

	if (!units_parse_bytes(text + is_negative, &number))
		return false;
	*bytes = is_negative ? -(double)number : (double)number;
	return true;
}

static bool parse_value(struct rule *rule, const char *text)
{
	const char *unit;

	if (rule->subject.whole && parse_number(text, &rule->value, &unit) && !strcmp(unit, "%")) {
		rule->is_share = true;
		rule->value /= 100;
		return true;
	}
	if (rule->subject.unit == RULE_SECONDS)
		return parse_duration(text, &rule->value);
	if (rule->subject.unit == RULE_BYTES)
		return parse_bytes(text, &rule->value);
	return parse_number(text, &rule->value, &unit) && !*unit;
}

/* ---- the condition ---- */

static bool parse_words(struct parser *parser)
{
	struct rule_subject *subject = &parser->rule->subject;

	if (!take_text(parser, "("))
		return true;
	do {
		char *word = subject->words[subject->word_count];
		const char *begin = skip(parser);

		if (subject->word_count == RULE_WORDS)
			return fault(parser, begin, "more than %d words", RULE_WORDS);
		take_word(parser, word, sizeof subject->words[0]);
		if (!*word)
			return fault(parser, begin, "expected a word, as in time_to_oom(gpu)");
		subject->word_count++;
	} while (take_text(parser, ","));
	return take_text(parser, ")") || fault(parser, parser->at, "expected )");
}

static bool parse_subject(struct parser *parser)
{
	struct rule_subject *subject = &parser->rule->subject;
	char name[64], hint[300];
	const char *begin = take_word(parser, name, sizeof name), *wrong = NULL, *found;

	if (!*name)
		return fault(parser, begin, "expected a name, as in " RULE_EXAMPLE);
	if (!parse_words(parser))
		return false;
	if (rule_subject_find(subject, name, &wrong))
		return true;
	rule_subject_hint(subject, name, wrong, hint, sizeof hint);
	found = wrong ? strstr(begin, wrong) : begin;
	return fault(parser, found ? found : begin, "%s", hint);
}

static bool parse_limit(struct parser *parser)
{
	static const char *const expected[] = {
		[RULE_NUMBER] = "a number", [RULE_BYTES] = "a size, as 512MiB or 2GiB",
		[RULE_SECONDS] = "a duration, as 30s, 5m, 2h or 1d",
	};
	struct rule *rule = parser->rule;
	const char *begin = skip(parser);
	char text[64];

	rule->is_below = *begin == '<';
	if (*begin != '<' && *begin != '>')
		return fault(parser, begin, "expected < or >");
	parser->at++;
	begin = take_quantity(parser, text, sizeof text);
	if (parse_value(rule, text))
		return true;
	return fault(parser, begin, "expected %s%s", expected[rule->subject.unit],
		     rule->subject.whole ? ", or a share, as 90%" : "");
}

static bool parse_hold(struct parser *parser)
{
	const char *begin = skip(parser);
	char text[64];

	if (strncmp(begin, "for", 3) != 0 || isalnum((unsigned char)begin[3]))
		return true;
	parser->at += 3;
	begin = take_quantity(parser, text, sizeof text);
	return parse_duration(text, &parser->rule->hold_s) ||
	       fault(parser, begin, "expected a duration, as 30s, 5m, 2h or 1d");
}

/* ---- actions ---- */

/* One argument, without the quotes around parts of it. *arg NULL: the action ends here. */
static bool take_arg(struct parser *parser, char **arg)
{
	const char *begin = skip(parser);
	char quote = 0;

	*arg = NULL;
	if (!*begin || *begin == ',')
		return true;
	*arg = parser->free;
	for (; *parser->at && (quote || !strchr(" \t,", *parser->at)); parser->at++) {
		char c = *parser->at;

		if (quote ? c == quote : c == '\'' || c == '"')
			quote = quote ? 0 : c;
		else
			*parser->free++ = c;
	}
	*parser->free++ = 0;
	return !quote || fault(parser, begin, "the quote %c has no end", quote);
}

static bool parse_args(struct parser *parser, struct rule_action *action)
{
	char **args = parser->rule->args;
	char *arg;

	action->args = &args[parser->arg_count];
	do {
		const char *begin = skip(parser);

		if (parser->arg_count == RULE_ARGS)
			return fault(parser, begin, "more than %d arguments", RULE_ARGS - 1);
		if (!take_arg(parser, &arg))
			return false;
		args[parser->arg_count++] = arg;
	} while (arg);
	return true;
}

static bool parse_signal(struct parser *parser, struct rule_action *action)
{
	static const struct { const char *name; int number; } signals[] = {
		{ "TERM", SIGTERM }, { "INT", SIGINT }, { "HUP", SIGHUP }, { "QUIT", SIGQUIT },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "STOP", SIGSTOP },
		{ "CONT", SIGCONT }, { "KILL", SIGKILL },
	};
	char text[32];
	const char *begin = take_word(parser, text, sizeof text);
	const char *name = strncmp(text, "SIG", 3) != 0 ? text : text + 3;

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (!strcmp(name, signals[i].name)) {
			action->signal = signals[i].number;
			return true;
		}
	return fault(parser, begin, "expected a signal: TERM, INT, HUP, QUIT, USR1, USR2, STOP, "
		     "CONT or KILL");
}

static bool is_address(const char *text)
{
	return text && (!strncmp(text, "http://", 7) || !strncmp(text, "https://", 8));
}

static bool parse_action(struct parser *parser)
{
	static const char *const names[ACTION_KINDS] = {
		"snapshot", "log", "exec", "webhook", "signal",
	};
	struct rule *rule = parser->rule;
	struct rule_action *action = &rule->actions[rule->action_count];
	char name[32];
	const char *begin = take_word(parser, name, sizeof name);

	if (rule->action_count == RULE_ACTIONS)
		return fault(parser, begin, "more than %d actions", RULE_ACTIONS);
	while (action->kind < ACTION_KINDS && strcmp(name, names[action->kind]) != 0)
		action->kind++;
	rule->action_count++;
	begin = action->kind == ACTION_KINDS ? begin : skip(parser);
	switch (action->kind) {
	case ACTION_KINDS:
		return fault(parser, begin, "expected an action: snapshot, log, exec COMMAND, "
			     "webhook URL or signal NAME");
	case ACTION_SIGNAL:
		return parse_signal(parser, action);
	case ACTION_EXEC:
		return parse_args(parser, action) &&
		       (*action->args || fault(parser, begin, "expected a command, as in exec "
						 "./drain.sh"));
	case ACTION_WEBHOOK:
		return parse_args(parser, action) &&
		       ((is_address(*action->args) && !action->args[1]) ||
			fault(parser, begin, "expected one address, http:// or https://"));
	default:
		return true;
	}
}

static bool parse_actions(struct parser *parser)
{
	const char *begin;

	do
		if (!parse_action(parser))
			return false;
	while (take_text(parser, ","));
	begin = skip(parser);
	return !*begin || fault(parser, begin, "expected a comma and another action, or the end");
}

bool rule_parse(struct rule *rule, const char *text, struct rule_error *error)
{
	struct parser parser = { .rule = rule, .at = rule->text, .free = rule->storage,
				 .error = error };
	size_t bytes;

	*rule = (struct rule){ 0 };
	snprintf(rule->text, sizeof rule->text, "%s", text);
	if (strlen(text) >= sizeof rule->text)
		return fault(&parser, rule->text, "a rule has at most %d bytes", RULE_TEXT - 1);
	if (!parse_subject(&parser) || !parse_limit(&parser) || !parse_hold(&parser))
		return false;
	bytes = (size_t)(parser.at - rule->text);
	while (bytes && isspace((unsigned char)rule->text[bytes - 1]))
		bytes--;
	snprintf(rule->condition, sizeof rule->condition, "%.*s", (int)bytes, rule->text);
	if (!take_text(&parser, "->"))
		return fault(&parser, skip(&parser), "expected -> and an action%s",
			     rule->hold_s > 0 ? "" : ", or for DURATION");
	return parse_actions(&parser);
}
