/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites that only grow, and caches that stopped growing, on the device and on the host. */
#include <math.h>
#include "analysis/explain/evidence/parts.h"
#include "analysis/explain/evidence/stacks.h"
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/symbols/role_names.h"
#include "analysis/base/numbers.h"
#include "analysis/facts/totals.h"
#include "analysis/facts/live.h"
#include "analysis/replay/replay.h"

/* Sums over the call sites of one device, or of the host. */
struct growth_sums {
	bool any_site;
	uint64_t leaked, shared, kv_leaked, plateau, cycles; /* shared: memory, of what leaked */
	bool per_request_known; /* of a call site, from cycles that may be inferred */
	struct fact_rate rate;
	double slope, low, high; /* bytes per second, with a 95 % interval */
	uint32_t cache_stack; /* of the largest cache that stopped growing; 0 none */
	uint64_t cache_bytes;
	uint64_t loaded;      /* host: what functions that load hold, */
	uint64_t loaded_most; /* and the largest of them */
	uint32_t loaded_stack;
	uint64_t churn_bytes; /* what all freed since that one began */
};

/* Does the call site belong to this process and to the memory that is examined? */
static bool is_here(const struct evidence *evidence, const struct fact_site *site, bool host)
{
	if (site->process != evidence->process)
		return false;
	if (host)
		return site->kind == CUF_KIND_HOST;
	if (evidence->device == FACT_NONE || site->device != evidence->device)
		return false;
	return kind_is_device_memory(site->kind) || site->kind == CUF_KIND_FRAMEWORK ||
	       site->kind == CUF_KIND_MANAGED;
}

static double above_zero(double value)
{
	return value > 0 ? value : 0;
}

/* Rates of several leaks add up; so do the bounds of their intervals. */
static void add_leak(const struct facts *facts, const struct fact_site *site,
		     struct growth_sums *sums)
{
	sums->leaked += site->bytes;
	sums->shared += site->shared_bytes;
	if (site->kind != CUF_KIND_HOST &&
	    stack_hints(facts, site->process, site->stack.id) & HINT_KV)
		sums->kv_leaked += site->bytes;
	sums->per_request_known |= site->per_request_bytes != CUF_UNKNOWN;
	fact_rate_add(&sums->rate, site);
	if (site->slope_bytes_per_s > 0 && isfinite(site->slope_bytes_per_s)) {
		sums->slope += site->slope_bytes_per_s;
		sums->low += above_zero(site->interval[0]);
		sums->high += above_zero(site->interval[1]);
	}
}

/* The largest cache names the call site. */
static void add_cache(const struct fact_site *site, struct growth_sums *sums)
{
	sums->plateau += site->bytes;
	if (site->bytes <= sums->cache_bytes)
		return;
	sums->cache_bytes = site->bytes;
	sums->cache_stack = site->stack.id;
}

static void add_loaded(const struct fact_site *site, struct growth_sums *sums)
{
	sums->loaded += site->bytes;
	if (site->bytes <= sums->loaded_most)
		return;
	sums->loaded_most = site->bytes;
	sums->loaded_stack = site->stack.id;
	sums->churn_bytes = site->churn_bytes;
}

/*
 * The most threads at one time since the site began. A burst may end before the next sample is
 * taken: blocks that came after the last one, by the site's pace, count as threads of their own.
 */
static uint64_t threads_since(const struct fact_process *process, const struct fact_site *site)
{
	uint64_t most = CUF_UNKNOWN, sampled_ns = site->first_ns;

	if (!is_known(process->threads_most)) /* an older recorder */
		return process->host.thread_count;
	if (!is_known(site->first_ns)) /* of blocks without a time: since the process began */
		return process->threads_most;
	for (size_t i = 0; i < process->timeline_count; i++) {
		const struct fact_sample *sample = &process->timeline[i];
		if (sample->time_ns < site->first_ns || !is_known(sample->thread_count))
			continue;
		most = most_of(known_or_zero(most), sample->thread_count);
		sampled_ns = sample->time_ns;
	}
	if (!is_known(most) || site->last_ns <= site->first_ns)
		return CUF_UNKNOWN;
	return most + (uint64_t)((double)site->count *
				 (double)subtract_to_zero(site->last_ns, sampled_ns) /
				 (double)(site->last_ns - site->first_ns));
}

