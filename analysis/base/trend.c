/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of at most 64 points: every pair is affordable, so nothing here is incremental. */
#include "analysis/base/trend.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

const char *const shape_names[SHAPE_MAX] = {
	"", "linear", "geometric", "quadratic", "plateau"
};

/* The value that sorting would put at `rank` (quickselect). Afterwards no value before it is larger
 * and no value behind it is smaller. */
static double ranked(double *values, size_t count, size_t rank)
{
	size_t first = 0, last = count - 1;
	while (first < last) {
		double pivot = values[first + (last - first) / 2];
		size_t up = first, down = last;
		for (;; up++, down--) {
			while (values[up] < pivot)
				up++;
			while (values[down] > pivot)
				down--;
			if (up >= down)
				break;
			double swapped = values[up];
			values[up] = values[down];
			values[down] = swapped;
		}
		if (rank <= down)
			last = down;
		else
			first = down + 1;
	}
	return values[rank];
}

static bool is_integer(double difference) { return fabs(difference - round(difference)) < 1e-6; }

/* The median of the slopes of all pairs. The interval is that of the ranks that Kendall's statistic
 * reaches in 95 of 100 random orders. whole: only pairs a whole number of x apart. */
static struct trend_slope slope_of(const double *x, const double *y, size_t count, bool whole)
{
	struct trend_slope slope = { NAN, NAN, NAN };
	double slopes[TREND_MAX * (TREND_MAX - 1) / 2], middle, reach, n = (double)count;
	size_t pairs = 0, low, half;
	for (size_t i = 0; i < count && count <= TREND_MAX; i++)
		for (size_t j = i + 1; j < count; j++)
			if (x[j] > x[i] && (!whole || is_integer(x[j] - x[i])))
				slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
	if (!pairs)
		return slope;
	half = pairs / 2;
	middle = ranked(slopes, pairs, half);
	if (pairs % 2 == 0)
		middle = (ranked(slopes, half, half - 1) + middle) / 2;
	/* above 1, so that low is below half */
	reach = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18);
	low = (size_t)(fmax(0, (double)pairs - reach) / 2);
	slope = (struct trend_slope){ .slope = middle, .low = middle };
	if (low < half)
		slope.low = ranked(slopes, half, low);
	slope.high = ranked(slopes + half, pairs - half, pairs - 1 - low - half);
	return slope;
}

struct trend_slope trend_slope(const double *x, const double *y, size_t count)
{
	return slope_of(x, y, count, false);
}

struct trend_slope trend_slope_whole(const double *x, const double *y, size_t count)
{
	struct trend_slope whole = slope_of(x, y, count, true);

	if (isnan(whole.slope))
		return slope_of(x, y, count, false);
	return whole;
}

#define BEND_LEAST 0.3 /* share of the whole rise; of a parabola from its start 1, of a line 0 */

/* The share of y's variance that a straight line over x explains. */
static double explained(const double *x, const double *y, size_t count)
{
	double n = (double)count, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
	for (size_t i = 0; i < count; i++) {
		sx += x[i];
		sy += y[i];
		sxx += x[i] * x[i];
		syy += y[i] * y[i];
		sxy += x[i] * y[i];
	}
	double vx = sxx - sx * sx / n, vy = syy - sy * sy / n, c = sxy - sx * sy / n;
	if (!(vx > 0 && vy > 0)) /* NaN, too */
		return 0;
	return c * c / (vx * vy);
}

/* What a parabola over equal steps explains beyond the line. *bend is its curved part as a share of
 * the whole rise. */
static double explained_bend(const double *x, const double *y, size_t count, double *bend)
{
	double middle = (double)(count - 1) / 2, spread = ((double)count * (double)count - 1) / 12,
	       mean = 0, all = 0, product = 0, norm = 0;
	for (size_t i = 0; i < count; i++)
		mean += y[i] / (double)count;
	for (size_t i = 0; i < count; i++) {
		double p = (x[i] - middle) * (x[i] - middle) - spread;
		product += y[i] * p;
		norm += p * p;
		all += (y[i] - mean) * (y[i] - mean);
	}
	*bend = product / norm * (double)(count - 1) * (double)(count - 1) / (y[count - 1] - y[0]);
	return product * product / norm / all;
}

/* The levels of a series, each once. The first window may span several steps, then it is left
 * out. */
static size_t levels_of(const double *y, size_t count, double *levels)
{
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (!i || y[i] != levels[kept - 1])
			levels[kept++] = y[i];
	if (kept > 5 && levels[1] - levels[0] > 2 * (levels[2] - levels[1]))
		memmove(levels, levels + 1, --kept * sizeof *levels);
	return kept;
}

enum fact_shape trend_shape(const double *y, size_t count)
{
	double levels[TREND_MAX], steps_done[TREND_MAX], logs[TREND_MAX], line, parabola, bend,
		exponential = 0;
	struct trend_steps steps;
	size_t kept;
	for (; count > 4 && y[1] <= y[0]; y++, count--)
		; /* the shape is that of the growth, without the time before it */
	if (count < 4 || count > TREND_MAX || !(y[count - 1] > y[0]))
		return SHAPE_NONE;
	steps = trend_steps(y, count);
	if (steps.rise_second_half < steps.rise / 10)
		return SHAPE_PLATEAU;
	/* Over the steps of the series instead of over time: work takes longer as it grows, and
	 * cycles are found at changing scales. */
	kept = levels_of(y, count, levels);
	if (kept < 4 || !(levels[kept - 1] > levels[0]))
		return SHAPE_LINEAR;
	for (size_t i = 0; i < kept; i++) {
		steps_done[i] = (double)i;
		logs[i] = log(levels[i]);
	}
	line = explained(steps_done, levels, kept);
	parabola = line + explained_bend(steps_done, levels, kept, &bend);
	if (levels[0] > 0)
		exponential = explained(steps_done, logs, kept);
	if (bend < BEND_LEAST || (parabola < line + 0.005 && exponential < line + 0.005))
		return SHAPE_LINEAR;
	if (exponential > parabola)
		return SHAPE_GEOMETRIC;
	return SHAPE_QUADRATIC;
}

struct trend_steps trend_steps(const double *y, size_t count)
{
	struct trend_steps steps = { 0 };
	unsigned seen = 0;
	for (size_t i = 1; i < count; i++) {
		double step = y[i] - y[i - 1];
		if (step > 0) {
			steps.ups++;
			steps.rise += step;
			seen |= 1u << (i - 1) * 4 / (count - 1);
		} else {
			steps.fall -= step;
		}
		if (2 * i < count)
			steps.rise_first_half += step;
		else
			steps.rise_second_half += step;
	}
	steps.quarters_with_ups = (size_t)__builtin_popcount(seen);
	return steps;
}
