/* SPDX-License-Identifier: Apache-2.0 */
/* The host: cgroup and limit, resident memory over time, page-locked memory, the allocator. */
#include <math.h>
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/parts.h"
#include "analysis/explain/evidence/thresholds.h"
#include "analysis/replay/replay.h"

/* ---- page-locked memory ---- */

/* A block whose size is a power of two may have been rounded to it: at most half is waste. */
static uint64_t rounding_of(const struct cuf_block *block)
{
	bool power = (block->bytes & (block->bytes - 1)) == 0;

	if (block->kind != CUF_KIND_PINNED || block->bytes < ROUNDED_LEAST || !power)
		return 0;
	return block->bytes / 2;
}

/* Page-locked memory at the moment, and how much of it may be rounding. */
static void set_pinned(struct evidence *evidence)
{
	uint64_t until = evidence->incident ? evidence->incident->seq : CUF_UNKNOWN;
	uint64_t pinned = 0, rounded = 0, sizes = 0; /* sizes: a bit for each power of two */
	size_t at = 0;
	bool exact;
	const struct liveset *live = run_live(&evidence->facts->run->processes[evidence->process],
					      until, &exact);

	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		bool locked = block->kind == CUF_KIND_PINNED || block->kind == CUF_KIND_REGISTERED;
		if (!locked || block->bytes >= BYTES_SANE)
			continue;
		pinned += block->bytes;
		rounded += rounding_of(block);
		sizes |= rounding_of(block);
		if (evidence->signals[SIGNAL_pinned_share].seq_count < 2) {
			evidence->signals[SIGNAL_pinned_share].stack = block->stack;
			evidence_show(evidence, SIGNAL_pinned_share, block->seq);
			evidence_show(evidence, SIGNAL_pinned_rounded, block->seq);
		}
	}
	if (!(sizes & (sizes - 1))) /* of one size: it was asked for */
		rounded = 0;
	evidence->metrics[METRIC_pinned] = pinned;
	evidence->metrics[METRIC_pinned_wasted] = rounded ? rounded : CUF_UNKNOWN;
	evidence_set(evidence, SIGNAL_pinned_share,
		     evidence_ratio(pinned, evidence->metrics[METRIC_limit]));
	evidence_set(evidence, SIGNAL_pinned_rounded,
		     (double)rounded / (double)most_of(pinned, 1));
}

/* ---- resident memory ---- */

/* From the samples. What is resident but neither shared nor live is idle. */
static void set_resident(const struct fact_process *process, struct evidence *evidence)
{
	static const enum signal shown[] = { SIGNAL_host_full, SIGNAL_host_mine, SIGNAL_host_ramp,
					     SIGNAL_host_slack, SIGNAL_oom_killed };
	uint64_t *metrics = evidence->metrics;
	uint64_t live = metrics[METRIC_host_live];
	const struct fact_sample *first, *last;

	metrics[METRIC_rss] = process->host.rss_bytes;
	metrics[METRIC_cgroup] = process->host.cgroup_bytes;
	if (!process->timeline_count)
		return;
	first = &process->timeline[0];
	last = &process->timeline[process->timeline_count - 1];
	metrics[METRIC_rss_first] = first->rss_bytes;
	if (is_known(last->rss_bytes))
		metrics[METRIC_rss] = last->rss_bytes;
	/* a failure reads it again; what was loaded fast came after the last sample */
	if (evidence->incident && is_known(evidence->incident->rss_bytes))
		metrics[METRIC_rss] = evidence->incident->rss_bytes;
	if (is_known(last->cgroup_bytes))
		metrics[METRIC_cgroup] = last->cgroup_bytes;
	if (is_known(last->rss_bytes) && is_known(last->rss_shared_bytes) && is_known(live) &&
	    last->rss_bytes > last->rss_shared_bytes + live)
		metrics[METRIC_host_idle] = last->rss_bytes - last->rss_shared_bytes - live;
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		evidence->signals[shown[i]].time_ns = last->time_ns;
}

/* Growth since the first sample, as a share of what is resident at last. */
static void set_ramp(struct evidence *evidence)
{
	uint64_t last = evidence->metrics[METRIC_rss];
	uint64_t first = evidence->metrics[METRIC_rss_first];

	if (!is_known(last) || !is_known(first) || !last)
		return;
	evidence_set(evidence, SIGNAL_host_ramp,
		     last > first ? 1 - (double)first / (double)last : 0);
}

/* ---- the allocator ---- */