/* Live blocks of about one size, one for each of several threads: work of the same time. A thread
 * that found no segment in the ring has blocks without events; half of them must have some. Threads
 * that come and go one after another are a few at a time. */
static bool is_of_threads(const struct facts *facts, const struct fact_site *site)
{
	uint64_t known = least_of(site->alloc_count, site->count);
	uint64_t at_a_time = threads_since(&facts->processes[site->process], site);

	return site->is_alike && site->count >= REPEATS_LEAST && site->threads >= REPEATS_LEAST &&
	       known * 2 >= site->count && site->threads * 4ull >= known * 3 &&
	       at_a_time >= known - known / 4;
}

/* Nothing else came and went since its first block: there was one pass, and no turns. */
static bool is_one_pass(const struct fact_site *site)
{
	return is_known(site->churn_bytes) && site->churn_bytes < site->bytes / PASS_PART;
}

/* It has freed all that it made, more than once, and holds more now than ever: work that lasts as
 * long as a batch, and this one is larger. */
static bool is_round(const struct fact_site *site)
{
	return site->kind == CUF_KIND_HOST && site->rounds >= ROUNDS_LEAST &&
	       site->before_bytes >= site->bytes / ROUND_PART &&
	       site->bytes / 3 * 2 >= site->before_bytes;
}

/* Weights are loaded once. Anything else that is read may be an answer to a request, so it is
 * loading only while nothing else comes and goes, not in several threads at once, and not where the
 * same was read and freed before. */
static bool is_loading(const struct facts *facts, const struct fact_site *site)
{
	unsigned hints;

	if (site->kind != CUF_KIND_HOST || site->bytes < NOTABLE_BYTES)
		return false;
	hints = stack_hints(facts, site->process, site->stack.id);
	return hints & HINT_WEIGHTS || (hints & HINT_READS && is_one_pass(site) &&
					!is_of_threads(facts, site) && !is_round(site));
}

/* The same of the tasks of an event loop, which are not seen one by one. What such a program keeps
 * of each turn comes with what the turn needs and frees. */
static bool is_of_tasks(const struct facts *facts, const struct fact_site *site)
{
	const unsigned loads = HINT_READS | HINT_WEIGHTS;

	return site->is_alike && site->count >= SERIES_LEAST && is_one_pass(site) &&
	       (stack_hints(facts, site->process, site->stack.id) & (loads | HINT_TASK)) ==
		       HINT_TASK;
}

static bool is_parallel(const struct facts *facts, const struct fact_site *site)
{
	return site->count && site->bytes / site->count >= FEW_BYTES &&
	       (is_of_threads(facts, site) || is_of_tasks(facts, site));
}

/* The same line of the program. */
static bool is_same_row(const struct facts *facts, const struct fact_site *site,
			const struct fact_site *other)
{
	const struct reader *reader = facts->run->processes[site->process].reader;

	return site->kind == other->kind && site->process == other->process &&
	       reader_place(reader, site->stack.id) == reader_place(reader, other->stack.id);
}

/* What a piece of work needs is more than its largest block: all that its line holds, where those
 * blocks are a good part of it. */
static bool is_of_parallel_row(const struct facts *facts, const struct fact_site *site)
{
	uint64_t parallel = 0, row = 0;

	if (is_parallel(facts, site))
		return true;
	for (size_t i = 0; i < facts->leak_count; i++) {
		const struct fact_site *other = &facts->leaks[i];
		if (!is_same_row(facts, site, other))
			continue;
		row += other->bytes;
		if (other->class != CLASS_LEAK && is_parallel(facts, other))
			parallel += other->bytes;
	}
	return parallel && parallel * PARALLEL_PART >= row;
}

/* Growth in one pass, next to a full cache that holds more, is one large request: no turns
 * were seen that keep something. */
