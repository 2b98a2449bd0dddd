/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process of a run a report is about, where no request for memory was fatal.
 *
 * Contract. device_bytes has one entry for each process: what it held of the devices at its end.
 * Returns an index; the run has at least one process. The same run always has the same answer.
 */
#ifndef ANALYSIS_FACTS_PASSES_MAIN_PROCESS_H
#define ANALYSIS_FACTS_PASSES_MAIN_PROCESS_H

#include "analysis/facts/facts.h"

uint32_t main_process(const struct facts *facts, const uint64_t *device_bytes);

#endif
