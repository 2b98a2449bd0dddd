/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of evidence_gather.c that set signals, one file each. evidence_trace and
 * evidence_adjust have headers of their own. Contract: each is called once, in the order listed
 * here.
 */
#pragma once

#include "analysis/explain/evidence/evidence.h"

/* What failed, in bytes; CUF_UNKNOWN: it was no request. */
uint64_t evidence_request(const struct facts *facts, const struct fact_incident *incident);
/* Room on the device, gaps, other processes. */
void evidence_device(struct evidence *evidence);
/* Live blocks: families of equal sizes, layers, names on the stacks. */
void evidence_live(struct evidence *evidence);
/* Call sites that only grow. Returns whether most of what they hold is a KV cache. */
bool evidence_growth(struct evidence *evidence);
/* The host: cgroup, resident memory, page-locked memory, allocator. After evidence_growth. */
void evidence_host(struct evidence *evidence);
/* Settings of the command line, and the values that fit. After evidence_adjust. */
void evidence_settings(struct evidence *evidence);
/* What each removal would free. Last. */
void evidence_removals(struct evidence *evidence);