static bool is_beside_cache(const struct facts *facts, const struct fact_site *site)
{

	for (size_t i = 0; is_one_pass(site) && i < facts->leak_count; i++) {
		const struct fact_site *other = &facts->leaks[i];
		if (other->class == CLASS_BOUNDED_CACHE && other->kind == site->kind &&
		    other->process == site->process && other->bytes > site->bytes)
			return true;
	}
	return false;
}

/* What grows without being proven a leak counts where memory ran out: then it took part in it. */
static bool counts_as_leak(const struct evidence *evidence, const struct fact_site *site)
{
	bool failed = evidence->incident ||
		      evidence->facts->processes[evidence->process].end == END_OOM_KILLED;
	if (site->class == CLASS_LEAK)
		return true;
	return site->class == CLASS_GROWING && failed && !site->is_doubling &&
		!is_loading(evidence->facts, site) && !is_of_parallel_row(evidence->facts, site) &&
		!is_round(site) && !is_beside_cache(evidence->facts, site);
}

/* Over all call sites of this process: leaks, and caches that stopped growing. */
static struct growth_sums sum_sites(const struct evidence *evidence, bool host)
{
	struct growth_sums sums = { 0 };

	for (size_t i = 0; i < evidence->facts->leak_count; i++) {
		const struct fact_site *site = &evidence->facts->leaks[i];
		if (!is_here(evidence, site, host))
			continue;
		sums.any_site = true;
		if (site->cycles > sums.cycles)
			sums.cycles = site->cycles;
		if (counts_as_leak(evidence, site))
			add_leak(evidence->facts, site, &sums);
		else if (site->class == CLASS_BOUNDED_CACHE)
			add_cache(site, &sums);
		if (host && is_loading(evidence->facts, site))
			add_loaded(site, &sums);
	}
	return sums;
}

/* ---- what shows it ---- */

/* Up to two of the last allocations of a call site before the failure. */
static void show_allocations(struct evidence *evidence, enum signal signal,
			     const struct fact_site *site)
{
	const struct events *events = evidence->facts->run->processes[evidence->process].events;
	const struct fact_incident *incident = evidence->incident;

	if (site->kind == CUF_KIND_FRAMEWORK)
		events = events->framework;
	for (size_t n = events->count; n-- && evidence->signals[signal].seq_count < 2;) {
		struct cuf_event event = events_get(events, n);
		if (event.op == CUF_OP_ALLOC &&
		    reader_call_site(events->reader, event.stack) == site->stack.id &&
		    (!incident || event.seq < incident->seq))
			evidence_show(evidence, signal, event.seq);
	}
}

/* The largest leak stands for all: leaks come first, then what grows, each by size. */
static void show_leak(struct evidence *evidence, enum signal signal, bool host)
{
	struct evidence_signal *shown = &evidence->signals[signal];

	for (size_t i = 0; i < evidence->facts->leak_count; i++) {
		const struct fact_site *site = &evidence->facts->leaks[i];
		if (site->class > CLASS_GROWING)
			return;
		if (!is_here(evidence, site, host) || !counts_as_leak(evidence, site))
			continue;
		shown->stack = site->stack.id;
		shown->time_ns = site->last_ns;
		if (!host)
			show_allocations(evidence, signal, site);
		return;
	}
}

/* ---- metrics and signals ---- */

/* A damaged recording's slope may be beyond any number. */
static uint64_t bytes_per_s(double slope)
{
	return slope < 0x1p63 ? (uint64_t)slope : CUF_UNKNOWN;
}

