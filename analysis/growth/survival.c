/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of growth by survival; README.md gives the reason of each number. */
#include "analysis/growth/survival.h"

#include <math.h>
#include "analysis/base/numbers.h"

enum {
	START_BINS = SURVIVAL_BINS / 8,       /* start-up is no work */
	END_BINS = SURVIVAL_BINS / 8,         /* at most, nor is the end */
	LATEST_BIN = SURVIVAL_BINS / 2,       /* a site that begins later was not seen for long */
	LATEST_BIN_LAST = SURVIVAL_BINS * 3 / 4, /* in the shortest stretch */
	HALF = SURVIVAL_BINS / 2,
	BEGIN_PART = 32,                      /* less of a site is no beginning of its work */
	WORK_PART = 64,                       /* less work than this of a site measures no pace */
	IDLE_PART = 16,                       /* of what is freed in a bin: it did not work */
	STALL_PART = 8,                       /* of what a bin makes: it hardly ran */
	WORKING_LEAST = SURVIVAL_BINS / 3,    /* bins, or nothing is known of its pace */
	BLOCKS_LEAST = 24,                    /* recorded ones, in all, of a sample */
	BLOCKS_THIRD = 4                      /* and in each third */
};
#define GROWN_LEAST_BYTES (1 << 20)
#define BIN_LEAST_S 0.004              /* births and events have a clock of some milliseconds */
#define STALL_S 1.0                    /* the kernel looked for pages before it ended a program */
#define LASTING_S 3600.0
#define SIGMAS 2.33                    /* one in a hundred, on one side */
#define SIGMAS_FAILURE 1.28            /* one in ten */
#define SIGMAS_95 1.959964

static void sum_part(struct survival_part *sum, const struct survival_part *part)
{
	sum->bytes += part->bytes;
	sum->variance += part->variance;
	sum->net_bytes += part->net_bytes;
	sum->freed_bytes += part->freed_bytes;
	sum->count += part->count;
}

/* Halves of the time are left out until the moment is in the first half of what remains. */
unsigned survival_part(const struct survival_time *time, uint64_t time_ns, uint64_t *end_ns)
{
	/* a hostile recording may end before it begins */
	double span = fmax(0, (double)time->end_ns - (double)time->begin_ns);
	double at = 0, from = 0, width = 1;
	unsigned level = 0, part;
	if (time_ns > time->begin_ns && span > 0)
		at = ((double)time_ns - (double)time->begin_ns) / span;
	for (; level < SURVIVAL_HALVINGS && at >= from + width / 2; level++) {
		width /= 2;
		from += width;
	}
	part = (unsigned)fmin((at - from) / width * SURVIVAL_BINS, SURVIVAL_BINS - 1);
	if (end_ns && level == SURVIVAL_HALVINGS && part == SURVIVAL_BINS - 1)
		*end_ns = UINT64_MAX;
	else if (end_ns)
		*end_ns = time->begin_ns +
			  (uint64_t)(span * (from + width * (part + 1) / SURVIVAL_BINS));
	return level * HALF + part;
}

unsigned survival_begin(const struct survival *survival)
{
	double all = 0, before = 0;
	unsigned part = 0;
	for (unsigned i = 0; i < SURVIVAL_PARTS; i++)
		all += survival->parts[i].bytes;
	while (part < SURVIVAL_PARTS - 1 &&
	       (before += survival->parts[part].bytes) <= all / BEGIN_PART)
		part++;
	return part;
}

void survival_add(struct survival *survival, const struct survival *other)
{
	for (unsigned part = 0; part < SURVIVAL_PARTS; part++)
		sum_part(&survival->parts[part], &other->parts[part]);
}

/* ---- one stretch of the time, in equal bins ---- */

struct stretch {
	struct survival_part bins[SURVIVAL_BINS];
};

/* The time without its first halves, as many as level. */
static struct stretch survival_stretch(const struct survival *survival, unsigned level)
{
	struct stretch out = { 0 };
	for (unsigned part = level * HALF; part < SURVIVAL_PARTS; part++) {
		/* a part of the k-th stretch after this one is a bin of it divided by 2 k times */
		unsigned later = (unsigned)least_of(part / HALF, SURVIVAL_HALVINGS);
		unsigned place = part - later * HALF;
		for (; later > level; later--)
			place = HALF + place / 2;
		sum_part(&out.bins[place], &survival->parts[part]);
	}
	return out;
}

