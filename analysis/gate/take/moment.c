/* SPDX-License-Identifier: Apache-2.0 */
/* One moment of a run, as facts for it have it: what each call site held then. */
#include "analysis/gate/take/measured.h"

#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"
#include "analysis/gate/take/environment.h"

enum gate_group measure_group_of(const struct fact_site *site)
{
	if (site->kind == CUF_KIND_FRAMEWORK)
		return GROUP_FRAMEWORK;
	if (site->kind == CUF_KIND_PINNED || site->kind == CUF_KIND_REGISTERED)
		return GROUP_PINNED;
	if (site->kind == CUF_KIND_MANAGED)
		return GROUP_MANAGED;
	return site->device == FACT_NONE ? GROUP_HOST : GROUP_DEVICE;
}

void measure_moment(struct measured *out, const struct facts *facts, struct symbols *symbols)
{
	uint64_t sums[GROUP_MAX] = { 0 };

	*out = (struct measured){ .facts = facts, .arena = arena_new(), .program = "" };
	naming_open(&out->naming, facts, symbols, out->arena);
	environment_take(facts, out->arena, &out->environment);
	out->sites = arena_zeroed(out->arena, facts->leak_count, sizeof *out->sites);
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *site = &facts->leaks[i];
		enum gate_group group = measure_group_of(site);
		sums[group] += site->bytes;
		out->sites[out->site_count++] = (struct measured_site){
			.identity = naming_identity(&out->naming, &site->stack),
			.group = group,
			.peak_bytes = site->bytes,
			.peak_count = site->count,
			.end_bytes = site->bytes,
			.end_count = site->count,
			.stack = site->stack,
		};
	}
	measure_merge_sites(out);
	for (size_t i = 0; i < MEASURE_MAX; i++)
		out->values[i] = (struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN, "" };
	for (size_t i = 0; i < GROUP_PYTHON; i++)
		out->values[MEASURE_DEVICE_END + i] =
			(struct gate_value){ sums[i], sums[i], sums[i], "" };
}
