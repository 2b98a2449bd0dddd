/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight doctor`: prints the results of the checks in doctor/checks.h. */
#include "analysis/cmd/cmd.h"

#include <json-c/json.h>
#include "analysis/base/clean.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/target/checks.h"
#include "analysis/base/terminal.h"

enum { DOCTOR_INDENT = 25 };

static const struct {
	const char *word, *json;
	enum style_tone tone;
} states[] = {
	[CHECK_FINE] = { "ok", "ok", STYLE_GOOD },
	[CHECK_INFO] = { "note", "note", STYLE_WARN },
	[CHECK_PROBLEM] = { "PROBLEM", "problem", STYLE_BAD },
};

/* Texts contain paths and environment variables, which a terminal must not interpret. */
static void print_clean(struct output *output, const char *text, unsigned indent)
{
	char clean[sizeof ((struct check_result *)0)->found];

	clean_terminal(clean, sizeof clean, text, !output->style.utf8);
	flow_text(output->file, clean, indent, indent, output->style.columns);
}

/* One line a check: state, name, what was found; then the advice, if any. */
static void print_text(struct output *output, const struct check_result *results, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct check_result *result = &results[i];
		fprintf(output->file, "%s%-7s%s  %-14s  ",
			style_on(&output->style, states[result->state].tone),
			states[result->state].word, style_off(&output->style), result->name);
		print_clean(output, result->found, DOCTOR_INDENT);
		if (!*result->todo)
			continue;
		fprintf(output->file, "%*s-> ", DOCTOR_INDENT, "");
		print_clean(output, result->todo, DOCTOR_INDENT + 3);
	}
}

/* JSON must be valid UTF-8. A path may contain any bytes, each of which may need three. */
static struct json_object *clean_string(const char *text)
{
	char clean[3 * sizeof ((struct check_result *)0)->found];

	clean_utf8(clean, sizeof clean, text);
	return json_object_new_string(clean);
}

/* todo is null when nothing has to be done. */
static struct json_object *check_to_json(const struct check_result *result)
{
	struct json_object *check = json_object_new_object();

	json_object_object_add(check, "name", json_object_new_string(result->name));
	json_object_object_add(check, "state", json_object_new_string(states[result->state].json));
	json_object_object_add(check, "found", clean_string(result->found));
	json_object_object_add(check, "todo", NULL);
	if (*result->todo)
		json_object_object_add(check, "todo", clean_string(result->todo));
	return check;
}

/* Schema cuflight.doctor/1. `problems` counts the checks whose state is "problem". */
static void print_json(struct output *output, const struct check_result *results, size_t count,
		       size_t problems)
{
	struct json_object *top = json_object_new_object(), *checks = json_object_new_array();

	for (size_t i = 0; i < count; i++)
		json_object_array_add(checks, check_to_json(&results[i]));
	json_object_object_add(top, "schema", json_object_new_string("cuflight.doctor/1"));
	json_object_object_add(top, "problems", json_object_new_uint64(problems));
	json_object_object_add(top, "checks", checks);
	fprintf(output->file, "%s\n",
		json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}

/* On stderr, because the results above may be piped to a program. */
static void print_conclusion(const struct check_context *context, size_t problems)
{
	if (problems == 1)
		say_info("1 problem prevents recording");
	else if (problems)
		say_info("%zu problems prevent recording", problems);
	else if (context->command)
		say_info("recording will work");
	else
		say_info("recording will work; add '-- COMMAND' to check a command too");
}

/* Every check runs, also after a problem: the user sees all of them at once. */
static int run_doctor(const struct opts *opts, const struct cmd *const *commands)
{
	struct check_context context;
	struct check_result results[CHECKS_MAX];
	struct output output;
	size_t count, problems = 0;

	/* without operands, operands[0] is NULL: no command is checked */
	checks_prepare(&context, opts_text(opts, "library"), opts_text(opts, "recordings"),
		       opts_number(opts, "size", 64u << 20), opts->operands[0]);
	count = checks_run(&context, false, results);
	for (size_t i = 0; i < count; i++)
		problems += results[i].state == CHECK_PROBLEM;
	if (output_open(&output, opts))
		return CMD_USAGE;
	if (output.format == OUTPUT_JSON)
		print_json(&output, results, count, problems);
	else
		print_text(&output, results, count);
	if (output_close(&output))
		return CMD_USAGE;
	print_conclusion(&context, problems);
	return problems ? CMD_FINDINGS : CMD_FINE;
}

static const struct opt options[] = {
	{ "library", 0, OPT_TEXT, "PATH", 0, 0, NULL,
	  "the libcuflight.so to preload, if cuflight does not find it" },
	{ "recordings", 0, OPT_TEXT, "PATH", 0, 0, "CUFLIGHT_OUTPUT, else here",
	  "where recordings will be written, as for run -o" },
	{ "size", 0, OPT_BYTES, "SIZE", 4u << 20, 4ull << 30, "67108864",
	  "size of a recording, as for run --size" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "check whether recording will work here, and for a command",
	.manual = "cuflight-doctor",
	.usage = "[OPTIONS] [[--] COMMAND [ARGUMENT...]]",
	.about = "Checks what a recording needs and prints what to do about each problem. The "
		 "command is examined, not run. Exit status: 0 recording will work, 1 a problem "
		 "prevents it.",
	.examples = "cuflight doctor -- python3 server.py\tbefore the first run\n"
		    "cuflight doctor --json\tfor a script\n",
	.groups = { &option_group, &opts_result, &opts_common },
	.takes_command = true,
	.usage_exit = CMD_USAGE,
	.run = run_doctor,
};
