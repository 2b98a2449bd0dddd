/* SPDX-License-Identifier: Apache-2.0 */
/* The rules as files of Prometheus and Alertmanager. Texts of the table have no single quotes, so
 * that YAML takes them as they are between two. */
#include "analysis/view/live/rules.h"

#include <string.h>

static const char head[] = "# Printed by cuflight " CUFLIGHT_VERSION ": cuflight rules\n";

static void put_rule(FILE *out, const struct alert_rule *rule)
{
	fprintf(out, "  - alert: %s\n    expr: '%s'\n", rule->name, rule->expr);
	if (*rule->hold)
		fprintf(out, "    for: %s\n", rule->hold);
	fprintf(out, "    labels:\n      severity: %s\n    annotations:\n", rule->severity);
	fprintf(out, "      summary: '%s'\n      description: '%s'\n", rule->summary,
		rule->description);
}

static void put_group(FILE *out, const char *group)
{
	fprintf(out, "- name: %s\n  rules:\n", group);
	for (size_t i = 0; i < alert_rule_count; i++)
		if (!strcmp(alert_rules[i].group, group))
			put_rule(out, &alert_rules[i]);
}

void rules_prometheus(FILE *out)
{
	fprintf(out, "%sgroups:\n", head);
	put_group(out, "cuflight");
	put_group(out, "cuflight-vllm");
}

/* ---- tests ---- */

/* "SERIES => VALUES" lines. A file of promtool begins each series at minute 0. */
static void put_input(FILE *out, const char *input)
{
	while (*input) {
		size_t bytes = strcspn(input, "\n");
		const char *arrow = strstr(input, " => ");

		fprintf(out, "  - series: '%.*s'\n    values: '%.*s'\n",
			(int)(arrow - input), input, (int)(input + bytes - arrow - 4), arrow + 4);
		input += bytes + (input[bytes] == '\n');
	}
}

/* It fires when it must, and nothing fires a minute after the start. */
static void put_test(FILE *out, const struct alert_rule *rule)
{
	static const char firing[] = "count by (alertname) (ALERTS{alertstate=\"firing\"})";

	fprintf(out, "- name: %s\n  interval: 1m\n  input_series:\n", rule->name);
	put_input(out, rule->input);
	fprintf(out, "  promql_expr_test:\n");
	fprintf(out, "  - expr: '%s'\n    eval_time: 0m\n    exp_samples: []\n", firing);
	fprintf(out, "  - expr: '%s'\n    eval_time: %um\n    exp_samples:\n", firing,
		rule->fires_after);
	fprintf(out, "    - labels: '{alertname=\"%s\"}'\n      value: 1\n", rule->name);
}

void rules_prometheus_tests(FILE *out)
{
	fprintf(out, "%s# next to cuflight.rules.yml: promtool test rules FILE\n", head);
	fputs("rule_files:\n- cuflight.rules.yml\nevaluation_interval: 1m\ntests:\n", out);
	for (size_t i = 0; i < alert_rule_count; i++)
		put_test(out, &alert_rules[i]);
}

/* ---- alertmanager ---- */

void rules_alertmanager(FILE *out)
{
	fprintf(out, "%s# Give the receiver what reaches you: webhook_configs, email_configs ...\n",
		head);
	fputs("route:\n"
	      "  receiver: cuflight\n"
	      "  group_by: [process]\n"
	      "  group_wait: 10s\n"
	      "  group_interval: 1m\n"
	      "  repeat_interval: 4h\n"
	      "  routes:\n"
	      "  - receiver: cuflight\n"
	      "    matchers: [severity = critical]\n"
	      "    group_wait: 0s\n"
	      "    repeat_interval: 1h\n"
	      "receivers:\n"
	      "- name: cuflight\n"
	      "inhibit_rules:\n"
	      "- source_matchers: [alertname = CuflightOutOfMemoryImminent]\n"
	      "  target_matchers: ['alertname =~ \"CuflightOutOfMemoryPredicted|"
	      "CuflightNoHeadroom|CuflightLeak\"']\n"
	      "  equal: [process]\n", out);
}
