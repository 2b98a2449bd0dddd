/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gate can judge: one table of measures, with the name that people type, and the value that
 * a run has of each.
 *
 * Contract: plain data, no printing. Bytes are requested sizes. A value has bounds: the true
 * figure is at least `low` and at most `high`. An observed value has both equal to it. `high`
 * CUF_UNKNOWN: no upper bound is known, for example because events were overwritten. A value that
 * is not known at all has `value` CUF_UNKNOWN and `low` 0. Unknown is never 0. Of several
 * processes a value is the sum of what each one reached.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/base/units.h"
#include "analysis/recording/fact_types.h"
#include "analysis/replay/live_peaks.h"

enum gate_unit { GATE_BYTES, GATE_COUNT };

/* The groups of live memory that have a peak, an end and call sites. PYTHON is the part of HOST
 * that Python code allocated; FRAMEWORK is inside DEVICE. */
enum gate_group {
	GROUP_DEVICE = LIVE_DEVICE,
	GROUP_PINNED = LIVE_PINNED,
	GROUP_MANAGED = LIVE_MANAGED,
	GROUP_FRAMEWORK = LIVE_FRAMEWORK,
	GROUP_HOST = LIVE_GROUPS,
	GROUP_PYTHON,
	GROUP_MAX
};
extern const char *const gate_group_names[GROUP_MAX]; /* device pinned managed framework ... */

/* peaks and ends are in the order of enum gate_group */
enum gate_measure_id {
	MEASURE_DEVICE_PEAK,
	MEASURE_PINNED_PEAK,
	MEASURE_MANAGED_PEAK,
	MEASURE_FRAMEWORK_PEAK,
	MEASURE_HOST_PEAK,
	MEASURE_PYTHON_PEAK,
	MEASURE_DEVICE_END,
	MEASURE_PINNED_END,
	MEASURE_MANAGED_END,
	MEASURE_FRAMEWORK_END,
	MEASURE_HOST_END,
	MEASURE_PYTHON_END,
	MEASURE_DEVICE_LEAK,
	MEASURE_HOST_LEAK,
	MEASURE_REQUEST_GROWTH,
	MEASURE_DEVICE_UNUSED,
	MEASURE_DEVICE_HOLE,
	MEASURE_INCIDENTS_FATAL,
	MEASURE_INCIDENTS_RECOVERED,
	MEASURE_DEVICE_ALLOCATIONS,
	MEASURE_HOST_ALLOCATIONS,
	MEASURE_MAX
};

struct gate_measure {
	const char *name;       /* as typed: "device.peak" */
	enum gate_unit unit;
	enum gate_group group;  /* whose call sites explain it; GROUP_MAX: none */
	/* what it may exceed a baseline by when no limit is given; percent 0: it is not judged */
	double percent;
	uint64_t floor_bytes;
	const char *noun;       /* for sentences: "peak GPU memory" */
	const char *about;      /* one phrase: how it is taken */
};
extern const struct gate_measure gate_measures[MEASURE_MAX];

/* In the measure's unit, for people. */
struct unit_text gate_amount(const struct gate_measure *measure, uint64_t value);
/* NULL: no such name. */
const struct gate_measure *gate_measure_find(const char *name, size_t length);

struct gate_value {
	uint64_t value;
	uint64_t low, high;
	const char *why; /* a clause: why the bounds differ, or why it is unknown; "" observed */
};
