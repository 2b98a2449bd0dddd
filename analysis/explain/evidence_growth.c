/* SPDX-License-Identifier: Apache-2.0 */
/* Sites that grow without end, and caches that have stopped growing, on the device and on the host. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include "analysis/explain/evidence_stacks.h"
#include "analysis/explain/framework_names.h"
#include "analysis/replay/replay.h"

/* Shorter than anybody could act in: a test, or a program in fast motion. */
#define LEFT_LEAST_S 10

struct sums {
	uint64_t leaked, per_request, plateau, cycles, kv_leaked;
	double slope, low, high;
	uint64_t first_ns; /* of the site that leaks most */
	bool any_site, per_request_known, said;
	uint32_t cache_stack; /* of the largest cache that stopped growing; 0 none */
	uint64_t cache_bytes;
};

static bool is_here(const struct evidence *evidence, const struct fact_site *site, bool host)
{
	if (site->process != evidence->process)
		return false;
	return host ? site->kind == CUF_KIND_HOST
		    : site->device == evidence->device && evidence->device != FACT_NONE &&
			       (kind_is_device_memory(site->kind) ||
				site->kind == CUF_KIND_FRAMEWORK || site->kind == CUF_KIND_MANAGED);
}

static void add_leak(struct build *build, const struct evidence *evidence,
		     const struct fact_site *site, struct sums *sum)
{
	sum->leaked += site->bytes;
	if (site->kind != CUF_KIND_HOST &&
	    stack_hints(build, evidence->process, site->stack.id) & HINT_KV)
		sum->kv_leaked += site->bytes;
	if (site->per_request_bytes != CUF_UNKNOWN) {
		sum->said = site->cycles_basis == BASIS_OBSERVED;
		sum->per_request += site->per_request_bytes;
		sum->per_request_known = true;
	}
	if (site->slope_bytes_per_s > 0 && isfinite(site->slope_bytes_per_s)) {
		sum->slope += site->slope_bytes_per_s;
		sum->low += site->interval[0] > 0 ? site->interval[0] : 0;
		sum->high += site->interval[1] > 0 ? site->interval[1] : 0;
	}
}

static void add_cache(const struct fact_site *site, struct sums *sum)
{
	sum->plateau += site->bytes;
	if (site->bytes <= sum->cache_bytes)
		return;
	sum->cache_bytes = site->bytes;
	sum->cache_stack = site->stack.id;
}

static struct sums sum_sites(struct build *build, const struct evidence *evidence, bool host)
{
	struct sums sum = { .first_ns = CUF_UNKNOWN };
	for (size_t i = 0; i < build->facts->leak_count; i++) {
		const struct fact_site *site = &build->facts->leaks[i];
		if (!is_here(evidence, site, host))
			continue;
		sum.any_site = true;
		sum.cycles = site->cycles > sum.cycles ? site->cycles : sum.cycles;
		if (site->class == CLASS_LEAK)
			add_leak(build, evidence, site, &sum);
		else if (site->class == CLASS_BOUNDED_CACHE)
			add_cache(site, &sum);
	}
	return sum;
}

static uint64_t seconds(uint64_t bytes, double slope)
{
	double left = slope > 0 && bytes != CUF_UNKNOWN ? (double)bytes / slope : INFINITY;
	return left >= LEFT_LEAST_S && left < 1e9 ? (uint64_t)left : CUF_UNKNOWN;
}

/* Events of the leak's own sites that are still live. */
static void show_births(struct build *build, struct evidence *evidence, enum term term, bool host)
{
	const struct events *events = build->run->processes[evidence->process].events;
	for (size_t i = 0;
	     i < build->facts->leak_count && build->facts->leaks[i].class == CLASS_LEAK; i++) {
		const struct fact_site *site = &build->facts->leaks[i];
		if (!is_here(evidence, site, host))
			continue;
		evidence->terms[term].stack = site->stack.id;
		if (evidence->terms[term].time_ns == CUF_UNKNOWN)
			evidence->terms[term].time_ns = site->last_ns;
		events = site->kind == CUF_KIND_FRAMEWORK ? events->framework : events;
		for (size_t n = events->count;
		     !host && n-- && evidence->terms[term].seq_count < 2;) {
			struct cuf_event event = events_get(events, n);
			if (event.op == CUF_OP_ALLOC &&
			    reader_call_site(events->reader, event.stack) == site->stack.id &&
			    (!evidence->incident || event.seq < evidence->incident->seq))
				evidence_show(evidence, term, event.seq);
		}
		return;
	}
}

