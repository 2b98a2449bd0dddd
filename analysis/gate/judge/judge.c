/* SPDX-License-Identifier: Apache-2.0 */
/* Compares bounds with limits. */
#include "analysis/gate/judge/judge.h"

#include <math.h>
#include "analysis/base/numbers.h"

/* A sum that would wrap is no limit at all, which CUF_UNKNOWN - 1 is for all purposes. */
static uint64_t raised(uint64_t value, double by)
{
	double sum = (double)value + by;

	if (sum >= (double)(CUF_UNKNOWN / 2))
		return CUF_UNKNOWN - 1;
	return value + (uint64_t)floor(by);
}

uint64_t judge_allowed(const struct gate_limit *limit, const struct gate_spread *baseline)
{
	uint64_t allowed;

	if (!limit->relative)
		return limit->value;
	if (!baseline->runs)
		return CUF_UNKNOWN;
	allowed = raised(baseline->median, (double)baseline->median * limit->percent / 100);
	allowed = most_of(allowed, raised(baseline->median, (double)limit->value));
	allowed = most_of(allowed, baseline->most);
	return most_of(allowed, raised(baseline->median, JUDGE_DEVIATIONS * JUDGE_SIGMA_OF_MAD *
								 (double)baseline->mad));
}

/* Bounds on one side of a limit: ok, exceeded, or it lies between them. */
static enum gate_status between(bool exceeded, bool ok)
{
	if (exceeded)
		return GATE_EXCEEDED;
	return ok ? GATE_OK : GATE_INCONCLUSIVE;
}

enum gate_status judge(const struct gate_limit *limit, const struct gate_value *value,
		       uint64_t allowed)
{
	bool bounded = value->high != CUF_UNKNOWN;
	enum gate_status status = GATE_INCONCLUSIVE;

	if (allowed == CUF_UNKNOWN)
		return GATE_INCONCLUSIVE;
	switch (limit->operator) {
	case GATE_AT_MOST:
		status = between(value->low > allowed, bounded && value->high <= allowed);
		break;
	case GATE_BELOW:
		status = between(value->low >= allowed, bounded && value->high < allowed);
		break;
	case GATE_AT_LEAST:
		status = between(bounded && value->high < allowed,
				 value->value != CUF_UNKNOWN && value->low >= allowed);
		break;
	case GATE_EQUAL:
		status = between(value->low > allowed || (bounded && value->high < allowed),
				 bounded && value->low == value->high);
		break;
	}
	/* what was not proven does not trip it; but what a baseline knew must still be known */
	if (status == GATE_INCONCLUSIVE && limit->proofs_only && (bounded || !limit->relative))
		return GATE_OK;
	return status;
}
