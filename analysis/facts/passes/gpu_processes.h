/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who else is on a device, as NVML reported: the reading nearest to a moment, shared out among the
 * processes of the run and those that have no recording. Rules: README.md. Contract: rows and names
 * lie in the arena; every figure is hostile and clamped by who sums it.
 */
#pragma once

#include "analysis/facts/passes/passes.h"

/* Sets nvml_bytes of the focus and of the others (question's other_count), and the question's
 * tenants and their basis. incident: the recorder's record of the moment; NULL. */
void gpu_processes_share(const struct facts *facts, uint32_t device,
			 const struct fact_moment *moment, const struct cuf_incident *incident,
			 struct usage *focus, struct usage *others,
			 struct owners_question *question);

/* A sentence for each way in which NVML was asked and did not tell; NULL: none. process: whose
 * recording. */
const char *gpu_processes_refusal(const struct facts *facts, uint32_t process);
