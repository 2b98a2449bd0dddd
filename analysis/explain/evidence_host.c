/* SPDX-License-Identifier: Apache-2.0 */
/* The host: the cgroup and its limit, resident memory over time, page-locked memory, what the allocator keeps. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include "analysis/replay/replay.h"

static bool known(uint64_t figure)
{
	return figure != CUF_UNKNOWN;
}
static double ratio(uint64_t a, uint64_t b)
{
	return known(a) && known(b) && b ? (double)a / (double)b : NAN;
}

static uint64_t power_of_two(uint64_t bytes)
{
	uint64_t power = 1;
	while (power < bytes && power < (uint64_t)1 << 60)
		power *= 2;
	return power;
}

/* Blocks whose size is a power of two were perhaps rounded to it: at most half of each, less one byte. */
static void look_at_pinned(struct build *build, struct evidence *evidence)
{
	struct run_process *process = &build->run->processes[evidence->process];
	uint64_t seq = evidence->incident ? evidence->incident->seq : CUF_UNKNOWN, pinned = 0,
		 rounded = 0, shown = 0;
	size_t at = 0;
	bool exact;
	const struct liveset *live = run_live(process, seq, &exact);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		if ((block->kind != CUF_KIND_PINNED && block->kind != CUF_KIND_REGISTERED) ||
		    block->bytes >= (uint64_t)1 << 57)
			continue;
		pinned += block->bytes;
		if (block->kind == CUF_KIND_PINNED && block->bytes >= 65536 &&
		    power_of_two(block->bytes) == block->bytes)
			rounded += block->bytes / 2;
		shown = block->bytes > shown ? block->bytes : shown;
		if (evidence->terms[TERM_pinned_share].seq_count < 2) {
			evidence->terms[TERM_pinned_share].stack = block->stack;
			evidence_show(evidence, TERM_pinned_share, block->seq);
			evidence_show(evidence, TERM_pinned_rounded, block->seq);
		}
	}
	evidence->figures[FIG_pinned] = pinned;
	evidence->figures[FIG_pinned_wasted] = rounded;
	evidence_set(evidence, TERM_pinned_share, ratio(pinned, evidence->figures[FIG_limit]));
	evidence_set(evidence, TERM_pinned_rounded, pinned ? (double)rounded / (double)pinned : 0);
}

static void look_at_timeline(struct build *build, struct evidence *evidence)
{
	const struct fact_process *process = &build->facts->processes[evidence->process];
	uint64_t *figures = evidence->figures;
	const struct fact_sample *first, *last;
	if (!process->timeline_count)
		return;
	first = &process->timeline[0];
	last = &process->timeline[process->timeline_count - 1];
	figures[FIG_rss_first] = first->rss_bytes;
	if (known(last->rss_bytes))
		figures[FIG_rss] = last->rss_bytes;
	if (known(last->cgroup_bytes))
		figures[FIG_cgroup] = last->cgroup_bytes;
	if (known(last->rss_bytes) && known(last->rss_shared_bytes) &&
	    known(figures[FIG_host_live]) &&
	    last->rss_bytes > last->rss_shared_bytes + figures[FIG_host_live])
		figures[FIG_host_idle] = last->rss_bytes - last->rss_shared_bytes -
					 figures[FIG_host_live];
	static const enum term shown[] = { TERM_host_full, TERM_host_mine, TERM_host_ramp,
					   TERM_host_slack, TERM_oom_killed };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		evidence->terms[shown[i]].time_ns = last->time_ns;
}

static uint64_t seconds_left(const uint64_t *f)
{
	uint64_t used = known(f[FIG_cgroup]) ? f[FIG_cgroup] : f[FIG_rss];
	if (!known(f[FIG_host_slope]) || !f[FIG_host_slope] || !known(f[FIG_limit]) ||
	    !known(used) || used >= f[FIG_limit])
		return CUF_UNKNOWN;
	return (f[FIG_limit] - used) / f[FIG_host_slope];
}

void evidence_host(struct build *build, struct evidence *evidence)
{
	const struct fact_process *process = &build->facts->processes[evidence->process];
	uint64_t *figures = evidence->figures;
	figures[FIG_limit] = known(process->host.cgroup_max_bytes)
				     ? process->host.cgroup_max_bytes
				     : process->host.memory_total_bytes;
	figures[FIG_rss] = process->host.rss_bytes;
	figures[FIG_cgroup] = process->host.cgroup_bytes;
	figures[FIG_host_live] = process->host.malloc_live_bytes;
	if (process->host.allocator_count &&
	    process->host.allocators[0].role == ALLOCATOR_PROCESS &&
	    known(process->host.allocators[0].cached_bytes) &&
	    known(process->host.allocators[0].fragmented_bytes))
		figures[FIG_host_cached] = process->host.allocators[0].cached_bytes +
					   process->host.allocators[0].fragmented_bytes;
	look_at_timeline(build, evidence);
	look_at_pinned(build, evidence);
	figures[FIG_host_left] = process->end == END_OOM_KILLED ? CUF_UNKNOWN
								: seconds_left(figures);
	if (process->host.recorded_alloc_count)
		evidence_set(evidence, TERM_host_freed,
			     (double)process->host.recorded_free_count /
				     (double)process->host.recorded_alloc_count);
	evidence_set(evidence, TERM_oom_killed, process->end == END_OOM_KILLED);
	if (evidence->incident && evidence->incident->kind == CUF_KIND_HOST) {
		figures[FIG_host_left] = CUF_UNKNOWN; /* it is reached */
		evidence_set(evidence, TERM_host_refused, 1);
		evidence_set(evidence, TERM_host_huge,
			     ratio(evidence->incident->requested_bytes, figures[FIG_host_live]));
		evidence_show(evidence, TERM_host_refused, evidence->incident->seq);
		evidence_show(evidence, TERM_host_huge, evidence->incident->seq);
	}
	evidence_set(evidence, TERM_host_full, ratio(figures[FIG_cgroup], figures[FIG_limit]));
	evidence_set(evidence, TERM_host_mine, ratio(figures[FIG_rss], figures[FIG_limit]));
	evidence_set(evidence, TERM_host_slack,
		     known(figures[FIG_host_cached])
			     ? ratio(figures[FIG_host_cached], figures[FIG_rss])
		     : known(figures[FIG_host_live]) && known(figures[FIG_rss]) &&
				     figures[FIG_rss] > figures[FIG_host_live]
			     ? 1 - (double)figures[FIG_host_live] / (double)figures[FIG_rss]
			     : NAN);
	if (known(figures[FIG_rss]) && known(figures[FIG_rss_first]) && figures[FIG_rss])
		evidence_set(evidence, TERM_host_ramp,
			     figures[FIG_rss] > figures[FIG_rss_first]
				     ? 1 - (double)figures[FIG_rss_first] / (double)figures[FIG_rss]
				     : 0);
	/* as shares of what is resident, once it is known */
	if (evidence->terms[TERM_host_leak].value > 0)
		evidence_set(evidence, TERM_host_leak,
			     known(figures[FIG_rss]) && figures[FIG_rss]
				     ? (double)figures[FIG_host_leaked] / (double)figures[FIG_rss]
				     : NAN);
	if (evidence->terms[TERM_host_cache].value > 0)
		evidence_set(evidence, TERM_host_cache,
			     known(figures[FIG_rss]) && figures[FIG_rss]
				     ? (double)figures[FIG_plateau] / (double)figures[FIG_rss]
				     : NAN);
}
