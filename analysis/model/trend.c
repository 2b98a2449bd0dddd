/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes, shapes and steps of short series. */
#include "analysis/model/trend.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static bool is_whole(double difference) { return fabs(difference - round(difference)) < 1e-6; }

static struct trend_slope slope_of(const double *x, const double *y, size_t count, bool whole)
{
	static const struct trend_slope unknown = { NAN, NAN, NAN };
	double slopes[TREND_MAX * (TREND_MAX - 1) / 2], middle, reach, n = (double)count;
	size_t pairs = 0, low, high;
	for (size_t i = 0; i < count && count <= TREND_MAX; i++)
		for (size_t j = i + 1; j < count; j++)
			if (x[j] > x[i] && (!whole || is_whole(x[j] - x[i])))
				slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
	if (!pairs)
		return unknown;
	qsort(slopes, pairs, sizeof *slopes, by_value);
	middle = pairs % 2 ? slopes[pairs / 2] : (slopes[pairs / 2 - 1] + slopes[pairs / 2]) / 2;
	reach = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18);
	low = (double)pairs > reach ? (size_t)(((double)pairs - reach) / 2) : 0;
	high = pairs - 1 - low;
	return (struct trend_slope){ middle, slopes[low < pairs ? low : pairs - 1], slopes[high < pairs ? high : pairs - 1] };
}

struct trend_slope trend_slope(const double *x, const double *y, size_t count) { return slope_of(x, y, count, false); }

struct trend_slope trend_slope_whole(const double *x, const double *y, size_t count)
{
	struct trend_slope whole = slope_of(x, y, count, true);
	return isnan(whole.slope) ? slope_of(x, y, count, false) : whole;
}

/* Share of y's variance that a straight line over x explains. */
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
	return vx > 0 && vy > 0 ? c * c / (vx * vy) : 0;
}

enum fact_shape trend_shape(const double *x, const double *y, size_t count)
{
	double scaled[TREND_MAX], roots[TREND_MAX], logs[TREND_MAX], line, parabola, exponential = 0;
	struct trend_steps steps;
	if (count < 4 || count > TREND_MAX)
		return SHAPE_NONE;
	steps = trend_steps(y, count);
	if (!(y[count - 1] > y[0]))
		return SHAPE_NONE;
	if (steps.rise_second_half < steps.rise / 10)
		return SHAPE_PLATEAU;
	for (size_t i = 0; i < count; i++) {
		scaled[i] = (x[i] - x[0]) / (x[count - 1] > x[0] ? x[count - 1] - x[0] : 1);
		roots[i] = sqrt(y[i] > y[0] ? y[i] - y[0] : 0);
		logs[i] = y[i] > 0 ? log(y[i]) : NAN;
	}
	line = explained(scaled, y, count);
	parabola = explained(scaled, roots, count);
	if (y[0] > 0)
		exponential = explained(scaled, logs, count);
	if (steps.rise_second_half < 2 * steps.rise_first_half || (parabola < line + 0.02 && exponential < line + 0.02))
		return SHAPE_LINEAR;
	return exponential > parabola ? SHAPE_GEOMETRIC : SHAPE_QUADRATIC;
}

struct trend_steps trend_steps(const double *y, size_t count)
{
	struct trend_steps s = { 0 };
	unsigned seen = 0;
	for (size_t i = 1; i < count; i++) {
		double step = y[i] - y[i - 1];
		if (step > 0) {
			s.ups++;
			s.rise += step;
			seen |= 1u << (i - 1) * 4 / (count - 1);
		} else {
			s.fall -= step;
		}
		*(2 * i < count ? &s.rise_first_half : &s.rise_second_half) += step;
	}
	s.quarters_with_ups = (size_t)__builtin_popcount(seen);
	return s;
}