/* CUF_UNKNOWN: not growing, too close to call, or so far off that the number means nothing. */
static uint64_t seconds_until(uint64_t bytes, double slope)
{
	double left;

	if (bytes == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	left = live_seconds_left((double)bytes, slope);
	return left >= LEFT_LEAST_S && left < 1e9 ? (uint64_t)left : CUF_UNKNOWN;
}

/* The fastest rate gives the least time. While the run goes on, its largest burst counts, too. */
static void set_left(struct evidence *evidence, const struct growth_sums *sums)
{
	const struct judgement *judgement = evidence->facts->judgement;
	uint64_t *metrics = evidence->metrics;
	uint64_t free_bytes = metrics[METRIC_free];

	for (size_t i = 0; judgement && i < judgement->resource_count; i++) {
		const struct live_resource *resource = &judgement->resources[i];

		if (resource->kind == LIVE_GPU && resource->device == evidence->device &&
		    resource->headroom_bytes >= 0)
			free_bytes = (uint64_t)resource->headroom_bytes;
	}
	metrics[METRIC_left] = seconds_until(free_bytes, sums->slope);
	metrics[METRIC_left_least] = seconds_until(free_bytes, sums->high);
	metrics[METRIC_left_most] = seconds_until(free_bytes, sums->low);
}

/* How much of the shortfall a leak explains; at the end of a process it needs no shortfall. */
static double leak_share(const struct evidence *evidence, uint64_t leaked)
{
	if (!leaked)
		return 0;
	if (!evidence->incident)
		return 1;
	/* a limit below the device: with so much free, the whole request was too much */
	if (!evidence->metrics[METRIC_shortfall])
		return evidence_ratio(leaked, evidence->metrics[METRIC_request]);
	return evidence_ratio(leaked, evidence->metrics[METRIC_shortfall]);
}

/* True: more than half of what leaks is a KV cache. */
static bool device_growth(struct evidence *evidence)
{
	struct growth_sums sums = sum_sites(evidence, false);
	uint64_t *metrics = evidence->metrics;

	if (!sums.any_site)
		return false;
	metrics[METRIC_cycles] = sums.cycles;
	evidence_set(evidence, SIGNAL_early, sums.cycles < SERIES_LEAST);
	evidence_set(evidence, SIGNAL_late_failure, (double)sums.cycles);
	if (sums.plateau)
		metrics[METRIC_plateau] = sums.plateau;
	evidence_set(evidence, SIGNAL_leak, leak_share(evidence, sums.leaked));
	if (!sums.leaked)
		return false;
	metrics[METRIC_leaked] = sums.leaked;
	if (fact_rate_per_request(&sums.rate))
		metrics[METRIC_each_request] = fact_rate_per_request(&sums.rate);
	if (sums.slope > 0)
		metrics[METRIC_slope] = bytes_per_s(sums.slope);
	if (!evidence->incident)
		set_left(evidence, &sums);
	evidence_set(evidence, SIGNAL_growing, sums.per_request_known);
	show_leak(evidence, SIGNAL_leak, false);
	show_leak(evidence, SIGNAL_growing, false);
	return sums.kv_leaked * 2 > sums.leaked;
}

/* The largest call site of each kind, which is no leak. */
struct patterns {
	const struct fact_site *parallel, *doubling, *round;
	uint64_t round_bytes, before_bytes; /* of all that go in rounds */
	uint64_t doubling_bytes, parallel_bytes; /* of all of that kind */
};

static const struct fact_site *larger(const struct fact_site *most, const struct fact_site *site)
{
	return !most || site->bytes > most->bytes ? site : most;
}

static struct patterns find_patterns(const struct evidence *evidence)
{
	struct patterns found = { 0 };

	for (size_t i = 0; i < evidence->facts->leak_count; i++) {
		const struct fact_site *site = &evidence->facts->leaks[i];
		if (!is_here(evidence, site, true) || site->class == CLASS_LEAK)
			continue;
		if (is_parallel(evidence->facts, site))
			found.parallel = larger(found.parallel, site);
		if (site->is_doubling) {
			found.doubling = larger(found.doubling, site);
			found.doubling_bytes += site->bytes;
		}
		if (!is_round(site) || site->is_doubling)
			continue;
		found.round = larger(found.round, site);
		found.round_bytes += site->bytes;
		found.before_bytes += site->before_bytes;
	}
	for (size_t i = 0; found.parallel && i < evidence->facts->leak_count; i++)
		if (is_same_row(evidence->facts, found.parallel, &evidence->facts->leaks[i]) &&
		    is_of_parallel_row(evidence->facts, &evidence->facts->leaks[i]))
			found.parallel_bytes += evidence->facts->leaks[i].bytes;
	return found;
}

static void set_pattern(struct evidence *evidence)
{
	struct patterns found = find_patterns(evidence);
	uint64_t *metrics = evidence->metrics;

	if (found.parallel) {
		metrics[METRIC_host_parallel] = found.parallel->count;
		metrics[METRIC_host_each] = found.parallel_bytes / found.parallel->count;
		metrics[METRIC_host_fewer] =
			found.parallel->count - (found.parallel->count + 2) / 3;
		metrics[METRIC_host_at_once] = found.parallel_bytes;
		evidence->signals[SIGNAL_host_parallel].stack = found.parallel->stack.id;
	}
	if (found.round) {
		metrics[METRIC_host_round] = found.round_bytes;
		metrics[METRIC_host_before] = found.before_bytes;
		evidence->signals[SIGNAL_host_round].stack = found.round->stack.id;
	}
	if (found.doubling) {
		metrics[METRIC_host_doubled] = found.doubling->largest_bytes;
		metrics[METRIC_host_doublers] =
			most_of(found.doubling_bytes, found.doubling->largest_bytes);
		evidence->signals[SIGNAL_host_doubling].stack = found.doubling->stack.id;
	}
}

/* The line of the program that grew most, all its call sites together. */
static void set_grown(struct evidence *evidence)
{
	enum { LOOKED_AT = 64 };
	const struct facts *facts = evidence->facts;
	const struct reader *reader = facts->run->processes[evidence->process].reader;
	size_t count = least_of(facts->growth_count, LOOKED_AT);
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t place = reader_place(reader, facts->growth[i].stack.id);
		uint64_t bytes = 0;
		if (!is_here(evidence, &facts->growth[i], true))
			continue;
		for (size_t j = 0; j < count; j++)
			if (is_here(evidence, &facts->growth[j], true) &&
			    reader_place(reader, facts->growth[j].stack.id) == place)
				bytes += facts->growth[j].bytes;
		if (bytes <= most)
			continue;
		most = bytes;
		evidence->metrics[METRIC_host_grown] = bytes;
		evidence->signals[SIGNAL_host_grown].stack = facts->growth[i].stack.id;
	}
}

