/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of growth by survival; README.md gives the reason of each number. */
#include "analysis/growth/survival.h"

#include <math.h>
#include "analysis/base/numbers.h"

enum {
	START_BINS = SURVIVAL_BINS / 8,       /* start-up is no work */
	END_BINS = SURVIVAL_BINS / 8,         /* at most, nor is the end */
	LATEST_BIN = SURVIVAL_BINS / 2,       /* a site that begins later was not seen for long */
	BLOCKS_LEAST = 24,                    /* recorded ones, in all */
	BLOCKS_THIRD = 4                      /* and in each third */
};
#define GROWN_LEAST_BYTES (1 << 20)
#define SPAN_LEAST_S 5.0
#define BIN_LEAST_S 0.008              /* births and events have a clock of some milliseconds */
#define LASTING_S 3600.0
#define SIGMAS 2.33                    /* one in a hundred, on one side */
#define SIGMAS_95 1.959964

unsigned survival_bin(const struct survival_time *time, uint64_t time_ns)
{
	double span = (double)time->end_ns - (double)time->begin_ns, at;
	if (time_ns <= time->begin_ns || !(span > 0))
		return 0;
	at = ((double)time_ns - (double)time->begin_ns) / span * SURVIVAL_BINS;
	return (unsigned)fmin(at, SURVIVAL_BINS - 1);
}

void survival_add(struct survival *survival, const struct survival *other)
{
	for (unsigned bin = 0; bin < SURVIVAL_BINS; bin++) {
		survival->bins[bin].bytes += other->bins[bin].bytes;
		survival->bins[bin].variance += other->bins[bin].variance;
		survival->bins[bin].net_bytes += other->bins[bin].net_bytes;
		survival->bins[bin].count += other->bins[bin].count;
	}
}

/* Sums over some bins. */
struct part {
	double bytes, variance, net_bytes;
	uint64_t count;
	unsigned bins, bins_with_births;
};

static struct part part_of(const struct survival *survival, unsigned from, unsigned to)
{
	struct part part = { .bins = to - from };
	for (unsigned bin = from; bin < to; bin++) {
		part.bytes += survival->bins[bin].bytes;
		part.variance += survival->bins[bin].variance;
		part.net_bytes += survival->bins[bin].net_bytes;
		part.count += survival->bins[bin].count;
		part.bins_with_births += survival->bins[bin].count > 0;
	}
	return part;
}

/* Start-up is left out, and what came before the site's first live block. */
static unsigned first_bin(const struct survival *survival)
{
	unsigned bin = START_BINS;
	while (bin < SURVIVAL_BINS && !survival->bins[bin].count)
		bin++;
	return bin;
}

/* A program that ends may need a while for it: bins at the end in which nothing happened at all. */
static unsigned last_bin(const struct survival *survival, const struct survival *total)
{
	unsigned to = SURVIVAL_BINS;
	while (to > SURVIVAL_BINS - END_BINS && !survival->bins[to - 1].count &&
	       !(fabs(total->bins[to - 1].net_bytes) > 0))
		to--;
	return to;
}

struct thirds { struct part first, middle, last, all; };

static struct thirds thirds_of(const struct survival *survival, unsigned from, unsigned to)
{
	unsigned third = (to - from) / 3;
	return (struct thirds){
		part_of(survival, from, from + third),
		part_of(survival, from + third, to - third),
		part_of(survival, to - third, to),
		part_of(survival, from, to)
	};
}

/* Blocks were born all along, and enough of them to tell. */
static bool is_made_all_along(const struct thirds *thirds)
{
	const struct part *parts[] = { &thirds->first, &thirds->middle, &thirds->last };
	if (thirds->all.count < BLOCKS_LEAST || thirds->all.bytes < GROWN_LEAST_BYTES)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (parts[i]->count < BLOCKS_THIRD ||
		    parts[i]->bins_with_births * 2 < parts[i]->bins)
			return false;
	return thirds->all.bins_with_births * 3 >= thirds->all.bins * 2;
}

/* A cache that fills rises less and less. */
static bool keeps_its_pace(const struct thirds *thirds)
{
	const struct part *first = &thirds->first, *middle = &thirds->middle, *last = &thirds->last;
	double before = (first->bytes + middle->bytes) / (first->bins + middle->bins) * last->bins;
	double share = (double)last->bins / (first->bins + middle->bins);
	double variance = last->variance +
			  (first->variance + middle->variance) * share * share / 16;
	return last->bytes >= before / 2 &&
	       last->bytes - before / 4 >= SIGMAS * sqrt(variance);
}

/*
 * Old blocks are not freed: of what the last third added, less than half was freed again at this
 * call site, and less than three quarters by all together. Judged where events were kept.
 */
static bool keeps_its_old(const struct survival *survival, const struct survival *total,
			  const struct survival_time *time, unsigned from, unsigned to)
{
	unsigned begin = to - (to - from) / 3;
	unsigned kept = survival_bin(time, time->events_ns);
	struct part part;
	if (time->events_ns > time->begin_ns && kept + 1 > begin)
		begin = kept + 1; /* the first whole bin */
	if (begin >= to)
		return false;
	part = part_of(survival, begin, to);
	return part.bytes > 0 && part.net_bytes >= part.bytes / 2 &&
	       part_of(total, begin, to).net_bytes >= part.bytes / 4;
}

/* An hour at the same pace. */
static bool is_lasting(const struct thirds *thirds, double span_s)
{
	const struct part *first = &thirds->first, *last = &thirds->last;
	return span_s >= LASTING_S && last->bytes >= first->bytes * 3 / 4 &&
	       last->bytes - first->bytes / 2 >=
		       SIGMAS * sqrt(last->variance + first->variance / 4);
}

struct survival_growth survival_judge(const struct survival *survival, const struct survival *total,
				      const struct survival_time *time, bool is_failure)
{
	struct survival_growth out = { SURVIVAL_NOTHING, NAN, NAN, NAN };
	unsigned from = first_bin(survival), to = last_bin(survival, total);
	double bin_s = ((double)time->end_ns - (double)time->begin_ns) / 1e9 / SURVIVAL_BINS;
	double span_s = bin_s * ((double)to - from), half;
	struct thirds thirds;

	if (from > LATEST_BIN || bin_s < BIN_LEAST_S || (!is_failure && span_s < SPAN_LEAST_S))
		return out;
	thirds = thirds_of(survival, from, to);
	if (!is_made_all_along(&thirds) || !keeps_its_pace(&thirds) ||
	    !keeps_its_old(survival, total, time, from, to))
		return out;
	out.verdict = is_lasting(&thirds, span_s) ? SURVIVAL_LASTING : SURVIVAL_GROWING;
	half = SIGMAS_95 * sqrt(thirds.all.variance) / span_s;
	out.bytes_per_s = thirds.all.bytes / span_s;
	out.low = out.bytes_per_s - half;
	out.high = out.bytes_per_s + half;
	return out;
}
