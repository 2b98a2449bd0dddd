/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential intervals from a xorshift generator, and the weight of a sample. */
#include "interpose/platform/sampler.h"

#include "interpose/abi/format.h"
#include "interpose/platform/laws.h"

#define LN_2 0.6931471805599453
#define SQRT_2 1.4142135623730951

/*
 * ln(x) for 0 < x <= 1, to 1e-11: x is m * 2^e with m in [1/sqrt2, sqrt2), and ln m is 2
 * atanh((m-1)/(m+1)), whose series has the terms z^(2k+1) / (2k+1).
 */
static double natural_log(double x)
{
	union {
		double value;
		uint64_t bits;
	} m = { x };
	int exponent = (int)(m.bits >> 52 & 0x7ff) - 1023;
	double z, z2, series;

	m.bits = (m.bits & 0xfffffffffffffull) | 0x3ff0000000000000ull;
	if (m.value > SQRT_2) {
		m.value /= 2;
		exponent++;
	}
	z = (m.value - 1) / (m.value + 1);
	z2 = z * z;
	series = 1.0 / 11 + z2 / 13;
	series = 1.0 / 9 + z2 * series;
	series = 1.0 / 7 + z2 * series;
	series = 1.0 / 5 + z2 * series;
	series = 1.0 / 3 + z2 * series;
	series = 1 + z2 * series;
	return 2 * z * series + exponent * LN_2;
}

uint64_t cuf_sample_interval(uint64_t *random, uint64_t mean_bytes)
{
	uint64_t x = *random;
	double uniform;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*random = x;
	uniform = (double)((x >> 11) + 1) * 0x1p-53; /* (0, 1] */
	return (uint64_t)(-natural_log(uniform) * (double)mean_bytes) + 1;
}

uint64_t cuf_sample_weight_bytes(uint64_t bytes, uint64_t mean_bytes)
{
	double x = (double)bytes / (double)mean_bytes, e;

	if (bytes >= CUF_SAMPLE_EXACT_BYTES || x > 30)
		return bytes;
	/* exp(-x) is exp(-x/64)^64, and the inner one is a short series */
	e = -x / 64;
	e = 1 + e * (1 + e / 2 * (1 + e / 3 * (1 + e / 4 * (1 + e / 5))));
	for (unsigned i = 0; i < 6; i++)
		e *= e;
	return (uint64_t)((double)bytes / (1 - e) + 0.5);
}