/* Metrics only: the signals are shares of resident memory, which evidence_host knows. */
static void host_growth(struct evidence *evidence)
{
	struct growth_sums sums = sum_sites(evidence, true);
	uint64_t *metrics = evidence->metrics;

	if (evidence->facts->processes[evidence->process].host_mode == CUF_HOST_OFF)
		return;
	if (evidence->device == FACT_NONE) {
		metrics[METRIC_plateau] = sums.plateau;
		evidence->signals[SIGNAL_host_cache].stack = sums.cache_stack;
	}
	metrics[METRIC_host_loaded] = sums.loaded;
	if (sums.loaded)
		metrics[METRIC_host_churned] = sums.churn_bytes;
	evidence->signals[SIGNAL_host_loading].stack = sums.loaded_stack;
	set_pattern(evidence);
	set_grown(evidence);
	if (!sums.leaked)
		return;
	metrics[METRIC_host_leaked] = sums.leaked;
	if (sums.shared > sums.leaked / 2) /* the advice is about the names of shared memory */
		metrics[METRIC_host_shared_leak] = sums.shared;
	if (fact_rate_per_request(&sums.rate))
		metrics[METRIC_host_each_request] = fact_rate_per_request(&sums.rate);
	if (sums.slope > 0)
		metrics[METRIC_host_slope] = bytes_per_s(sums.slope);
	evidence_set(evidence, SIGNAL_host_growing, sums.per_request_known);
	show_leak(evidence, SIGNAL_host_leak, true);
	show_leak(evidence, SIGNAL_host_growing, true);
}

bool evidence_growth(struct evidence *evidence)
{
	bool kv_grows = device_growth(evidence);

	host_growth(evidence);
	return kv_grows;
}
