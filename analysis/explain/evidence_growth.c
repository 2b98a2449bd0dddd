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
	uint64_t first_ns;        /* of the site that leaks most */
	bool any_site, per_request_known, said;
	uint32_t cache_stack;     /* of the largest cache that stopped growing; 0 none */
	uint64_t cache_bytes;
};

static bool is_here(const struct evidence *e, const struct fact_site *s, bool host)
{
	if (s->process != e->process)
		return false;
	return host ? s->kind == CUF_KIND_HOST : s->device == e->device && e->device != FACT_NONE &&
		(kind_is_device_memory(s->kind) || s->kind == CUF_KIND_FRAMEWORK || s->kind == CUF_KIND_MANAGED);
}

static void add_leak(struct build *b, const struct evidence *e, const struct fact_site *s, struct sums *sum)
{
	sum->leaked += s->bytes;
	if (s->kind != CUF_KIND_HOST && stack_hints(b, e->process, s->stack.id) & HINT_KV)
		sum->kv_leaked += s->bytes;
	if (s->per_request_bytes != CUF_UNKNOWN) {
		sum->said = s->cycles_basis == BASIS_OBSERVED;
		sum->per_request += s->per_request_bytes;
		sum->per_request_known = true;
	}
	if (s->slope_bytes_per_s > 0 && isfinite(s->slope_bytes_per_s)) {
		sum->slope += s->slope_bytes_per_s;
		sum->low += s->interval[0] > 0 ? s->interval[0] : 0;
		sum->high += s->interval[1] > 0 ? s->interval[1] : 0;
	}
}

static void add_cache(const struct fact_site *s, struct sums *sum)
{
	sum->plateau += s->bytes;
	if (s->bytes <= sum->cache_bytes)
		return;
	sum->cache_bytes = s->bytes;
	sum->cache_stack = s->stack.id;
}

static struct sums sum_sites(struct build *b, const struct evidence *e, bool host)
{
	struct sums sum = { .first_ns = CUF_UNKNOWN };
	for (size_t i = 0; i < b->facts->leak_count; i++) {
		const struct fact_site *s = &b->facts->leaks[i];
		if (!is_here(e, s, host))
			continue;
		sum.any_site = true;
		sum.cycles = s->cycles > sum.cycles ? s->cycles : sum.cycles;
		if (s->class == CLASS_LEAK)
			add_leak(b, e, s, &sum);
		else if (s->class == CLASS_BOUNDED_CACHE)
			add_cache(s, &sum);
	}
	return sum;
}

static uint64_t seconds(uint64_t bytes, double slope)
{
	double left = slope > 0 && bytes != CUF_UNKNOWN ? (double)bytes / slope : INFINITY;
	return left >= LEFT_LEAST_S && left < 1e9 ? (uint64_t)left : CUF_UNKNOWN;
}

/* Events of the leak's own sites that are still live. */
static void show_births(struct build *b, struct evidence *e, enum term term, bool host)
{
	const struct events *events = b->run->processes[e->process].events;
	for (size_t i = 0; i < b->facts->leak_count && b->facts->leaks[i].class == CLASS_LEAK; i++) {
		const struct fact_site *s = &b->facts->leaks[i];
		if (!is_here(e, s, host))
			continue;
		e->terms[term].stack = s->stack.id;
		if (e->terms[term].time_ns == CUF_UNKNOWN)
			e->terms[term].time_ns = s->last_ns;
		events = s->kind == CUF_KIND_FRAMEWORK ? events->framework : events;
		for (size_t n = events->count; !host && n-- && e->terms[term].seq_count < 2;) {
			struct cuf_event event = events_get(events, n);
			if (event.op == CUF_OP_ALLOC && event.stack == s->stack.id && (!e->incident || event.seq < e->incident->seq))
				evidence_show(e, term, event.seq);
		}
		return;
	}
}

/* Of a slope above 0; a damaged recording's may be beyond any number. */
static uint64_t bytes_per_s(double slope) { return slope < 0x1p63 ? (uint64_t)slope : CUF_UNKNOWN; }

static void device_growth(struct build *b, struct evidence *e)
{
	struct sums sum = sum_sites(b, e, false);
	uint64_t *f = e->figures;
	if (e->device == FACT_NONE || !sum.any_site)
		return;
	f[FIG_cycles] = sum.cycles;
	evidence_set(e, TERM_early, sum.cycles < 8);
	evidence_set(e, TERM_late_failure, (double)sum.cycles);
	if (sum.plateau)
		f[FIG_plateau] = sum.plateau;
	evidence_set(e, TERM_plateau, f[FIG_shortfall] != CUF_UNKNOWN && f[FIG_shortfall] ? (double)sum.plateau / (double)f[FIG_shortfall] : NAN);
	evidence_set(e, TERM_leak, 0);
	if (!sum.leaked)
		return;
	f[FIG_leaked] = sum.leaked;
	if (sum.per_request_known)
		f[sum.said ? FIG_each_request : FIG_per_request] = f[FIG_per_request] = sum.per_request;
	if (sum.slope > 0)
		f[FIG_slope] = bytes_per_s(sum.slope);
	if (!e->incident) {
		f[FIG_left] = seconds(f[FIG_free], sum.slope);
		f[FIG_left_least] = seconds(f[FIG_free], sum.high);
		f[FIG_left_most] = seconds(f[FIG_free], sum.low);
	}
	evidence_set(e, TERM_leak, !e->incident ? 1 : f[FIG_shortfall] != CUF_UNKNOWN && f[FIG_shortfall] ? (double)sum.leaked / (double)f[FIG_shortfall] : NAN);
	evidence_set(e, TERM_growing, sum.per_request_known);
	if (sum.kv_leaked * 2 > sum.leaked)
		evidence_set(e, TERM_kv_named, 1);
	show_births(b, e, TERM_leak, false);
	show_births(b, e, TERM_growing, false);
}

static void host_growth(struct build *b, struct evidence *e)
{
	struct sums sum = sum_sites(b, e, true);
	uint64_t *f = e->figures;
	if (b->facts->processes[e->process].host_mode == CUF_HOST_OFF)
		return;
	evidence_set(e, TERM_host_leak, 0);
	evidence_set(e, TERM_host_cache, 0);
	if (e->device == FACT_NONE) {
		f[FIG_plateau] = sum.plateau;
		evidence_set(e, TERM_host_cache, (double)sum.plateau);
		e->terms[TERM_host_cache].stack = sum.cache_stack;
	}
	if (!sum.leaked)
		return;
	f[FIG_host_leaked] = sum.leaked;
	if (sum.per_request_known)
		f[sum.said ? FIG_host_each_request : FIG_host_per_request] = f[FIG_host_per_request] = sum.per_request;
	if (sum.slope > 0)
		f[FIG_host_slope] = bytes_per_s(sum.slope);
	evidence_set(e, TERM_host_leak, (double)sum.leaked);
	evidence_set(e, TERM_host_growing, sum.per_request_known);
	show_births(b, e, TERM_host_leak, true);
	show_births(b, e, TERM_host_growing, true);
}

void evidence_growth(struct build *build, struct evidence *e)
{
	device_growth(build, e);
	host_growth(build, e);
}
