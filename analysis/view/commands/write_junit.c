/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JUnit XML as Jenkins, GitLab and GitHub's actions read it: a test suite for the run, a test case
 * for each limit. Exceeded is a failure, inconclusive an error, suppressed is skipped.
 */
#include "analysis/base/paths.h"
#include "analysis/view/commands/write_parts.h"

static void print_attribute(FILE *out, const char *name, const char *text)
{
	fprintf(out, " %s=\"", name);
	print_xml(out, text);
	fputc('"', out);
}

static void print_sites(FILE *out, const struct gate_finding *finding)
{
	char line[GATE_TEXT_MAX];

	for (size_t i = 0; i < finding->site_count && i < GATE_SITES_MAX; i++) {
		gate_site_sentence(finding, &finding->sites[i], line, sizeof line);
		print_xml(out, line);
		print_xml(out, "\n");
	}
}

static void print_outcome(FILE *out, const struct gate_finding *finding)
{
	static const struct { const char *element, *type; } forms[GATE_STATUS_MAX] = {
		[GATE_OK] = { "system-out", NULL },
		[GATE_SUPPRESSED] = { "skipped", NULL },
		[GATE_INCONCLUSIVE] = { "error", "inconclusive" },
		[GATE_EXCEEDED] = { "failure", "exceeded" },
	};
	const char *element = forms[finding->status].element;
	const char *type = forms[finding->status].type;

	fprintf(out, "      <%s", element);
	if (type) {
		print_attribute(out, "message", finding->message);
		print_attribute(out, "type", type);
		fputc('>', out);
		print_sites(out, finding);
	} else {
		fputc('>', out);
		print_xml(out, finding->message);
	}
	fprintf(out, "</%s>\n", element);
}

static void print_case(FILE *out, const struct gate_finding *finding)
{
	fputs("    <testcase", out);
	print_attribute(out, "classname", "cuflight");
	print_attribute(out, "name", finding->limit.text);
	fputs(" time=\"0\">\n", out);
	print_outcome(out, finding);
	fputs("    </testcase>\n", out);
}

/* A run that cannot be judged is a test case, too, so that nobody takes it for a pass. */
static void print_run_case(FILE *out, const struct gate_result *result)
{
	if (!result->inconclusive_count)
		return;
	fputs("    <testcase classname=\"cuflight\" name=\"the run can be judged\" time=\"0\">\n",
	      out);
	for (size_t i = 0; i < result->inconclusive_count; i++) {
		fputs("      <error", out);
		print_attribute(out, "message", result->inconclusive[i]);
		fputs(" type=\"inconclusive\"/>\n", out);
	}
	fputs("    </testcase>\n", out);
}

void write_junit(const struct gate_document *document, FILE *out)
{
	const struct gate_result *result = document->result;
	size_t tests = result->finding_count + !!result->inconclusive_count;
	size_t failures = gate_count(result, GATE_EXCEEDED);
	size_t errors = gate_count(result, GATE_INCONCLUSIVE) + !!result->inconclusive_count;

	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	fprintf(out, "<testsuites name=\"cuflight\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\""
		     " time=\"0\">\n", tests, failures, errors);
	fputs("  <testsuite", out);
	print_attribute(out, "name", path_base_name(result->program));
	fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n",
		tests, failures, errors, gate_count(result, GATE_SUPPRESSED));
	fputs("    <properties>\n      <property name=\"recording\"", out);
	print_attribute(out, "value", result->path);
	fputs("/>\n    </properties>\n", out);
	print_run_case(out, result);
	for (size_t i = 0; i < result->finding_count; i++)
		print_case(out, &result->findings[i]);
	fputs("  </testsuite>\n</testsuites>\n", out);
}
