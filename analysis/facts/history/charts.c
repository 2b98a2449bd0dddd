/* SPDX-License-Identifier: Apache-2.0 */
/* Each site is unfolded once over the moments and added to its parts. */
#include "analysis/facts/history/charts.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum { CHART_SITES = 12, HOST_CHARTS = 16 };

struct making {
	const struct timeline *timeline;
	const struct facts *facts;
	const uint32_t *rows;
	struct chart *chart;
	uint64_t *peaks;       /* of each row, by the site that stands for it */
	uint64_t least_peak;   /* of a row that has a part of its own */
	/* by moment, of a device with a framework: its segments, and the blocks inside */
	uint64_t *reserved, *inside;
};

/* The part that a value goes to; only `like`'s bytes are its own. */
static uint64_t *part_of(const struct making *making, enum chart_grouping by,
			 const struct chart_part *like)
{
	struct chart *chart = making->chart;

	for (size_t i = 0; i < chart->by[by].count; i++) {
		struct chart_part *part = &chart->by[by].parts[i];
		bool same_role = part->role == like->role ||
				 (part->role && like->role && !strcmp(part->role, like->role));
		if (part->index == like->index && part->is_older == like->is_older &&
		    part->is_unused == like->is_unused && same_role)
			return part->bytes;
	}
	xalloc_grow(&chart->by[by].parts, chart->by[by].count, &chart->by[by].room,
		    sizeof *chart->by[by].parts);
	chart->by[by].parts[chart->by[by].count] = *like;
	chart->by[by].parts[chart->by[by].count].bytes =
		xalloc_zeroed(making->timeline->moment_count, sizeof(uint64_t));
	return chart->by[by].parts[chart->by[by].count++].bytes;
}

static bool is_of_chart(const struct chart *chart, const struct timeline_site *site)
{
	return chart->layer != TIMELINE_HOST && site->layer != TIMELINE_HOST &&
	       site->device == chart->device;
}

/* Managed and page-locked memory is not memory of the device. */
static bool belongs(const struct chart *chart, const struct timeline_site *site)
{
	if (site->layer != chart->layer)
		return false;
	if (chart->layer == TIMELINE_HOST)
		return site->process == chart->process;
	if (!is_of_chart(chart, site))
		return false;
	return chart->layer == TIMELINE_FRAMEWORK || kind_is_device_memory(site->kind);
}

/* Whether a site holds memory of the chart, be it inside what another site reserved. */
static bool holds(const struct chart *chart, const struct timeline_site *site)
{
	if (!chart->is_inside)
		return belongs(chart, site);
	if (site->layer == TIMELINE_FRAMEWORK)
		return is_of_chart(chart, site);
	return belongs(chart, site) && !site->is_segment;
}

/* What a site held last is its value at the moment of the report, though it be gone by then. */
static bool is_past(const struct making *making, uint32_t process)
{
	return making->chart->layer != TIMELINE_HOST &&
	       making->facts->processes[process].gone_ns < making->facts->moment.time_ns;
}

/* A step function of a site, at every moment. */
static void add_steps(const struct making *making, uint64_t *to,
		      const struct timeline_value *values, size_t count)
{
	const struct timeline *timeline = making->timeline;
	bool is_gone = count && is_past(making, timeline->sites[values->site].process);

	for (size_t i = 0; i < count; i++) {
		size_t end = i + 1 < count ? values[i + 1].moment
					   : timeline->moment_count;
		for (size_t m = values[i].moment; m < end; m++)
			if (!is_gone || m != timeline->report)
				to[m] += values[i].bytes;
	}
}

static void add_chart_site(const struct making *making, uint32_t number,
			   const struct timeline_value *values, size_t count)
{
	const struct timeline_site *site = &making->timeline->sites[number];
	uint32_t row = making->rows[number];
	struct chart_part kind = { .index = site->kind }, process = { .index = site->process },
			  role = { .index = FACT_NONE, .role = site->known ? site->known->role
									   : NULL },
			  place = { .index = FACT_NONE };

	if (!site->is_rest && making->peaks[row] >= making->least_peak)
		place.index = row;
	if (holds(making->chart, site)) {
		add_steps(making, part_of(making, BY_ROLE, &role), values, count);
		add_steps(making, part_of(making, BY_SITE, &place), values, count);
	}
	if (!belongs(making->chart, site))
		return;
	add_steps(making, making->chart->sum, values, count);
	add_steps(making, part_of(making, BY_KIND, &kind), values, count);
	if (making->chart->layer != TIMELINE_HOST)
		add_steps(making, part_of(making, BY_PROCESS, &process), values, count);
}