/* Free memory inside the allocator; unknown where it has no statistics. */
static uint64_t cached_bytes(const struct fact_host *host)
{
	const struct fact_allocator *allocator = host->allocators;

	if (!host->allocator_count || allocator->role != ALLOCATOR_PROCESS ||
	    !is_known(allocator->cached_bytes) || !is_known(allocator->fragmented_bytes))
		return CUF_UNKNOWN;
	return allocator->cached_bytes + allocator->fragmented_bytes;
}

/* What the advice for a heap that is mostly free depends on. A killed process could not tell its
 * arenas, but each of its threads may have one. */
static void set_kept(const struct fact_host *host, struct evidence *evidence)
{
	const struct fact_allocator *first = host->allocators;
	uint64_t cached;

	if (host->allocator_count && first->role == ALLOCATOR_PROCESS &&
	    !strcmp(first->name, "glibc") && !is_known(first->arena_count) &&
	    host->thread_count >= REPEATS_LEAST)
		evidence->metrics[METRIC_host_threads] = host->thread_count;
	cached = cached_bytes(host);
	if (cached <= evidence->metrics[METRIC_rss]) /* else it is of another moment */
		evidence->metrics[METRIC_host_cached] = cached;
	for (size_t i = 0; i < host->advice_count; i++) {
		if (host->advice[i].fix == FIX_SEPARATE)
			evidence->metrics[METRIC_host_gaps] = host->allocators->fragmented_bytes;
		if (host->advice[i].fix == FIX_ARENAS)
			evidence->metrics[METRIC_host_arenas] = host->allocators->arena_count;
	}
}

/* Resident and not shared: the pages of the recording are no memory of the program. */
static uint64_t private_bytes(const struct fact_process *process, uint64_t rss)
{
	const struct fact_sample *last;

	if (!process->timeline_count || !is_known(rss))
		return rss;
	last = &process->timeline[process->timeline_count - 1];
	if (!is_known(last->rss_shared_bytes))
		return rss;
	return subtract_to_zero(rss, last->rss_shared_bytes);
}

/* The share of resident memory that the allocator keeps: its statistics, else what is not live. */
static double slack_share(const struct fact_process *process, const uint64_t *metrics)
{
	uint64_t rss = metrics[METRIC_rss], live = metrics[METRIC_host_live];

	if (is_known(metrics[METRIC_host_cached]))
		return evidence_ratio(metrics[METRIC_host_cached], private_bytes(process, rss));
	if (!is_known(live) || !is_known(rss) || rss <= live)
		return NAN;
	return 1 - (double)live / (double)rss;
}

/* Other processes, files of tmpfs: only where they are much is it worth to look there. */
static void set_elsewhere(struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics, rss = metrics[METRIC_rss];
	uint64_t cgroup = metrics[METRIC_cgroup];

	if (!is_known(cgroup) || !is_known(rss) || cgroup <= rss ||
	    evidence_ratio(cgroup - rss, metrics[METRIC_limit]) < MUCH_SHARE)
		return;
	metrics[METRIC_host_elsewhere] = cgroup - rss;
	evidence_set(evidence, SIGNAL_host_elsewhere,
		     evidence_ratio(cgroup - rss, metrics[METRIC_limit]));
}

/* It stays when processes unmap it, or end, until its name is removed. */
static void set_shmem(struct evidence *evidence, uint64_t bytes)
{
	double part = evidence_ratio(bytes, evidence->metrics[METRIC_limit]);

	if (!is_known(bytes) || part < MUCH_SHARE)
		return;
	evidence->metrics[METRIC_host_shmem] = bytes;
	evidence_set(evidence, SIGNAL_host_shmem, part);
}

/* Until the limit at the present rate. The limit is of the cgroup, so its use counts where it is
 * known. */
static uint64_t seconds_left(const uint64_t *metrics, bool has_limit)
{
	uint64_t slope = metrics[METRIC_host_slope], limit = metrics[METRIC_limit];
	uint64_t used = metrics[METRIC_cgroup];

	if (!has_limit) /* the memory of the machine is no limit that somebody set */
		return CUF_UNKNOWN;
	if (!is_known(used))
		used = metrics[METRIC_rss];
	if (!is_known(slope) || !slope || !is_known(limit) || !is_known(used) || used >= limit)
		return CUF_UNKNOWN;
	return (limit - used) / slope;
}

/* ---- the heap of a runtime ---- */

