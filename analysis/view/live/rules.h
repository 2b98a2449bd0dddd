/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alert rules, their tests and a dashboard over the metrics of view/live/, as text of the tools
 * that read them. Contract: constant tables and pure writers; write errors stay in the stream.
 */
#pragma once

#include <stdio.h>

struct alert_rule {
	const char *name, *expr;
	const char *hold;         /* how long it must be true; "" at once */
	const char *severity;     /* info, warning, critical */
	const char *summary, *description; /* templates of Prometheus; no single quotes */
	const char *group;        /* "cuflight", or of an engine */
	/* Series that make it fire, for promtool: "SERIES => VALUES", a line each, one value a
	 * minute; and the minutes after which it does. */
	const char *input;
	unsigned fires_after;
};
extern const struct alert_rule alert_rules[];
extern const size_t alert_rule_count;

struct panel { const char *title, *expr, *legend, *unit; };
extern const struct panel panels[];
extern const size_t panel_count;

void rules_prometheus(FILE *out);
void rules_prometheus_tests(FILE *out);
void rules_alertmanager(FILE *out);
void rules_grafana(FILE *out);
