/* SPDX-License-Identifier: Apache-2.0 */
/* What phases and requests of one name needed, or left behind: the most of any of them. */
#include "analysis/gate/take/measured.h"

#include <string.h>
#include "analysis/facts/facts.h"
#include "analysis/gate/phase_use.h"

static const struct gate_value unknown = { CUF_UNKNOWN, 0, CUF_UNKNOWN, "no phase has this name" };

/* An estimate has no upper bound here, and proves nothing. */
static struct gate_value value_of(const struct phase_amount *amount, bool at_end)
{
	uint64_t bytes = amount->need_bytes;

	if (amount->basis == BASIS_NONE)
		return (struct gate_value){ CUF_UNKNOWN, 0, CUF_UNKNOWN, amount->why };
	if (at_end)
		bytes = amount->stay_bytes > 0 ? (uint64_t)amount->stay_bytes : 0;
	if (amount->basis != BASIS_OBSERVED)
		return (struct gate_value){ bytes, 0, CUF_UNKNOWN,
					    "host memory was sampled; record with --host=full" };
	return (struct gate_value){ bytes, bytes, bytes, "" };
}

/* The larger of both; what is unknown leaves no upper bound. */
static void take_more(struct gate_value *most, const struct gate_value *value)
{
	bool bounded = most->high != CUF_UNKNOWN && value->high != CUF_UNKNOWN;

	if (value->value != CUF_UNKNOWN && value->value > most->value)
		most->value = value->value;
	if (value->low > most->low)
		most->low = value->low;
	if (!bounded)
		most->high = CUF_UNKNOWN;
	else if (value->high > most->high)
		most->high = value->high;
	if (*value->why)
		most->why = value->why;
}

struct gate_value measure_phase(const struct measured *measured, enum gate_group group,
				bool at_end, const char *phase)
{
	struct gate_value most = unknown;
	struct phase_uses uses;
	struct run run = { 0 };
	bool any = false;

	if (run_open_number(&run, measured->facts->path, measured->facts->run_number, NULL)) {
		run_fini(&run);
		return most;
	}
	phase_uses_read(&uses, &run, 0, false);
	for (size_t i = 0; i < uses.count; i++) {
		struct gate_value value;
		if (strcmp(uses.items[i].name, phase) != 0)
			continue;
		value = value_of(&uses.items[i].amounts[group], at_end);
		if (!any)
			most = (struct gate_value){ .why = "" };
		any = true;
		take_more(&most, &value);
	}
	phase_uses_free(&uses);
	run_fini(&run);
	return most;
}