static struct survival_time time_of(const struct survival_time *time, unsigned level)
{
	uint64_t span_ns = subtract_to_zero(time->end_ns, time->begin_ns);
	return (struct survival_time){ .begin_ns = time->end_ns - (span_ns >> level),
				       .end_ns = time->end_ns,
				       .events_ns = time->events_ns };
}

static double bin_s_of(const struct survival_time *time, unsigned level)
{
	struct survival_time stretch = time_of(time, level);
	return (double)(stretch.end_ns - stretch.begin_ns) / 1e9 / SURVIVAL_BINS;
}

static unsigned bin_of(const struct survival_time *time, uint64_t time_ns)
{
	double span = (double)time->end_ns - (double)time->begin_ns, at;
	if (time_ns <= time->begin_ns || !(span > 0))
		return 0;
	at = ((double)time_ns - (double)time->begin_ns) / span * SURVIVAL_BINS;
	return (unsigned)fmin(at, SURVIVAL_BINS - 1);
}

/* Sums over some bins. */
struct sums {
	double bytes, variance, net_bytes, freed_bytes;
	uint64_t count;
	unsigned bins, bins_with_births;
	unsigned pairs, pairs_with_births; /* of bins */
};

static struct sums sums_of(const struct stretch *site, unsigned from, unsigned to)
{
	struct sums sums = { .bins = to - from };
	for (unsigned bin = from; bin < to; bin++) {
		bool is_second = (bin - from) % 2, is_born = site->bins[bin].count;
		sums.pairs += !is_second;
		sums.pairs_with_births += is_second ? is_born && !site->bins[bin - 1].count
						    : is_born;
		sums.bytes += site->bins[bin].bytes;
		sums.variance += site->bins[bin].variance;
		sums.net_bytes += site->bins[bin].net_bytes;
		sums.freed_bytes += site->bins[bin].freed_bytes;
		sums.count += site->bins[bin].count;
		sums.bins_with_births += site->bins[bin].count > 0;
	}
	return sums;
}

/* Start-up is left out, and what came before the site's first live block. */
static unsigned first_bin(const struct stretch *site)
{
	unsigned bin = START_BINS;
	while (bin < SURVIVAL_BINS && !site->bins[bin].count)
		bin++;
	return bin;
}

/* Of a stretch that begins late: where all but a little of the site begins. */
static unsigned begin_bin(const struct stretch *site)
{
	double all = sums_of(site, 0, SURVIVAL_BINS).bytes;
	unsigned bin = 0;
	while (bin < SURVIVAL_BINS && sums_of(site, 0, bin + 1).bytes <= all / BEGIN_PART)
		bin++;
	return bin;
}

/* A program that ends may need a while for it: bins at the end in which nothing happened at all. */
static unsigned last_bin(const struct stretch *site, const struct stretch *total, unsigned from)
{
	unsigned to = SURVIVAL_BINS, most = (unsigned)least_of(END_BINS, (to - from) / 4);
	while (to > SURVIVAL_BINS - most && !site->bins[to - 1].count &&
	       !(fabs(total->bins[to - 1].net_bytes) > 0))
		to--;
	return to;
}

/*
 * At a limit the kernel looks for pages in vain before it ends a program, which hardly runs
 * meanwhile: no time of its work, up to a second. Whoever hardly ran for longer stood.
 */
static unsigned leave_out_stall(const struct stretch *site, const struct stretch *total,
				unsigned from, unsigned to, double bin_s)
{
	double little = sums_of(site, from, to).bytes / (to - from) / STALL_PART;
	unsigned last = to;
	while (last > from + WORKING_LEAST && site->bins[last - 1].bytes <= little &&
	       fabs(total->bins[last - 1].net_bytes) <= little &&
	       total->bins[last - 1].freed_bytes <= little)
		last--;
	return (to - last) * bin_s <= STALL_S ? last : to;
}

/*
 * A program waits at times, for a processor or for an answer, and nothing comes or goes. Where
 * memory ran out, such bins before the site's last birth are no time of its work. Returns the new
 * end; that of the recording, where too few would remain.
 */
