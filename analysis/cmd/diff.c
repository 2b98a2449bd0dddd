/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight diff`: what changed between two runs, two baselines, or two moments of one run. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/open_facts.h"
#include "analysis/explain/facts_build.h"
#include "analysis/facts/totals.h"
#include "analysis/symbols/symbols.h"
#include "analysis/view/commands/baseline_file.h"
#include "analysis/view/commands/diff_view.h"

enum { ROWS_DEFAULT = 15, SITES_MAX = 100000, SENTENCE_BYTES = 1024 };
#define LEAST_DEFAULT (64u << 10)

/* One side, and what has to be freed. */
struct side {
	struct diff_side diff;
	struct gate_baseline figures;
	struct measured run;
	struct facts *facts;
};

static void free_side(struct side *side)
{
	if (side->diff.run)
		measured_free(&side->run);
	baseline_free(&side->figures);
	facts_free(side->facts);
}

/* A baseline is JSON, a recording begins with a magic number. */
static bool is_baseline(const char *path)
{
	struct stat st;
	FILE *file;
	int first;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	file = fopen(path, "re");
	if (!file)
		return false;
	first = getc(file);
	fclose(file);
	return first == '{';
}

/* A moment of its own, or the whole run (at NULL). */
static int open_run(struct side *side, const char *path, struct symbols *symbols,
		    const struct facts_options *at)
{
	side->facts = open_facts(path, symbols,
				 at ? at : &(struct facts_options){ .all_peaks = true });
	if (!side->facts)
		return CMD_USAGE;
	if (at)
		measure_moment(&side->run, side->facts, symbols);
	else
		measure_run(&side->run, side->facts, symbols);
	baseline_begin(&side->figures);
	baseline_add(&side->figures, &side->run);
	baseline_finish(&side->figures);
	side->diff.run = &side->run;
	return CMD_FINE;
}

static int open_side(struct side *side, const char *path, struct symbols *symbols,
		     const struct facts_options *at)
{
	char error[SENTENCE_BYTES];

	side->diff = (struct diff_side){ .name = path, .figures = &side->figures };
	if (at || !is_baseline(path))
		return open_run(side, path, symbols, at);
	if (!baseline_read(&side->figures, path, error, sizeof error))
		return CMD_FINE;
	say_error("%s", error);
	return CMD_USAGE;
}

/* ---- two moments ---- */

/* end, a failed request (#3), or a time since the start (12.5s). */
static bool parse_moment(const char *text, struct facts_options *out)
{
	char *end;
	double seconds;

	*out = (struct facts_options){ .at = FACTS_AT_AUTO, .sites_max = SITES_MAX };
	if (!strcmp(text, "end"))
		return true;
	if (*text == '#') {
		out->at = FACTS_AT_INCIDENT;
		return units_parse_count(text + 1, &out->at_value) && out->at_value;
	}
	seconds = strtod(text, &end);
	if (end == text || strcmp(end, "s") != 0 || !(seconds >= 0 && seconds < 1e9))
		return false;
	out->at = FACTS_AT_TIME;
	out->at_value = (uint64_t)(seconds * 1e9);
	return true;
}

/* "10s..20s" */
static int parse_moments(const char *text, char first[64], char second[64],
			 struct facts_options at[2])
{
	const char *dots = strstr(text, "..");

	if (dots && dots - text < 64 && strlen(dots + 2) < 64) {
		snprintf(first, 64, "%.*s", (int)(dots - text), text);
		snprintf(second, 64, "%s", dots + 2);
		if (parse_moment(first, &at[0]) && parse_moment(second, &at[1]))
			return CMD_FINE;
	}
	say_error("invalid value '%s' for --at: expected two moments, as in 10s..20s", text);
	return CMD_USAGE;
}

/* A moment that the recording does not have would silently be the end. */
static int check_moment(const struct side *side, const struct facts_options *at, const char *text)
{
	if (at->at == FACTS_AT_INCIDENT && at->at_value > side->facts->incident_count) {
		say_error("cannot compare with %s: %zu requests failed", text,
			  side->facts->incident_count);
		return CMD_USAGE;
	}
	if (at->at == FACTS_AT_TIME && at->at_value > facts_duration_ns(side->facts)) {
		say_error("cannot compare with %s: the recording ends after %s", text,
			  units_duration(facts_duration_ns(side->facts)).s);
		return CMD_USAGE;
	}
	return CMD_FINE;
}

/* ---- the result ---- */

static int write_diff(const struct opts *opts, const struct side *sides)
{
	struct arena *arena = arena_new();
	struct output output;
	struct gate_diff diff;
	int status = CMD_USAGE;

	if (!output_open(&output, opts)) {
		diff_take(&diff, &sides[0].diff, &sides[1].diff,
			  opts_has(opts, "end") || opts_text(opts, "at"),
			  opts_number(opts, "least", LEAST_DEFAULT), arena);
		if (output.format == OUTPUT_JSON)
			diff_json(output.file, &diff);
		else
			diff_text(output.file, &diff, &output.style,
				  opts_number(opts, "top", ROWS_DEFAULT));
		if (!output_close(&output))
			status = diff_has_change(&diff) ? CMD_FINDINGS : CMD_FINE;
	}
	arena_free(arena);
	return status;
}

static int check_operands(const struct opts *opts)
{
	int wanted = opts_text(opts, "at") ? 1 : 2;

	if (opts->operand_count == wanted)
		return CMD_FINE;
	say_error("%s; see 'cuflight diff --help'",
		  wanted == 1 ? "--at compares two moments of one recording: name one" :
				"name two recordings, directories or baselines");
	return CMD_USAGE;
}

static int run_diff(const struct opts *opts, const struct cmd *const *commands)
{
	struct symbols_options options = { .sysroot = opts_text(opts, "sysroot") };
	const char *at = opts_text(opts, "at");
	struct facts_options moments[2];
	struct side sides[2] = { 0 };
	char names[2][64];
	struct symbols *symbols;
	int status = check_operands(opts);

	if (!status && at)
		status = parse_moments(at, names[0], names[1], moments);
	if (status)
		return status;
	symbols = symbols_new(&options);
	for (int i = 0; i < 2 && !status; i++) {
		status = open_side(&sides[i], opts->operands[at ? 0 : i], symbols,
				   at ? &moments[i] : NULL);
		if (!status && at) {
			status = check_moment(&sides[i], &moments[i], names[i]);
			sides[i].diff.name = names[i];
		}
	}
	if (!status)
		status = write_diff(opts, sides);
	free_side(&sides[0]);
	free_side(&sides[1]);
	symbols_free(symbols);
	return status;
}

static const struct opt diff_options[] = {
	{ "at", 0, OPT_TEXT, "A..B", 0, 0, NULL,
	  "compare two moments of one recording, each Ns for seconds since the start, #N for a "
	  "failed request, or end" },
	{ "end", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "compare what call sites held at the end, not at the peak" },
	{ "least", 0, OPT_BYTES, "SIZE", 0, UINT64_MAX / 2, "65536",
	  "leave out call sites that changed by less" },
	{ "top", 0, OPT_COUNT, "N", 1, 1000000, "15", "call sites to print" },
	{ "sysroot", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "get function names from the recorded machine's files below DIR, not from here" },
};
static const struct opt_group option_group = {
	"Options", diff_options, sizeof diff_options / sizeof *diff_options, { NULL },
};

const struct cmd cmd_diff = {
	.name = "diff",
	.summary = "compare two runs, two baselines, or two moments of a run",
	.usage = "[OPTIONS] A B",
	.manual = "cuflight-diff",
	.about = "Prints what changed from A to B: totals by kind, then the call sites that are "
		 "new, gone, grown or shrunk, the biggest change first. A and B are recordings, "
		 "directories that are one run, or baselines; DIRECTORY/#3 is the third run of a "
		 "directory, as 'cuflight list' numbers them. With --at, name one recording. Exit "
		 "status: 0 no call site changed; 1 one did; 2 usage error or unreadable input.",
	.examples = "cuflight diff before.cuf after.cuf\ttwo runs\n"
		    "cuflight diff rec/#1 rec/#3\ttwo runs of a directory\n"
		    "cuflight diff memory.json after.cuf\ta baseline and a run\n"
		    "cuflight diff --at=0.001s..end server.cuf\tsince the first millisecond\n",
	.groups = { &option_group, &opts_result, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_diff,
};
