/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenMetrics text, which Prometheus reads, too: what was observed, what is allowed, and which
 * limits were exceeded. A value that is unknown has no sample. No timestamps, no call sites.
 */
#include <inttypes.h>
#include <string.h>
#include "analysis/view/clean.h"
#include "analysis/view/gate/write_parts.h"

/* One metric: its value for a finding, and whether findings of one measure share it. */
struct family {
	const char *name, *help;
	enum gate_unit unit;
	bool of_limit; /* has the limit as a label */
	uint64_t (*value)(const struct gate_finding *finding);
};

static uint64_t observed(const struct gate_finding *finding) { return finding->observed.value; }
static uint64_t allowed(const struct gate_finding *finding) { return finding->allowed; }
static uint64_t exceeded(const struct gate_finding *finding)
{
	return finding->status == GATE_EXCEEDED;
}

static const struct family families[] = {
	{ "cuflight_check_observed_bytes", "What the run has of this measure.", GATE_BYTES, false,
	  observed },
	{ "cuflight_check_observed", "What the run has of this measure.", GATE_COUNT, false,
	  observed },
	{ "cuflight_check_allowed_bytes", "The figure that the limit comes to.", GATE_BYTES, true,
	  allowed },
	{ "cuflight_check_allowed", "The figure that the limit comes to.", GATE_COUNT, true,
	  allowed },
};
static const struct family verdict = {
	"cuflight_check_exceeded", "1: the limit was exceeded.", GATE_COUNT, true, exceeded,
};

static void print_label(FILE *out, const char *name, const char *value)
{
	char clean[GATE_TEXT_MAX];

	clean_terminal(clean, sizeof clean, value, false);
	fprintf(out, "%s=\"", name);
	for (const char *at = clean; *at; at++) {
		if (*at == '\\' || *at == '"')
			fputc('\\', out);
		fputc(*at, out);
	}
	fputc('"', out);
}

static bool same(const struct family *family, const struct gate_finding *a,
		 const struct gate_finding *b)
{
	const char *phase_a = a->limit.phase ? a->limit.phase : "";
	const char *phase_b = b->limit.phase ? b->limit.phase : "";

	return a->limit.measure == b->limit.measure && !strcmp(phase_a, phase_b) &&
	       (!family->of_limit || !strcmp(a->limit.text, b->limit.text));
}

/* A series may appear once. */
static bool seen_before(const struct family *family, const struct gate_result *result, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (same(family, &result->findings[i], &result->findings[index]) &&
		    family->value(&result->findings[i]) != CUF_UNKNOWN)
			return true;
	return false;
}

static void print_sample(FILE *out, const struct family *family, const struct gate_finding *finding)
{
	fprintf(out, "%s{", family->name);
	print_label(out, "measure", finding->limit.measure->name);
	if (finding->limit.phase) {
		fputc(',', out);
		print_label(out, "phase", finding->limit.phase);
	}
	if (family->of_limit) {
		fputc(',', out);
		print_label(out, "limit", finding->limit.text);
	}
	fprintf(out, "} %" PRIu64 "\n", family->value(finding));
}

static void print_family(FILE *out, const struct family *family, const struct gate_result *result,
			 bool any_unit)
{
	bool begun = false;

	for (size_t i = 0; i < result->finding_count; i++) {
		const struct gate_finding *finding = &result->findings[i];
		if ((!any_unit && finding->limit.measure->unit != family->unit) ||
		    family->value(finding) == CUF_UNKNOWN || seen_before(family, result, i))
			continue;
		if (!begun)
			fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", family->name, family->help,
				family->name);
		begun = true;
		print_sample(out, family, finding);
	}
}

void write_openmetrics(const struct gate_document *document, FILE *out)
{
	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		print_family(out, &families[i], document->result, false);
	print_family(out, &verdict, document->result, true);
	fputs("# EOF\n", out);
}