/* Where its maps are not recorded, resident memory that nobody else can have made is that heap. */
static void set_heap(const struct fact_host *host, struct evidence *evidence)
{
	const struct fact_heap *heap = &host->heap;
	uint64_t *metrics = evidence->metrics, rss = metrics[METRIC_rss];
	uint64_t limit = metrics[METRIC_limit], rest;

	if (!heap->name || !is_known(rss)) {
		evidence_set(evidence, SIGNAL_heap, 0);
		return;
	}
	evidence->runtime = heap->runtime;
	evidence->options[METRIC_heap] = heap->name;
	metrics[METRIC_heap] = heap->bytes;
	if (heap->bytes)
		metrics[METRIC_heap_seen] = heap->bytes;
	else
		metrics[METRIC_heap] = least_of(rss, known_or_zero(heap->nobodys_bytes));
	rest = metrics[METRIC_heap_rest] = rss - least_of(metrics[METRIC_heap], rss);
	metrics[METRIC_heap_limit] = heap->limit_bytes;
	evidence_set(evidence, SIGNAL_heap, evidence_ratio(metrics[METRIC_heap], rss));
	if (!is_known(limit))
		return;
	if (rest + limit / HEAP_PART < limit)
		metrics[METRIC_heap_fits] = (limit - limit / HEAP_PART - rest) >> 20;
	if (is_known(heap->limit_bytes))
		evidence_set(evidence, SIGNAL_heap_over,
			     evidence_ratio(heap->limit_bytes + rest, limit));
}

/* ---- all ---- */

/* Growth as shares of what is resident; evidence_growth measured the bytes. */
static void set_growth(const struct fact_process *process, struct evidence *evidence)
{
	uint64_t *metrics = evidence->metrics;
	uint64_t plateau = evidence->device == FACT_NONE ? metrics[METRIC_plateau] : 0;

	if (process->host_mode == CUF_HOST_OFF)
		return;
	evidence_set(evidence, SIGNAL_host_leak,
		     is_known(metrics[METRIC_host_leaked])
			     ? evidence_ratio(metrics[METRIC_host_leaked], metrics[METRIC_rss])
			     : 0);
	evidence_set(evidence, SIGNAL_host_cache,
		     plateau ? evidence_ratio(plateau, metrics[METRIC_rss]) : 0);
	if (evidence_ratio(metrics[METRIC_host_grown], metrics[METRIC_rss]) < MUCH_SHARE)
		metrics[METRIC_host_grown] = CUF_UNKNOWN;
	evidence_set(evidence, SIGNAL_host_grown,
		     evidence_ratio(known_or_zero(metrics[METRIC_host_grown]),
				    metrics[METRIC_rss]));
	evidence_set(evidence, SIGNAL_host_loading,
		     evidence_ratio(known_or_zero(metrics[METRIC_host_loaded]),
				    metrics[METRIC_rss]));
	if (is_known(metrics[METRIC_host_churned]))
		evidence_set(evidence, SIGNAL_host_churned,
			     evidence_ratio(metrics[METRIC_host_churned],
					    metrics[METRIC_host_loaded]));
	evidence_set(evidence, SIGNAL_host_parallel,
		     evidence_ratio(known_or_zero(metrics[METRIC_host_at_once]),
				    metrics[METRIC_rss]));
	evidence_set(evidence, SIGNAL_host_round,
		     evidence_ratio(known_or_zero(metrics[METRIC_host_round]),
				    metrics[METRIC_rss]));
	evidence_set(evidence, SIGNAL_host_doubling,
		     evidence_ratio(known_or_zero(metrics[METRIC_host_doublers]),
				    metrics[METRIC_rss]));
}

/* What the process requested at last and would have touched next: with it the cgroup is beyond its
 * limit. The call site is the one that made the largest block of that time. */
static void set_jump(struct evidence *evidence)
{
	const struct fact_process *process = &evidence->facts->processes[evidence->process];
	uint64_t *metrics = evidence->metrics, cgroup = metrics[METRIC_cgroup];
	uint64_t limit = process->host.cgroup_max_bytes, jump = process->untouched_bytes;
	const struct fact_site *largest = NULL;

	if (!is_known(cgroup) || !is_known(limit) || limit_is_reached(cgroup, limit) ||
	    !limit_is_reached(cgroup + jump, limit)) {
		evidence_set(evidence, SIGNAL_host_jump, 0);
		return;
	}
	metrics[METRIC_host_jump] = jump;
	metrics[METRIC_host_asked] = cgroup + jump;
	evidence_set(evidence, SIGNAL_host_jump, evidence_ratio(jump, limit));
	for (size_t i = 0; i < evidence->facts->leak_count; i++) {
		const struct fact_site *site = &evidence->facts->leaks[i];
		if (site->process == evidence->process && site->kind == CUF_KIND_HOST &&
		    site->last_ns + LATE_NS >= process->end_ns &&
		    (!largest || site->largest_bytes > largest->largest_bytes))
			largest = site;
	}
	if (!largest)
		return;
	evidence->signals[SIGNAL_host_jump].stack = largest->stack.id;
	/* one block, whose first pages were resident already */
	if (largest->largest_bytes >= jump && largest->largest_bytes - jump <= jump / 4)
		metrics[METRIC_host_jump] = largest->largest_bytes;
}

