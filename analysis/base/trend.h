/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slope and shape of a short series of minima over time; knows no recording, allocates nothing.
 *
 * Contract: count is at most TREND_MAX and x ascends. A result that the series does not determine
 * is NAN.
 */
#pragma once

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

/* Theil-Sen: the median slope of all pairs with its 95 % interval. Up to a quarter of the points
 * may be outliers without moving it. */
struct trend_slope {
	double slope, low, high;
};
struct trend_slope trend_slope(const double *x, const double *y, size_t count);
/* The same over pairs a whole number of x apart, where there are any. A step that comes once in
 * each unit of x then has its exact size. */
struct trend_slope trend_slope_whole(const double *x, const double *y, size_t count);

/* Whether a line, a parabola or an exponential explains the rise best. Values that repeat count as
 * one step. SHAPE_PLATEAU: the second half adds less than a tenth. SHAPE_NONE: the series does not
 * rise. */
enum fact_shape trend_shape(const double *y, size_t count);

/* Sums of the rises and falls from point to point. */
struct trend_steps {
	size_t ups, quarters_with_ups;
	double rise, fall, rise_first_half, rise_second_half;
};
struct trend_steps trend_steps(const double *y, size_t count);