static unsigned leave_out_idle(struct stretch *site, struct stretch *total, unsigned from,
			       unsigned to)
{
	struct stretch work = *site, all = *total;
	double little = sums_of(total, from, to).freed_bytes / (to - from) / IDLE_PART;
	unsigned end = from, last = to;
	while (last > from && !site->bins[last - 1].count)
		last--;
	for (unsigned bin = from; bin < to; bin++) {
		if (bin < last && !site->bins[bin].count && total->bins[bin].freed_bytes <= little)
			continue;
		work.bins[end] = site->bins[bin];
		all.bins[end++] = total->bins[bin];
	}
	if (end - from < WORKING_LEAST)
		return to;
	*site = work;
	*total = all;
	return end;
}

struct thirds { struct sums first, middle, last, all; };

static struct thirds thirds_of(const struct stretch *site, unsigned from, unsigned to)
{
	unsigned third = (to - from) / 3;
	return (struct thirds){
		sums_of(site, from, from + third),
		sums_of(site, from + third, to - third),
		sums_of(site, to - third, to),
		sums_of(site, from, to)
	};
}

/*
 * Blocks were born all along, and enough of them to tell. Where memory ran out, the work may have
 * had few turns, and a turn may be longer than a bin: then pairs of bins count.
 */
static bool is_made_all_along(const struct thirds *thirds, bool is_failure)
{
	const struct sums *parts[] = { &thirds->first, &thirds->middle, &thirds->last };
	const struct sums *all = &thirds->all;
	bool is_exact = is_failure && !(all->variance > 0);
	if ((all->count < BLOCKS_LEAST && !is_exact) || all->bytes < GROWN_LEAST_BYTES)
		return false;
	for (unsigned i = 0; i < 3; i++)
		if (parts[i]->count < BLOCKS_THIRD ||
		    (is_failure ? parts[i]->pairs_with_births * 2 < parts[i]->pairs
				: parts[i]->bins_with_births * 2 < parts[i]->bins))
			return false;
	return is_failure ? all->pairs_with_births * 3 >= all->pairs * 2
			  : all->bins_with_births * 3 >= all->bins * 2;
}

/* Of what went before, the last third has `share` as much time, or work. */
static bool is_in_proportion(const struct thirds *thirds, double share, double sigmas)
{
	const struct sums *first = &thirds->first, *middle = &thirds->middle, *last = &thirds->last;
	double before = (first->bytes + middle->bytes) * share;
	double variance = last->variance +
			  (first->variance + middle->variance) * share * share / 16;
	return last->bytes >= before / 2 && last->bytes - before / 4 >= sigmas * sqrt(variance);
}

/*
 * A cache that fills rises less and less. Close to a limit of memory a program is slowed down,
 * since the kernel looks for pages that it can take. So where memory ran out, the rise may keep
 * pace with the work instead, which is what all call sites freed. Nor is there as much to be sure
 * of there: what still rose has to be limited, a cache as well.
 */
static bool keeps_its_pace(const struct thirds *thirds, const struct thirds *total,
			   bool is_failure)
{
	double before = total->first.freed_bytes + total->middle.freed_bytes;
	double sigmas = is_failure ? SIGMAS_FAILURE : SIGMAS;
	if (is_in_proportion(thirds,
			     (double)thirds->last.bins /
				     (thirds->first.bins + thirds->middle.bins),
			     sigmas))
		return true;
	return is_failure && before * WORK_PART >= thirds->all.bytes &&
	       is_in_proportion(thirds, total->last.freed_bytes / before, sigmas);
}

/* After which bin of these the site held least; what it held at the beginning, from - 1, counts. */
static unsigned low_point(const struct stretch *site, unsigned from, unsigned to)
{
	double level = 0, least = 0;
	unsigned at = from;
	for (unsigned bin = from; bin < to; bin++) {
		level += site->bins[bin].net_bytes;
		if (level < least) {
			least = level;
			at = bin + 1;
		}
	}
	return at;
}

/*
 * Old blocks are not freed: of what was added from one low point to another, the lowest of the
 * middle third and of the last, less than half was freed again at this call site, and less than
 * three quarters by all together. What a turn needs and frees is in no low point. Judged where
 * events were kept.
 */
