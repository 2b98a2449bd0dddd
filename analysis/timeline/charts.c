/* SPDX-License-Identifier: Apache-2.0 */
/* Each site is unfolded once over the moments and added to its parts. */
#include "analysis/timeline/charts.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum { CHART_SITES = 12, HOST_CHARTS = 16 };

struct making {
	const struct timeline *timeline;
	const struct facts *facts;
	struct chart *chart;
	uint64_t least_peak; /* of a site that has a part of its own */
};

/* Which part a value goes to. */
static struct chart_part *part_of(const struct making *making, enum chart_grouping by,
				  uint32_t index, const char *role, bool is_older)
{
	struct chart *chart = making->chart;

	for (size_t i = 0; i < chart->by[by].count; i++) {
		struct chart_part *part = &chart->by[by].parts[i];
		bool same_role = part->role == role || (part->role && role &&
							!strcmp(part->role, role));
		if (part->index == index && part->is_older == is_older && same_role)
			return part;
	}
	xalloc_grow(&chart->by[by].parts, chart->by[by].count, &chart->by[by].room,
		    sizeof *chart->by[by].parts);
	chart->by[by].parts[chart->by[by].count] = (struct chart_part){
		.index = index, .role = role, .is_older = is_older,
		.bytes = xalloc_zeroed(making->timeline->moment_count, sizeof(uint64_t)),
	};
	return &chart->by[by].parts[chart->by[by].count++];
}

/* Managed and page-locked memory is not memory of the device. */
static bool belongs(const struct chart *chart, const struct timeline_site *site)
{
	if (site->layer != chart->layer)
		return false;
	if (chart->layer == TIMELINE_HOST)
		return site->process == chart->process;
	if (site->device != chart->device)
		return false;
	return chart->layer == TIMELINE_FRAMEWORK || kind_is_device_memory(site->kind);
}

/* A step function of a site, at every moment. */
static void add_steps(const struct making *making, uint64_t *to,
		      const struct timeline_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t end = i + 1 < count ? values[i + 1].moment
					   : making->timeline->moment_count;
		for (size_t m = values[i].moment; m < end; m++)
			to[m] += values[i].bytes;
	}
}

static void add_site(const struct making *making, uint32_t number,
		     const struct timeline_value *values, size_t count)
{
	const struct timeline_site *site = &making->timeline->sites[number];
	bool own = !site->is_rest && site->peak_bytes >= making->least_peak;
	const char *role = site->known ? site->known->role : NULL;

	add_steps(making, making->chart->sum, values, count);
	add_steps(making, part_of(making, BY_KIND, site->kind, NULL, false)->bytes, values, count);
	add_steps(making, part_of(making, BY_ROLE, FACT_NONE, role, false)->bytes, values, count);
	add_steps(making, part_of(making, BY_SITE, own ? number : FACT_NONE, NULL, false)->bytes,
		  values, count);
	if (making->chart->layer != TIMELINE_HOST)
		add_steps(making, part_of(making, BY_PROCESS, site->process, NULL, false)->bytes,
			  values, count);
}

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
			part_of(making, by, FACT_NONE, NULL, true)->bytes[m] += bytes;
		if (chart->layer != TIMELINE_HOST)
			part_of(making, BY_PROCESS, p, NULL, false)->bytes[m] += bytes;
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

static int by_size(const void *a, const void *b)
{
	return compare_numbers(*(const uint64_t *)b, *(const uint64_t *)a);
}

/* The peak of the last site that has a part of its own. */
static uint64_t least_peak(const struct making *making)
{
	const struct timeline *timeline = making->timeline;
	uint64_t *peaks = xalloc_zeroed(timeline->site_count + 1, sizeof *peaks), least = 1;
	size_t count = 0;

	for (size_t i = 0; i < timeline->site_count; i++)
		if (belongs(making->chart, &timeline->sites[i]) && !timeline->sites[i].is_rest)
			peaks[count++] = timeline->sites[i].peak_bytes;
	qsort(peaks, count, sizeof *peaks, by_size);
	if (count > CHART_SITES)
		least = peaks[CHART_SITES - 1] + (peaks[CHART_SITES] == peaks[CHART_SITES - 1]);
	free(peaks);
	return least;
}

static void fill(struct making *making)
{
	const struct timeline *timeline = making->timeline;

	making->chart->sum = xalloc_zeroed(timeline->moment_count, sizeof(uint64_t));
	making->least_peak = least_peak(making);
	for (size_t i = 0, end; i < timeline->value_count; i = end) {
		uint32_t site = timeline->values[i].site;
		for (end = i; end < timeline->value_count && timeline->values[end].site == site;
		     end++)
			;
		if (belongs(making->chart, &timeline->sites[site]))
			add_site(making, site, &timeline->values[i], end - i);
	}
	add_all_older(making);
}

static void add_chart(struct charts *charts, const struct timeline *timeline,
		      const struct facts *facts, struct chart chart)
{
	struct making making = { .timeline = timeline, .facts = facts };

	charts->items[charts->count] = chart;
	making.chart = &charts->items[charts->count++];
	fill(&making);
}

static void add_host(struct charts *charts, const struct timeline *timeline,
		     const struct facts *facts, uint32_t p)
{
	const struct fact_host *host = &facts->processes[p].host;

	add_chart(charts, timeline, facts,
		  (struct chart){ .layer = TIMELINE_HOST, .process = p, .device = FACT_NONE,
				  .limit_bytes = host->cgroup_max_bytes,
				  .total_bytes = host->memory_total_bytes });
}

static void add_device(struct charts *charts, const struct timeline *timeline,
		       const struct facts *facts, uint32_t device)
{
	for (unsigned layer = TIMELINE_DEVICE; layer <= TIMELINE_FRAMEWORK; layer++)
		if (layer == TIMELINE_DEVICE || timeline->ranges[2 * device + 1].any)
			add_chart(charts, timeline, facts,
				  (struct chart){ .layer = layer, .process = FACT_NONE,
						  .device = device, .limit_bytes = CUF_UNKNOWN,
						  .total_bytes =
							  facts->devices[device].total_bytes });
}

void charts_make(struct charts *charts, const struct timeline *timeline, const struct facts *facts,
		 bool is_host)
{
	size_t hosts = 1;
	uint32_t first = FACT_NONE;

	*charts = (struct charts){ .items = xalloc_zeroed(2 * facts->device_count +
							  facts->process_count,
							  sizeof *charts->items) };
	for (uint32_t d = 0; d < facts->device_count; d++)
		if (first == FACT_NONE && facts->devices[d].focus == facts->focus)
			first = d;
	if (is_host)
		add_host(charts, timeline, facts, facts->focus);
	if (first != FACT_NONE)
		add_device(charts, timeline, facts, first);
	for (uint32_t d = 0; d < facts->device_count; d++)
		if (d != first)
			add_device(charts, timeline, facts, d);
	if (!is_host)
		add_host(charts, timeline, facts, facts->focus);
	for (uint32_t p = 0; p < facts->process_count && hosts < HOST_CHARTS; p++)
		if (p != facts->focus) {
			add_host(charts, timeline, facts, p);
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
