/* SPDX-License-Identifier: Apache-2.0 */
/* The host: the cgroup and its limit, resident memory over time, page-locked memory, what the allocator keeps. */
#include "analysis/explain/evidence.h"

#include <math.h>
#include "analysis/replay/replay.h"

static bool known(uint64_t figure) { return figure != CUF_UNKNOWN; }
static double ratio(uint64_t a, uint64_t b) { return known(a) && known(b) && b ? (double)a / (double)b : NAN; }

static uint64_t power_of_two(uint64_t bytes)
{
	uint64_t power = 1;
	while (power < bytes && power < (uint64_t)1 << 60)
		power *= 2;
	return power;
}

/* Blocks whose size is a power of two were perhaps rounded to it: at most half of each, less one byte. */
static void look_at_pinned(struct build *b, struct evidence *e)
{
	struct run_process *p = &b->run->processes[e->process];
	uint64_t seq = e->incident ? e->incident->seq : CUF_UNKNOWN, pinned = 0, rounded = 0, shown = 0;
	size_t at = 0;
	bool exact;
	const struct liveset *live = run_live(p, seq, &exact);
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		if ((block->kind != CUF_KIND_PINNED && block->kind != CUF_KIND_REGISTERED) || block->bytes >= (uint64_t)1 << 57)
			continue;
		pinned += block->bytes;
		if (block->kind == CUF_KIND_PINNED && block->bytes >= 65536 && power_of_two(block->bytes) == block->bytes)
			rounded += block->bytes / 2;
		shown = block->bytes > shown ? block->bytes : shown;
		if (e->terms[TERM_pinned_share].seq_count < 2) {
			e->terms[TERM_pinned_share].stack = block->stack;
			evidence_show(e, TERM_pinned_share, block->seq);
			evidence_show(e, TERM_pinned_rounded, block->seq);
		}
	}
	e->figures[FIG_pinned] = pinned;
	e->figures[FIG_pinned_wasted] = rounded;
	evidence_set(e, TERM_pinned_share, ratio(pinned, e->figures[FIG_limit]));
	evidence_set(e, TERM_pinned_rounded, pinned ? (double)rounded / (double)pinned : 0);
}

static void look_at_timeline(struct build *b, struct evidence *e)
{
	const struct fact_process *p = &b->facts->processes[e->process];
	uint64_t *f = e->figures;
	const struct fact_sample *first, *last;
	if (!p->timeline_count)
		return;
	first = &p->timeline[0];
	last = &p->timeline[p->timeline_count - 1];
	f[FIG_rss_first] = first->rss_bytes;
	if (known(last->rss_bytes))
		f[FIG_rss] = last->rss_bytes;
	if (known(last->cgroup_bytes))
		f[FIG_cgroup] = last->cgroup_bytes;
	if (known(last->rss_bytes) && known(last->rss_shared_bytes) && known(f[FIG_host_live]) && last->rss_bytes > last->rss_shared_bytes + f[FIG_host_live])
		f[FIG_host_idle] = last->rss_bytes - last->rss_shared_bytes - f[FIG_host_live];
	static const enum term shown[] = { TERM_host_full, TERM_host_mine, TERM_host_ramp, TERM_host_slack, TERM_oom_killed };
	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
		e->terms[shown[i]].time_ns = last->time_ns;
}

static uint64_t seconds_left(const uint64_t *f)
{
	uint64_t used = known(f[FIG_cgroup]) ? f[FIG_cgroup] : f[FIG_rss];
	if (!known(f[FIG_host_slope]) || !f[FIG_host_slope] || !known(f[FIG_limit]) || !known(used) || used >= f[FIG_limit])
		return CUF_UNKNOWN;
	return (f[FIG_limit] - used) / f[FIG_host_slope];
}

void evidence_host(struct build *build, struct evidence *e)
{
	const struct fact_process *p = &build->facts->processes[e->process];
	uint64_t *f = e->figures;
	f[FIG_limit] = known(p->host.cgroup_max_bytes) ? p->host.cgroup_max_bytes : p->host.memory_total_bytes;
	f[FIG_rss] = p->host.rss_bytes;
	f[FIG_cgroup] = p->host.cgroup_bytes;
	f[FIG_host_live] = p->host.malloc_live_bytes;
	if (p->host.allocator_count && p->host.allocators[0].role == ALLOCATOR_PROCESS && known(p->host.allocators[0].cached_bytes) &&
	    known(p->host.allocators[0].fragmented_bytes))
		f[FIG_host_cached] = p->host.allocators[0].cached_bytes + p->host.allocators[0].fragmented_bytes;
	look_at_timeline(build, e);
	look_at_pinned(build, e);
	f[FIG_host_left] = p->end == END_OOM_KILLED ? CUF_UNKNOWN : seconds_left(f);
	if (p->host.recorded_alloc_count)
		evidence_set(e, TERM_host_freed, (double)p->host.recorded_free_count / (double)p->host.recorded_alloc_count);
	evidence_set(e, TERM_oom_killed, p->end == END_OOM_KILLED);
	if (e->incident && e->incident->kind == CUF_KIND_HOST) {
		f[FIG_host_left] = CUF_UNKNOWN; /* it is reached */
		evidence_set(e, TERM_host_refused, 1);
		evidence_set(e, TERM_host_huge, ratio(e->incident->requested_bytes, f[FIG_host_live]));
		evidence_show(e, TERM_host_refused, e->incident->seq);
		evidence_show(e, TERM_host_huge, e->incident->seq);
	}
	evidence_set(e, TERM_host_full, ratio(f[FIG_cgroup], f[FIG_limit]));
	evidence_set(e, TERM_host_mine, ratio(f[FIG_rss], f[FIG_limit]));
	evidence_set(e, TERM_host_slack, known(f[FIG_host_cached]) ? ratio(f[FIG_host_cached], f[FIG_rss]) : known(f[FIG_host_live]) && known(f[FIG_rss]) &&
		     f[FIG_rss] > f[FIG_host_live] ? 1 - (double)f[FIG_host_live] / (double)f[FIG_rss] : NAN);
	if (known(f[FIG_rss]) && known(f[FIG_rss_first]) && f[FIG_rss])
		evidence_set(e, TERM_host_ramp, f[FIG_rss] > f[FIG_rss_first] ? 1 - (double)f[FIG_rss_first] / (double)f[FIG_rss] : 0);
	/* as shares of what is resident, once it is known */
	if (e->terms[TERM_host_leak].value > 0)
		evidence_set(e, TERM_host_leak, known(f[FIG_rss]) && f[FIG_rss] ? (double)f[FIG_host_leaked] / (double)f[FIG_rss] : NAN);
	if (e->terms[TERM_host_cache].value > 0)
		evidence_set(e, TERM_host_cache, known(f[FIG_rss]) && f[FIG_rss] ? (double)f[FIG_plateau] / (double)f[FIG_rss] : NAN);
}