static bool keeps_its_old(const struct stretch *site, const struct stretch *total,
			  const struct survival_time *time, unsigned from, unsigned to)
{
	unsigned third = (to - from) / 3, begin = from + third, middle = to - third;
	unsigned kept = bin_of(time, time->events_ns), end;
	struct sums sums;
	if (time->events_ns > time->begin_ns && kept + 1 > begin) {
		begin = kept + 1; /* the first whole bin */
		middle = (unsigned)most_of(middle, (begin + to) / 2);
	}
	begin = low_point(site, begin, middle);
	end = low_point(site, middle, to);
	if (end <= begin || !(sums_of(site, begin, end).bytes > 0))
		end = to; /* it waited between them */
	if (begin >= end)
		return false;
	sums = sums_of(site, begin, end);
	return sums.bytes > 0 && sums.net_bytes >= sums.bytes / 2 &&
	       sums_of(total, begin, end).net_bytes >= sums.bytes / 4;
}

/* An hour at the same pace. */
static bool is_lasting(const struct thirds *thirds, double span_s)
{
	const struct sums *first = &thirds->first, *last = &thirds->last;
	return span_s >= LASTING_S && last->bytes >= first->bytes * 3 / 4 &&
	       last->bytes - first->bytes / 2 >=
		       SIGMAS * sqrt(last->variance + first->variance / 4);
}

/* From one bin of a stretch to its end. */
static struct survival_growth judge_from(const struct stretch *site, const struct stretch *total,
					 const struct survival_time *time, unsigned from,
					 unsigned latest, bool is_failure)
{
	struct survival_growth out = { SURVIVAL_NOTHING, NAN, NAN, NAN, NAN };
	struct stretch work = *site, work_of_all = *total;
	unsigned to = last_bin(site, total, from), end;
	double bin_s = bin_s_of(time, 0), span_s, half;
	double least_s = time->span_least_s > 0 ? time->span_least_s : SURVIVAL_SPAN_S;
	struct thirds thirds, all;

	if (is_failure && from <= latest)
		to = leave_out_stall(site, total, from, to, bin_s);
	end = to;
	span_s = bin_s * ((double)to - from);
	if (from > latest || bin_s < BIN_LEAST_S || (!is_failure && span_s < least_s))
		return out;
	if (is_failure)
		end = leave_out_idle(&work, &work_of_all, from, to);
	thirds = thirds_of(&work, from, end);
	all = thirds_of(&work_of_all, from, end);
	if (!is_made_all_along(&thirds, is_failure) || !keeps_its_pace(&thirds, &all, is_failure) ||
	    !keeps_its_old(site, total, time, from, to))
		return out;
	out.verdict = is_lasting(&thirds, span_s) ? SURVIVAL_LASTING : SURVIVAL_GROWING;
	half = SIGMAS_95 * sqrt(thirds.all.variance) / span_s;
	out.bytes_per_s = thirds.all.bytes / span_s;
	out.low = out.bytes_per_s - half;
	out.high = out.bytes_per_s + half;
	out.pace = thirds.last.bytes / thirds.middle.bytes * thirds.middle.bins /
		   thirds.last.bins;
	return out;
}

/* Start-up dominates the life of some programs: their work is what is judged. */
struct survival_growth survival_judge(const struct survival *survival, const struct survival *total,
				      const struct survival_time *time, bool is_failure)
{
	struct stretch site = survival_stretch(survival, 0), all = survival_stretch(total, 0);
	struct survival_growth out = judge_from(&site, &all, time, first_bin(&site),
						 LATEST_BIN, is_failure);
	unsigned from = begin_bin(&site), level = 0;
	struct survival_time late;

	if (!is_failure || out.verdict != SURVIVAL_NOTHING)
		return out;
	while (from > LATEST_BIN && level < SURVIVAL_HALVINGS &&
	       bin_s_of(time, level + 1) >= BIN_LEAST_S) {
		level++;
		site = survival_stretch(survival, level);
		all = survival_stretch(total, level);
		from = begin_bin(&site);
	}
	if (!level && from < START_BINS)
		return out;
	late = time_of(time, level);
	return judge_from(&site, &all, &late, from, LATEST_BIN_LAST, true);
}
