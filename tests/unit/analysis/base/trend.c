/* SPDX-License-Identifier: Apache-2.0 */
/* Slopes and shapes of series of points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include "analysis/base/trend.h"

static void test_trend__slope_survives_wild_points(void **state)
{
	double x[40], y[40];
	struct trend_slope s;
	for (int i = 0; i < 40; i++) {
		x[i] = i;
		y[i] = 100 + 7 * i + (i % 5 == 0 ? 10000 : 0);
	}
	s = trend_slope(x, y, 40);
	assert_true(fabs(s.slope - 7) < 0.5);
	assert_true(isnan(trend_slope(x, y, 1).slope));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The figures by their definition: all slopes, sorted. Levels repeat, so that many slopes are
 * equal. */
static void test_trend__slopes_are_those_of_all_pairs_sorted(void **state)
{
	double x[TREND_MAX], y[TREND_MAX], slopes[TREND_MAX * TREND_MAX];
	uint64_t seed = 88172645463325252u;
	for (int round = 0; round < 2000; round++) {
		size_t count = 2 + (size_t)round % (TREND_MAX - 1), pairs = 0, low;
		for (size_t i = 0; i < count; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			x[i] = (i ? x[i - 1] : 0) + (double)(seed >> 62);
			y[i] = (double)(seed >> 40) / (1 << round % 24);
			y[i] = floor(y[i] / (1 << round % 9));
		}
		for (size_t i = 0; i < count; i++)
			for (size_t j = i + 1; j < count; j++)
				if (x[j] > x[i])
					slopes[pairs++] = (y[j] - y[i]) / (x[j] - x[i]);
		struct trend_slope s = trend_slope(x, y, count);
		if (!pairs) {
			assert_true(isnan(s.slope));
			continue;
		}
		qsort(slopes, pairs, sizeof *slopes, by_value);
		double n = (double)count, reach = 1.96 * sqrt(n * (n - 1) * (2 * n + 5) / 18);
		low = (double)pairs > reach ? (size_t)(((double)pairs - reach) / 2) : 0;
		assert_true(s.slope == (slopes[(pairs - 1) / 2] + slopes[pairs / 2]) / 2);
		assert_true(s.low == slopes[low]);
		assert_true(s.high == slopes[pairs - 1 - low]);
	}
}

static void test_trend__shapes(void **state)
{
	double line[50], parabola[50], late[50], uneven[50], power[50], plateau[50], flat[50];
	for (int i = 0; i < 50; i++) {
		/* the first steps fell into one window */
		late[i] = i < 5 ? 0 : (i + 8) * (i + 9) / 2;
		uneven[i] = 7 * floor(sqrt(i));                /* equal steps, ever rarer */
		line[i] = 10 + 3 * i;
		parabola[i] = 10 + 3 * i * i;
		power[i] = 10 * pow(1.15, i);
		plateau[i] = i < 20 ? 5 * i : 100;
		flat[i] = 8;
	}
	assert_int_equal(trend_shape(line, 50), SHAPE_LINEAR);
	assert_int_equal(trend_shape(parabola, 50), SHAPE_QUADRATIC);
	assert_int_equal(trend_shape(late, 50), SHAPE_QUADRATIC);
	assert_int_equal(trend_shape(uneven, 50), SHAPE_LINEAR);
	assert_int_equal(trend_shape(power, 50), SHAPE_GEOMETRIC);
	assert_int_equal(trend_shape(plateau, 50), SHAPE_PLATEAU);
	assert_int_equal(trend_shape(flat, 50), SHAPE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trend__slope_survives_wild_points),
		cmocka_unit_test(test_trend__slopes_are_those_of_all_pairs_sorted),
		cmocka_unit_test(test_trend__shapes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
