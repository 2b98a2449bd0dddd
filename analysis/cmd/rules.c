/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight rules`: alert rules and a dashboard for the metrics of this version. */
#include "analysis/cmd/cmd.h"

#include "analysis/cmd/cli/output.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/view/live/rules.h"

static void (*const writers[])(FILE *out) = {
	rules_prometheus, rules_prometheus_tests, rules_alertmanager, rules_grafana,
};

static int run_rules(const struct opts *opts, const struct cmd *const *commands)
{
	struct output output = { 0 };

	(void)commands;
	if (opts->operand_count) {
		say_error("too many arguments: '%s'; rules reads nothing", opts->operands[0]);
		return CMD_USAGE;
	}
	if (output_open_path(&output, opts_text(opts, "output"), opts_has(opts, "force")))
		return CMD_USAGE;
	writers[opts_number(opts, "to", 0)](output.file);
	return output_close(&output) ? CMD_USAGE : CMD_FINE;
}

static const struct opt options[] = {
	{ "to", 0, OPT_CHOICE, "prometheus|prometheus-tests|alertmanager|grafana", 0, 0,
	  "prometheus",
	  "what reads it: alert rules, their tests for promtool, routes, a dashboard" },
	{ "output", 'o', OPT_TEXT, "FILE", 0, 0, "stdout",
	  "write to FILE, which appears only when it is complete" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite an existing file" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_rules = {
	.name = "rules",
	.summary = "print alert rules and a dashboard for the metrics of serve",
	.usage = "[OPTIONS]",
	.manual = "cuflight-rules",
	.about = "Prints what Prometheus, Alertmanager and Grafana read, for the metrics that this "
		 "version of 'cuflight serve' exposes.",
	.examples = "cuflight rules >cuflight.rules.yml\tfor rule_files of prometheus.yml\n"
		    "cuflight rules --to=grafana >cuflight.json\ta dashboard to import\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_rules,
};
