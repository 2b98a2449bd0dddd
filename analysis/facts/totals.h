/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a whole run, over its processes and devices. Contract: pure; as in facts.h. */
#pragma once

#include "analysis/facts/facts.h"

/* From the first start to the last end; 0 where the clock was set back. */
uint64_t facts_duration_ns(const struct facts *facts);
/* The sum of the devices' peaks; CUF_UNKNOWN: no device was used. */
uint64_t facts_device_peak(const struct facts *facts);
/* The largest resident memory of one process; CUF_UNKNOWN: not recorded. */
uint64_t facts_host_peak(const struct facts *facts);
/*
 * Whether the fullest moment of host memory is what a reader asks for: the program ended by itself,
 * nothing failed or leaks, and half of what it held then is gone.
 */
bool facts_ask_for_peak(const struct facts *facts);
