/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for what a gate found, ready to be kept in a file. */
#include <string.h>
#include "analysis/base/paths.h"
#include "analysis/base/units.h"
#include "analysis/gate/suppress_rules.h"

enum { PATTERN_MAX = 400 };

/* What would end a line or mean something else becomes an asterisk. */
static void copy_pattern(char *out, size_t bytes, const char *name, size_t length)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used + 1 < bytes; i++) {
		bool plain = (unsigned char)name[i] >= ' ' && name[i] != '$' && name[i] != 0x7f;
		out[used++] = '*';
		if (plain)
			out[used - 1] = name[i];
	}
	out[used] = 0;
}

/* The function and its callers would be safer, but a rule of LeakSanitizer has one pattern. The
 * arguments of a C++ function are left out: tools print them differently. */
static bool print_pattern(const struct gate_site *site, FILE *out)
{
	const char *name = site->function;
	size_t length = name ? strcspn(name, "(") : 0;
	char pattern[PATTERN_MAX];

	if (name && length && *name != '*') {
		copy_pattern(pattern, sizeof pattern, name, length);
		fprintf(out, "^%s%s\n", pattern, name[length] ? "(" : "$");
		return true;
	}
	name = path_base_name(site->module ? site->module : "");
	if (!*name)
		return false;
	copy_pattern(pattern, sizeof pattern, name, strlen(name));
	fprintf(out, "%s\n", pattern);
	return true;
}

static bool has_pattern(const struct gate_site *site)
{
	return (site->function && *site->function) || (site->module && *site->module);
}

/* leak: where LeakSanitizer and heaptrack see the same bytes; else the group, in a comment. */
static void print_rule(const struct gate_finding *finding, const struct gate_site *site, FILE *out)
{
	const struct gate_measure *measure = finding->limit.measure;
	bool leak = suppress_kind_find("leak")->measures >> (measure - gate_measures) & 1;

	fprintf(out, "# %s: %s in %s blocks\n", measure->name, units_bytes(site->bytes_now).s,
		units_count(site->count_now).s);
	if (measure->group == GROUP_MAX)
		fputs("#cuflight incident:", out);
	else if (leak && (site->group == GROUP_HOST || site->group == GROUP_PYTHON))
		fputs("leak:", out);
	else if (leak)
		fputs("#cuflight leak:", out);
	else
		fprintf(out, "#cuflight %s:", gate_group_names[site->group]);
	print_pattern(site, out);
}

size_t suppressions_generate(const struct gate_result *result, FILE *out)
{
	size_t printed = 0;

	for (size_t i = 0; i < result->finding_count; i++) {
		const struct gate_finding *finding = &result->findings[i];
		if (finding->status != GATE_EXCEEDED)
			continue;
		for (size_t k = 0; k < finding->site_count; k++) {
			if (finding->sites[k].rule || !has_pattern(&finding->sites[k]))
				continue;
			print_rule(finding, &finding->sites[k], out);
			printed++;
		}
	}
	return printed;
}
