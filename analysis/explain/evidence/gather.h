/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers the evidence of an incident, or of how a process ended. The steps and their order are in
 * evidence_gather.c; each step is a file of its own and sets signals of its own.
 */
#pragma once

#include "analysis/explain/evidence/evidence.h"

struct event_pass;

/* incident NULL: of how the process ended; device FACT_NONE: of the host only. heard: as for
 * event_pass_for. */
struct evidence evidence_of(const struct facts *facts, uint32_t process, uint32_t device,
			    const struct fact_incident *incident, struct event_pass **heard);
