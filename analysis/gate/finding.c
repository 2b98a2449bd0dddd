/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a finding, and the exit status that a result comes to. */
#include "analysis/gate/finding.h"

const char *const gate_status_names[GATE_STATUS_MAX] = {
	"ok", "suppressed", "inconclusive", "exceeded",
};

enum { STATUS_FINE = 0, STATUS_EXCEEDED = 1, STATUS_INCONCLUSIVE = 3 };

int gate_exit_status(const struct gate_result *result)
{
	bool inconclusive = result->inconclusive_count;

	for (size_t i = 0; i < result->finding_count; i++) {
		if (result->findings[i].status == GATE_EXCEEDED)
			return STATUS_EXCEEDED;
		if (result->findings[i].status == GATE_INCONCLUSIVE)
			inconclusive = true;
	}
	return inconclusive ? STATUS_INCONCLUSIVE : STATUS_FINE;
}
