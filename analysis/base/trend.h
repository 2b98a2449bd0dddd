/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of growth, on a short series of floors: no recordings, no allocation. Contract: count is at most
 * TREND_MAX; x ascends; results are NAN where the series cannot say.
 */
#ifndef ANALYSIS_BASE_TREND_H
#define ANALYSIS_BASE_TREND_H

#include <stddef.h>

#define TREND_MAX 64

enum fact_shape {
	SHAPE_NONE,
	SHAPE_LINEAR,
	SHAPE_GEOMETRIC,
	SHAPE_QUADRATIC,
	SHAPE_PLATEAU,
	SHAPE_MAX
};
extern const char *const shape_names[SHAPE_MAX]; /* "" linear geometric quadratic plateau */

/* Theil-Sen: the median slope of all pairs, with its 95 % interval by Kendall's variance; up to a quarter of the points
 * may be wild without moving it. */
struct trend_slope { double slope, low, high; };
struct trend_slope trend_slope(const double *x, const double *y, size_t count);
/* The same over pairs a whole number of x apart, where there are any: a step that comes once in each unit of x is then
 * told to the byte. */
struct trend_slope trend_slope_whole(const double *x, const double *y, size_t count);

/* How the series rises, step by step of its own (levels that repeat are one): which of a line, a parabola and an exponential
 * explains it best; plateau when its last half adds less than a tenth. SHAPE_NONE when it does not rise. */
enum fact_shape trend_shape(const double *y, size_t count);

/* Rises and falls from point to point. */
struct trend_steps {
	size_t ups, quarters_with_ups;
	double rise, fall, rise_first_half, rise_second_half;
};
struct trend_steps trend_steps(const double *y, size_t count);

#endif
