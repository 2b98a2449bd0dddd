/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight doctor`: the checks of checks.h, as a table. */
#include "analysis/cmd/cmd.h"

#include <json-c/json.h>
#include "analysis/cmd/doctor/checks.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/view/clean.h"
#include "analysis/view/text/flow.h"

enum { DOCTOR_INDENT = 25 };

static const struct { const char *word, *json; enum style_tone tone; } states[] = {
	[CHECK_FINE] = { "ok", "ok", STYLE_GOOD },
	[CHECK_INFO] = { "note", "note", STYLE_WARN },
	[CHECK_PROBLEM] = { "PROBLEM", "problem", STYLE_BAD },
};

static void print_text(struct output *output, const struct check_result *results, size_t count)
{
	char clean[sizeof results->found];
	for (size_t i = 0; i < count; i++) {
		const struct check_result *r = &results[i];
		fprintf(output->file, "%s%-7s%s  %-14s  ", style_on(&output->style, states[r->state].tone), states[r->state].word,
			style_off(&output->style), r->name);
		clean_terminal(clean, sizeof clean, r->found, !output->style.utf8);
		flow_text(output->file, clean, DOCTOR_INDENT, DOCTOR_INDENT, output->style.columns);
		if (!*r->todo)
			continue;
		fprintf(output->file, "%*s-> ", DOCTOR_INDENT, "");
		clean_terminal(clean, sizeof clean, r->todo, !output->style.utf8);
		flow_text(output->file, clean, DOCTOR_INDENT + 3, DOCTOR_INDENT + 3, output->style.columns);
	}
}

static struct json_object *clean_string(const char *text)
{
	char clean[3 * sizeof((struct check_result *)0)->found];
	clean_utf8(clean, sizeof clean, text);
	return json_object_new_string(clean);
}

static void print_json(struct output *output, const struct check_result *results, size_t count, size_t problems)
{
	struct json_object *top = json_object_new_object(), *checks = json_object_new_array();
	for (size_t i = 0; i < count; i++) {
		struct json_object *check = json_object_new_object();
		json_object_object_add(check, "name", json_object_new_string(results[i].name));
		json_object_object_add(check, "state", json_object_new_string(states[results[i].state].json));
		json_object_object_add(check, "found", clean_string(results[i].found));
		json_object_object_add(check, "todo", *results[i].todo ? clean_string(results[i].todo) : NULL);
		json_object_array_add(checks, check);
	}
	json_object_object_add(top, "schema", json_object_new_string("cuflight.doctor/1"));
	json_object_object_add(top, "problems", json_object_new_uint64(problems));
	json_object_object_add(top, "checks", checks);
	fprintf(output->file, "%s\n", json_object_to_json_string_ext(top, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(top);
}

static int run_doctor(const struct opts *opts)
{
	struct check_context context;
	struct check_result results[CHECKS_MAX];
	struct output output;
	size_t count, problems = 0;
	checks_prepare(&context, opts_text(opts, "library"), opts_text(opts, "recordings"), opts_number(opts, "size", 64u << 20),
		       opts->operand_count ? opts->operands[0] : NULL);
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
	if (problems)
		say_info(problems == 1 ? "%zu problem stands in the way of a recording" : "%zu problems stand in the way of a recording", problems);
	else
		say_info("nothing stands in the way of a recording%s", context.command ? "" : "; with '-- COMMAND' the command is looked at too");
	return problems ? CMD_FINDINGS : CMD_FINE;
}

static const struct opt own[] = {
	{ "library", 0, OPT_TEXT, "PATH", 0, 0, NULL, "the libcuflight.so to preload, when it is not beside cuflight or installed" },
	{ "recordings", 0, OPT_TEXT, "PATH", 0, 0, "CUFLIGHT_OUTPUT, else here", "where recordings are to go, as run -o has it" },
	{ "size", 0, OPT_BYTES, "SIZE", 4u << 20, 4ull << 30, "67108864", "size of a recording, as run --size has it" },
};
static const struct opt_group own_group = { "Options", own, sizeof own / sizeof *own, { NULL } };

const struct cmd cmd_doctor = {
	.name = "doctor",
	.summary = "will recording work here, and for this command",
	.usage = "[OPTIONS] [[--] COMMAND [ARGUMENT...]]",
	.about = "Looks at what a recording needs and says of each thing whether it is fine and what to do if not. The command is looked at, "
		 "not run. Exit status: 0 nothing stands in the way, 1 something does.",
	.examples = "cuflight doctor -- python3 server.py\tbefore the first run\n"
		    "cuflight doctor --json\tfor a script\n",
	.groups = { &own_group, &opts_result, &opts_common },
	.takes_command = true,
	.usage_exit = CMD_USAGE,
	.run = run_doctor,
};
