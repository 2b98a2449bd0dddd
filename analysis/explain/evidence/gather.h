/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gathers the evidence of an incident, or of how a process ended. The steps and their order are in
 * evidence_gather.c; each step is a file of its own and sets signals of its own.
 */
#pragma once

#include "analysis/explain/evidence/evidence.h"

/* incident NULL: of how the process ended; device FACT_NONE: of the host only. */
struct evidence evidence_of(struct build *build, uint32_t process, uint32_t device,
			    const struct fact_incident *incident);
