/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential intervals from a xorshift generator, and the weight of a sample. */
#include "interpose/platform/sampler.h"

#include "interpose/abi/format.h"
#include "interpose/platform/laws.h"

/* ln(x) for 0 < x <= 1: x = m * 2^e with m in [1/sqrt2, sqrt2), and ln m = 2 atanh((m-1)/(m+1)), to 1e-11. */
static double natural_log(double x)
{
	union { double d; uint64_t u; } bits = { x };
	int exponent = (int)(bits.u >> 52 & 0x7ff) - 1023;
	double m, z, z2;
	bits.u = (bits.u & 0xfffffffffffffull) | 0x3ff0000000000000ull;
	m = bits.d;
	if (m > 1.4142135623730951) {
		m /= 2;
		exponent++;
	}
	z = (m - 1) / (m + 1);
	z2 = z * z;
	return 2 * z * (1 + z2 * (1.0 / 3 + z2 * (1.0 / 5 + z2 * (1.0 / 7 + z2 * (1.0 / 9 + z2 * (1.0 / 11 + z2 / 13)))))) + exponent * 0.6931471805599453;
}

uint64_t cuf_sample_interval(uint64_t *random, uint64_t mean_bytes)
{
	uint64_t x = *random;
	double uniform, interval;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*random = x;
	uniform = (double)((x >> 11) + 1) * 0x1p-53; /* (0, 1] */
	interval = -natural_log(uniform) * (double)mean_bytes;
	return (uint64_t)interval + 1;
}

uint64_t cuf_sample_weight_bytes(uint64_t bytes, uint64_t mean_bytes)
{
	double x = (double)bytes / (double)mean_bytes, e;
	if (bytes >= CUF_SAMPLE_EXACT_BYTES || x > 30)
		return bytes;
	/* exp(-x) = exp(-x/64)^64, the inner one by its series */
	e = -x / 64;
	e = 1 + e * (1 + e / 2 * (1 + e / 3 * (1 + e / 4 * (1 + e / 5))));
	for (unsigned i = 0; i < 6; i++)
		e *= e;
	return (uint64_t)((double)bytes / (1 - e) + 0.5);
}