/* ---- what is older than the events that are left ---- */

static uint64_t sampled_bytes(const struct fact_process *process, const struct chart *chart,
			      unsigned ordinal, uint64_t time_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < process->timeline_count &&
			   process->timeline[i].time_ns <= time_ns; i++) {
		const struct fact_sample *sample = &process->timeline[i];
		bytes = chart->layer == TIMELINE_HOST ? sample->host_live_bytes
						      : sample->device_live_bytes[ordinal];
	}
	return known_or_zero(bytes);
}

/* Before its oldest event, a process has what the recorder sampled. */
static void add_older(const struct making *making, uint32_t p, unsigned ordinal)
{
	const struct timeline *timeline = making->timeline;
	struct chart *chart = making->chart;
	struct chart_part older = { .index = FACT_NONE, .is_older = true },
			  process = { .index = p };
	uint64_t first_ns = timeline->processes[p].first_ns[chart->layer];

	for (size_t m = 0; m < timeline->moment_count; m++) {
		uint64_t bytes;
		if (timeline->moments[m].time_ns >= first_ns)
			return;
		bytes = sampled_bytes(&making->facts->processes[p], chart, ordinal,
				      timeline->moments[m].time_ns);
		if (!bytes)
			continue;
		chart->sum[m] += bytes;
		for (unsigned by = BY_KIND; by < BY_PROCESS; by++)
			part_of(making, by, &older)[m] += bytes;
		if (chart->layer != TIMELINE_HOST)
			part_of(making, BY_PROCESS, &process)[m] += bytes;
	}
}

static void add_all_older(const struct making *making)
{
	const struct chart *chart = making->chart;

	if (chart->layer == TIMELINE_HOST)
		add_older(making, chart->process, 0);
	for (uint32_t p = 0; chart->layer == TIMELINE_DEVICE && p < making->facts->process_count;
	     p++)
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			if (making->facts->processes[p].device_of[d] == chart->device)
				add_older(making, p, d);
}

/* ---- the chart ---- */

/* The peak of the last row that has a part of its own. */
static void find_least_peak(struct making *making)
{
	const struct timeline *timeline = making->timeline;
	uint64_t *peaks = xalloc_zeroed(timeline->site_count + 1, sizeof *peaks);

	making->least_peak = 1;
	for (size_t i = 0; i < timeline->site_count; i++)
		if (holds(making->chart, &timeline->sites[i]) && !timeline->sites[i].is_rest)
			making->peaks[making->rows[i]] += timeline->sites[i].peak_bytes;
	memcpy(peaks, making->peaks, timeline->site_count * sizeof *peaks);
	qsort(peaks, timeline->site_count, sizeof *peaks, largest_number_first);
	if (timeline->site_count > CHART_SITES)
		making->least_peak = most_of(1, peaks[CHART_SITES - 1] +
						(peaks[CHART_SITES] == peaks[CHART_SITES - 1]));
	free(peaks);
}

/* VISIT(making, site, values, count) for each site that has values. */
static void each_site(struct making *making,
		      void (*visit)(const struct making *, uint32_t,
				    const struct timeline_value *, size_t))
{
	const struct timeline *timeline = making->timeline;

	for (size_t i = 0, end; i < timeline->value_count; i = end) {
		uint32_t site = timeline->values[i].site;
		for (end = i; end < timeline->value_count && timeline->values[end].site == site;
		     end++)
			;
		visit(making, site, &timeline->values[i], end - i);
	}
}

static void add_reserved(const struct making *making, uint32_t number,
			 const struct timeline_value *values, size_t count)
{
	const struct timeline_site *site = &making->timeline->sites[number];

	if (belongs(making->chart, site) && site->is_segment)
		add_steps(making, making->reserved, values, count);
	if (is_of_chart(making->chart, site) && site->layer == TIMELINE_FRAMEWORK)
		add_steps(making, making->inside, values, count);
}

/* Only where all that lies inside lies in segments that are known. */
static void look_inside(struct making *making)
{
	size_t count = making->timeline->moment_count;
	bool any = false;

	making->reserved = xalloc_zeroed(count, sizeof *making->reserved);
	making->inside = xalloc_zeroed(count, sizeof *making->inside);
	if (making->chart->layer != TIMELINE_DEVICE)
		return;
	each_site(making, add_reserved);
	for (size_t m = 0; m < count; m++) {
		if (making->inside[m] > making->reserved[m])
			return;
		any |= making->inside[m] != 0;
	}
	making->chart->is_inside = any;
}

