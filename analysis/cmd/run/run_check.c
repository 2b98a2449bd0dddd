/* SPDX-License-Identifier: Apache-2.0 */
/* The gate at the end of `cuflight run`. */
#include "analysis/cmd/run/run_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/run/judge_run.h"
#include "analysis/gate/suppress.h"
#include "analysis/view/commands/gate_view.h"

enum { EXCEEDED = 1, UNREADABLE = 2, INCONCLUSIVE = 3, LIMITS_MAX = 32 };

/* The limits of --limits, which a comma separates. */
struct asked {
	char *text;
	char *limits[LIMITS_MAX];
	struct judge_request request;
};

static bool is_check(const struct opts *opts)
{
	return opts_has(opts, "check") || opts_text(opts, "limits") ||
	       opts_text(opts, "baseline") || opts_text(opts, "config");
}

/* --error-exitcode without --check: the defaults, whatever a cuflight.ini has. */
static bool is_short(const struct opts *opts)
{
	return !is_check(opts) && opts_number(opts, "error-exitcode", 0);
}

/* False: too many limits. */
static bool ask(struct asked *asked, const struct opts *opts)
{
	const char *limits = opts_text(opts, "limits");
	char *at, *next;

	*asked = (struct asked){ .request = { .baseline = opts_text(opts, "baseline"),
					      .config = opts_text(opts, "config"),
					      .no_config = is_short(opts) } };
	if (!limits)
		return true;
	asked->text = xalloc_string(limits);
	asked->request.limits = asked->limits;
	for (at = asked->text; at; at = next) {
		next = strchr(at, ',');
		if (next)
			*next++ = 0;
		if (asked->request.limit_count == LIMITS_MAX)
			return false;
		asked->limits[asked->request.limit_count++] = at;
	}
	return true;
}

int run_check_prepare(const struct opts *opts)
{
	struct suppressions *rules;
	struct asked asked;
	int status = -1;

	if (!is_check(opts))
		return 0;
	rules = gate_rules_open(opts);
	if (!rules)
		return -1;
	suppressions_free(rules);
	if (ask(&asked, opts))
		status = judge_check_limits(&asked.request);
	else
		say_error("more than %d limits; write them into cuflight.ini", LIMITS_MAX);
	free(asked.text);
	return status;
}

static void print_result(const struct gate_result *result)
{
	struct style style;

	style_init(&style, stderr, STYLE_AUTO);
	gate_text(stderr, result, &style, false);
}

/* The status of one recording. */
static int judge_one(const struct opts *opts, const struct judge_request *request)
{
	struct judged judged;
	int status;

	if (judge_run(request, &judged))
		return UNREADABLE;
	status = gate_exit_status(&judged.result);
	if (!is_short(opts))
		print_result(&judged.result);
	judge_free(&judged);
	return status;
}

/* Exceeded is worse than unreadable, which is worse than inconclusive. */
static int worse(int status, int other)
{
	static const int rank[] = { [0] = 0, [EXCEEDED] = 3, [UNREADABLE] = 2,
				    [INCONCLUSIVE] = 1 };

	return rank[status] >= rank[other] ? status : other;
}

static int judge_all(const struct opts *opts, const struct recordings *list, struct asked *asked)
{
	const struct recording_file *best = recordings_best(list);
	int worst = best ? 0 : INCONCLUSIVE;

	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *file = &list->files[i];
		int status;
		if (!file->of_run)
			continue;
		asked->request.path = file->path;
		status = judge_one(opts, &asked->request);
		if (status == INCONCLUSIVE && file != best && !file->saw_cuda)
			continue; /* a shell around the program */
		worst = worse(worst, status);
	}
	return worst;
}

int run_check_judge(const struct opts *opts, const struct recordings *list)
{
	int findings_status = (int)opts_number(opts, "error-exitcode", 0), status;
	struct asked asked;

	if (!is_check(opts) && !findings_status)
		return 0;
	ask(&asked, opts);
	asked.request.suppressions = gate_rules_open(opts);
	status = asked.request.suppressions ? judge_all(opts, list, &asked) : UNREADABLE;
	suppressions_free(asked.request.suppressions);
	free(asked.text);
	if (status == EXCEEDED && findings_status) {
		say_info("the report has findings: exit status is %d instead of 0",
			 findings_status);
		return findings_status;
	}
	if (is_short(opts))
		return 0;
	return status;
}

static const struct opt options[] = {
	{ "check", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "when COMMAND has succeeded, judge what it held as 'cuflight check' does, and exit with "
	  "its status" },
	{ "limits", 0, OPT_TEXT, "LIMIT,...", 0, 0, NULL,
	  "the limits of --check, as in 'device.peak <= 2GiB, device.leak = 0'" },
	{ "baseline", 'b', OPT_TEXT, "FILE", 0, 0, NULL, "the baseline of --check" },
	{ "config", 'c', OPT_TEXT, "FILE", 0, 0, "the nearest cuflight.ini",
	  "file with limits for --check" },
	{ "suppressions", 0, OPT_LIST, "FILE", 0, 0, NULL,
	  "rules of --check for call sites that do not count; may be given several times" },
	{ "no-default-suppressions", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "count also what drivers, NCCL, cuBLAS and interpreters keep once" },
	{ "error-exitcode", 0, OPT_COUNT, "N", 0, 255, "0",
	  "exit with N instead of 0 if a failed request was fatal, the kernel killed a process, or "
	  "a leak is proven, or, with --check, if a limit is exceeded; 0: never" },
};
const struct opt_group run_check_options = {
	"Gate", options, sizeof options / sizeof *options, { NULL },
};
