/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each correction, in the order in which they build on each other. */
#include "analysis/explain/evidence/adjust.h"
#include "analysis/base/numbers.h"
#include "analysis/explain/evidence/thresholds.h"

static void change(struct evidence *evidence, enum signal signal, double value)
{
	evidence->signals[signal].value = value;
}

/* Where almost nothing was freed, free memory inside blocks was never in use: it is rounding, and
 * no fragmentation. */
static void drop_unused_slack(struct evidence *evidence, const struct history *history)
{
	if (!history->slack_unused || !(evidence->signals[SIGNAL_packed].value >= 1))
		return;
	change(evidence, SIGNAL_packed, PACKED_NOT);
	change(evidence, SIGNAL_slack, 0);
}

/* One more of a run of equal blocks is not one of the sizes that repeat layer by layer. */
static void drop_layers_of_a_run(struct evidence *evidence, const struct history *history)
{
	if (history->has_family && evidence_holds(evidence, SIGNAL_family_next) &&
	    evidence->signals[SIGNAL_burst].value >= 0.8)
		change(evidence, SIGNAL_layered, 0);
}

/* A cache has one block a layer, or two; sequences may be more. */
static bool is_of_slots(const struct evidence *evidence)
{
	const uint64_t *metrics = evidence->metrics;

	return evidence_holds(evidence, SIGNAL_slots_named) ||
	       (is_known(metrics[METRIC_depth]) && is_known(metrics[METRIC_wanted]) &&
		metrics[METRIC_wanted] > 2 * metrics[METRIC_depth]);
}

/* Equal blocks right after a query of free memory are a KV cache, with or without a name. Blocks
 * that alternate with others are layers. */
static void recognise_cache(struct evidence *evidence, const struct history *history)
{
	bool named = evidence_holds(evidence, SIGNAL_kv_named);
	bool next = evidence_holds(evidence, SIGNAL_family_next);
	bool one_buffer = evidence_holds(evidence, SIGNAL_kv_prealloc) && !next;
	uint64_t *metrics = evidence->metrics;

	/* A cache requested in one piece: the blocks that are there already are something else. */
	if (!history->family_after_query || one_buffer || (!named && is_of_slots(evidence)))
		return;
	if (!(evidence->signals[SIGNAL_burst].value >= MOSTLY) && !named)
		return;
	if (metrics[METRIC_kv] == CUF_UNKNOWN)
		metrics[METRIC_kv] = metrics[METRIC_family_bytes];
	if (next)
		change(evidence, SIGNAL_kv_prealloc, named ? 1 : 0.75);
	else
		change(evidence, SIGNAL_kv_done,
		       metrics[METRIC_shortfall] != CUF_UNKNOWN &&
			       metrics[METRIC_kv] > metrics[METRIC_shortfall]);
}

/* A cache whose blocks are freed all the time was not laid out in advance. */
static void drop_cache_that_churns(struct evidence *evidence, const struct history *history)
{
	if (!history->cache_churns)
		return;
	change(evidence, SIGNAL_kv_done, 0);
	change(evidence, SIGNAL_kv_prealloc, 0);
}

/* How many equal blocks fit is a question of blocks laid out in advance, which is another cause. */
static void drop_fits_of_concurrency(struct evidence *evidence, const struct history *history)
{
	if (!history->side_by_side)
		return;
	evidence->metrics[METRIC_fits] = CUF_UNKNOWN;
	evidence->metrics[METRIC_base] = CUF_UNKNOWN;
}

static void add_capture(struct evidence *evidence, const struct history *history)
{
	if (!history->capture_seq)
		return;
	change(evidence, SIGNAL_graph_capture, 1);
	evidence_show(evidence, SIGNAL_graph_capture, history->capture_seq);
}

struct evidence evidence_adjust(const struct evidence *snapshot, const struct history *history,
				bool kv_grows)
{
	struct evidence adjusted = *snapshot;

	drop_unused_slack(&adjusted, history);
	drop_layers_of_a_run(&adjusted, history);
	recognise_cache(&adjusted, history);
	drop_cache_that_churns(&adjusted, history);
	drop_fits_of_concurrency(&adjusted, history);
	add_capture(&adjusted, history);
	if (kv_grows)
		change(&adjusted, SIGNAL_kv_named, 1);
	return adjusted;
}