/* The time before the oldest event of the framework, on the device of the chart. */
static uint64_t first_inside_ns(const struct making *making)
{
	uint64_t first_ns = 0;

	for (uint32_t p = 0; p < making->facts->process_count; p++)
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			if (making->facts->processes[p].device_of[d] == making->chart->device)
				first_ns = most_of(first_ns, making->timeline->processes[p]
								     .first_ns[TIMELINE_FRAMEWORK]);
	return first_ns;
}

static void add_unused(const struct making *making)
{
	struct chart_part unused = { .index = FACT_NONE, .is_unused = true },
			  older = { .index = FACT_NONE, .is_older = true };
	uint64_t first_ns = first_inside_ns(making);

	for (size_t m = 0; m < making->timeline->moment_count; m++) {
		bool is_older = making->timeline->moments[m].time_ns < first_ns;
		uint64_t bytes = making->reserved[m] - making->inside[m];
		for (unsigned by = BY_ROLE; bytes && by < BY_PROCESS; by++)
			part_of(making, by, is_older ? &older : &unused)[m] += bytes;
	}
}

static void fill(struct making *making)
{
	const struct timeline *timeline = making->timeline;

	making->chart->sum = xalloc_zeroed(timeline->moment_count, sizeof(uint64_t));
	making->peaks = xalloc_zeroed(timeline->site_count + 1, sizeof *making->peaks);
	look_inside(making);
	find_least_peak(making);
	each_site(making, add_chart_site);
	if (making->chart->is_inside)
		add_unused(making);
	add_all_older(making);
	free(making->reserved);
	free(making->inside);
	free(making->peaks);
}

static void add_chart(struct making *making, struct charts *charts, struct chart chart)
{
	charts->items[charts->count] = chart;
	making->chart = &charts->items[charts->count++];
	fill(making);
}

static void add_host(struct making *making, struct charts *charts, uint32_t p)
{
	const struct fact_host *host = &making->facts->processes[p].host;

	add_chart(making, charts,
		  (struct chart){ .layer = TIMELINE_HOST, .process = p, .device = FACT_NONE,
				  .limit_bytes = host->cgroup_max_bytes,
				  .total_bytes = host->memory_total_bytes });
}

static void add_device(struct making *making, struct charts *charts, uint32_t device)
{
	uint64_t total_bytes = making->facts->devices[device].total_bytes;

	for (unsigned layer = TIMELINE_DEVICE; layer <= TIMELINE_FRAMEWORK; layer++)
		if (layer == TIMELINE_DEVICE || making->timeline->ranges[2 * device + 1].any)
			add_chart(making, charts,
				  (struct chart){ .layer = layer, .process = FACT_NONE,
						  .device = device, .limit_bytes = CUF_UNKNOWN,
						  .total_bytes = total_bytes });
}

void charts_make(struct charts *charts, const struct timeline *timeline, const struct facts *facts,
		 const uint32_t *rows, bool is_host)
{
	struct making making = { .timeline = timeline, .facts = facts, .rows = rows };
	size_t hosts = 1;
	uint32_t first = FACT_NONE;

	*charts = (struct charts){ .items = xalloc_zeroed(2 * facts->device_count +
							  facts->process_count,
							  sizeof *charts->items) };
	for (uint32_t d = 0; d < facts->device_count; d++)
		if (first == FACT_NONE && facts->devices[d].focus == facts->focus)
			first = d;
	if (is_host)
		add_host(&making, charts, facts->focus);
	if (first != FACT_NONE)
		add_device(&making, charts, first);
	for (uint32_t d = 0; d < facts->device_count; d++)
		if (d != first)
			add_device(&making, charts, d);
	if (!is_host)
		add_host(&making, charts, facts->focus);
	for (uint32_t p = 0; p < facts->process_count && hosts < HOST_CHARTS; p++)
		if (p != facts->focus) {
			add_host(&making, charts, p);
			hosts++;
		}
}

void charts_free(struct charts *charts)
{
	for (size_t i = 0; i < charts->count; i++) {
		for (unsigned by = 0; by < CHART_GROUPINGS; by++) {
			for (size_t k = 0; k < charts->items[i].by[by].count; k++)
				free(charts->items[i].by[by].parts[k].bytes);
			free(charts->items[i].by[by].parts);
		}
		free(charts->items[i].sum);
	}
	free(charts->items);
}