/* The limit of the process that refused the request, in bytes and in words. */
static void set_process_limit(struct evidence *evidence)
{
	const struct fact_incident *incident = evidence->incident;
	enum fact_limit_kind kind = incident->refused_by;
	uint64_t held;

	evidence_set(evidence, SIGNAL_process_limit, kind != LIMIT_NONE);
	if (kind == LIMIT_NONE)
		return;
	held = incident->limits[kind].used_bytes;
	evidence->metrics[METRIC_process_limit] = incident->limits[kind].max_bytes;
	evidence->options[METRIC_process_limit] = fact_limit_words[kind].set;
	evidence->metrics[METRIC_process_held] = held;
	evidence->options[METRIC_process_held] = fact_limit_words[kind].what;
	evidence->metrics[METRIC_process_asked] = held + incident->requested_bytes;
	if (incident->api && strstr(incident->api, "_create")) /* pthread_create, thrd_create */
		evidence->metrics[METRIC_thread_stack] = incident->requested_bytes;
	evidence->options[METRIC_process_asked] = fact_limit_words[kind].by;
	evidence_show(evidence, SIGNAL_process_limit, incident->seq);
}

/* A malloc that returned NULL. */
static void set_refusal(struct evidence *evidence)
{
	const struct fact_incident *incident = evidence->incident;

	if (!incident || incident->kind != CUF_KIND_HOST)
		return;
	evidence->metrics[METRIC_host_left] = CUF_UNKNOWN; /* the limit is reached */
	evidence->options[METRIC_request] = incident->api ? incident->api : "malloc";
	evidence_set(evidence, SIGNAL_host_refused, 1);
	evidence_set(evidence, SIGNAL_host_huge,
		     evidence_ratio(incident->requested_bytes,
				    evidence->metrics[METRIC_host_live]));
	evidence_set(evidence, SIGNAL_host_over_limit,
		     evidence_ratio(incident->requested_bytes, evidence->metrics[METRIC_limit]));
	evidence_show(evidence, SIGNAL_host_refused, incident->seq);
	evidence_show(evidence, SIGNAL_host_over_limit, incident->seq);
	evidence_show(evidence, SIGNAL_host_huge, incident->seq);
	set_process_limit(evidence);
}

/* What the program holds and did not free: of malloc, of CPython's allocator, and in maps. */
static uint64_t live_bytes(const struct fact_host *host)
{
	uint64_t bytes = host->malloc_live_bytes;

	if (!is_known(bytes))
		return bytes;
	return bytes + known_or_zero(host->python_live_bytes) +
	       known_or_zero(host->maps.anonymous_bytes) + known_or_zero(host->maps.shared_bytes);
}

void evidence_host(struct evidence *evidence)
{
	const struct fact_process *process = &evidence->facts->processes[evidence->process];
	const struct fact_host *host = &process->host;
	uint64_t *metrics = evidence->metrics;
	bool killed = process->end == END_OOM_KILLED;

	metrics[METRIC_limit] = host->cgroup_max_bytes;
	if (!is_known(host->cgroup_max_bytes))
		metrics[METRIC_limit] = host->memory_total_bytes;
	metrics[METRIC_host_live] = live_bytes(host);
	set_resident(process, evidence);
	set_kept(host, evidence);
	set_pinned(evidence);
	set_heap(host, evidence);
	set_growth(process, evidence);
	set_ramp(evidence);
	if (!killed)
		metrics[METRIC_host_left] = seconds_left(metrics, is_known(host->cgroup_max_bytes));
	set_refusal(evidence);
	if (killed)
		set_jump(evidence);
	if (host->recorded_alloc_count)
		evidence_set(evidence, SIGNAL_host_freed,
			     (double)host->recorded_free_count /
				     (double)host->recorded_alloc_count);
	evidence_set(evidence, SIGNAL_oom_killed, killed);
	evidence_set(evidence, SIGNAL_host_full,
		     evidence_ratio(metrics[METRIC_cgroup], metrics[METRIC_limit]));
	set_elsewhere(evidence);
	set_shmem(evidence, process->host.cgroup_shmem_bytes);
	evidence_set(evidence, SIGNAL_host_mine,
		     evidence_ratio(metrics[METRIC_rss], metrics[METRIC_limit]));
	evidence_set(evidence, SIGNAL_host_slack, slack_share(process, metrics));
	if (is_known(metrics[METRIC_host_cached]))
		evidence_set(evidence, SIGNAL_host_kept,
			     (double)metrics[METRIC_host_cached] / (double)WORTH_BYTES);
}
