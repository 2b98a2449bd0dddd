/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arithmetic on quantities that may be unknown (CUF_UNKNOWN), and comparisons for qsort.
 *
 * Contract: pure. Functions that do not name the unknown treat it as the largest number, so a
 * caller checks for it first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "interpose/abi/format.h"

static inline bool is_known(uint64_t number) { return number != CUF_UNKNOWN; }

/* For sums of rows of which some may be unknown. */
static inline uint64_t known_or_zero(uint64_t number)
{
	if (number == CUF_UNKNOWN)
		return 0;
	return number;
}

static inline uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The greatest that divides both; the other one where one is 0. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* a - b, but not below 0. */
static inline uint64_t subtract_to_zero(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Up to a multiple of unit, which is not 0; a number above the last multiple goes down to that. */
static inline uint64_t round_up_to(uint64_t number, uint64_t unit)
{
	uint64_t rest = number % unit, up;

	if (!rest || __builtin_add_overflow(number, unit - rest, &up))
		return number - rest;
	return up;
}

/* An unsigned size for signed arithmetic, cut at `most`, which is not negative. */
static inline int64_t signed_up_to(uint64_t number, int64_t most)
{
	return (int64_t)least_of(number, (uint64_t)most);
}

/* part / whole; 0 for an empty whole, so that a caller need not check. */
static inline double ratio_or_zero(double part, double whole)
{
	if (whole > 0)
		return part / whole;
	return 0;
}

/* -1, 0 or 1, as qsort's comparison returns it for an ascending order. */
static inline int compare_numbers(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

/* A comparison for qsort and bsearch over uint64_t, ascending. */
static inline int compare_uint64(const void *a, const void *b)
{
	return compare_numbers(*(const uint64_t *)a, *(const uint64_t *)b);
}
static inline int largest_number_first(const void *a, const void *b)
{
	return compare_numbers(*(const uint64_t *)b, *(const uint64_t *)a);
}
