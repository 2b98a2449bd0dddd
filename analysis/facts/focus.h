/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a report is about: the incident, the process, the device, and which memory ran out.
 * Contract: pure; borrowed pointers into facts. What is the cause, and whose, is decided in
 * explain/ and facts/.
 */
#pragma once

#include <stdbool.h>
#include "analysis/facts/cause.h"
#include "analysis/facts/facts.h"

/* The last fatal one; NULL: none. */
const struct fact_incident *focus_incident(const struct facts *facts);
/* The incident's, else the one that the facts name. */
const struct fact_process *focus_process(const struct facts *facts);
/* The incident's, else the one whose recorded peak comes nearest to its size; NULL: no device. */
const struct fact_device *focus_device(const struct facts *facts);
/* Did page-locked host memory run out? The next kernel launch may be what reports it. */
bool focus_is_locked(const struct facts *facts);
/* Did host memory run out, or is there no device to show? */
bool focus_is_host(const struct facts *facts);