/* Of a slope above 0; a damaged recording's may be beyond any number. */
static uint64_t bytes_per_s(double slope)
{
	return slope < 0x1p63 ? (uint64_t)slope : CUF_UNKNOWN;
}

static void device_growth(struct build *build, struct evidence *sums)
{
	struct sums sum = sum_sites(build, sums, false);
	uint64_t *figures = sums->figures;
	if (sums->device == FACT_NONE || !sum.any_site)
		return;
	figures[FIG_cycles] = sum.cycles;
	evidence_set(sums, TERM_early, sum.cycles < 8);
	evidence_set(sums, TERM_late_failure, (double)sum.cycles);
	if (sum.plateau)
		figures[FIG_plateau] = sum.plateau;
	evidence_set(sums, TERM_plateau,
		     figures[FIG_shortfall] != CUF_UNKNOWN && figures[FIG_shortfall]
			     ? (double)sum.plateau / (double)figures[FIG_shortfall]
			     : NAN);
	evidence_set(sums, TERM_leak, 0);
	if (!sum.leaked)
		return;
	figures[FIG_leaked] = sum.leaked;
	if (sum.per_request_known)
		figures[sum.said ? FIG_each_request : FIG_per_request] = figures[FIG_per_request] =
			sum.per_request;
	if (sum.slope > 0)
		figures[FIG_slope] = bytes_per_s(sum.slope);
	if (!sums->incident) {
		figures[FIG_left] = seconds(figures[FIG_free], sum.slope);
		figures[FIG_left_least] = seconds(figures[FIG_free], sum.high);
		figures[FIG_left_most] = seconds(figures[FIG_free], sum.low);
	}
	evidence_set(sums, TERM_leak,
		     !sums->incident ? 1
		     : figures[FIG_shortfall] != CUF_UNKNOWN && figures[FIG_shortfall]
			     ? (double)sum.leaked / (double)figures[FIG_shortfall]
			     : NAN);
	evidence_set(sums, TERM_growing, sum.per_request_known);
	if (sum.kv_leaked * 2 > sum.leaked)
		evidence_set(sums, TERM_kv_named, 1);
	show_births(build, sums, TERM_leak, false);
	show_births(build, sums, TERM_growing, false);
}

static void host_growth(struct build *build, struct evidence *sums)
{
	struct sums sum = sum_sites(build, sums, true);
	uint64_t *figures = sums->figures;
	if (build->facts->processes[sums->process].host_mode == CUF_HOST_OFF)
		return;
	evidence_set(sums, TERM_host_leak, 0);
	evidence_set(sums, TERM_host_cache, 0);
	if (sums->device == FACT_NONE) {
		figures[FIG_plateau] = sum.plateau;
		evidence_set(sums, TERM_host_cache, (double)sum.plateau);
		sums->terms[TERM_host_cache].stack = sum.cache_stack;
	}
	if (!sum.leaked)
		return;
	figures[FIG_host_leaked] = sum.leaked;
	if (sum.per_request_known)
		figures[sum.said ? FIG_host_each_request : FIG_host_per_request] =
			figures[FIG_host_per_request] = sum.per_request;
	if (sum.slope > 0)
		figures[FIG_host_slope] = bytes_per_s(sum.slope);
	evidence_set(sums, TERM_host_leak, (double)sum.leaked);
	evidence_set(sums, TERM_host_growing, sum.per_request_known);
	show_births(build, sums, TERM_host_leak, true);
	show_births(build, sums, TERM_host_growing, true);
}

void evidence_growth(struct build *build, struct evidence *evidence)
{
	device_growth(build, evidence);
	host_growth(build, evidence);
}
