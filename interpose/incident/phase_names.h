/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of phases, requests and marks as small numbers. Each is written into META once. Names are
 * cut at CUF_PHASE_NAME_BYTES. When half of the table is in use, a run of digits in a new name
 * becomes "#", so that a name for each iteration does not fill the table.
 *
 * Contract: no lock, no allocation, errno untouched; the thread is entered.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include "interpose/incident/request.h"
#include "interpose/platform/say.h"

/*
 * The number of "domain: text", or of text when there is no domain. 0: the table is full (counted
 * as CUF_LOST_CODES).
 */
uint32_t cuf_phase_name(const char *domain, size_t domain_bytes, const char *text, size_t bytes);

/*
 * Adds the name of this number, shortened to one line's worth; nothing when it has none. For cold
 * paths: it searches META.
 */
void cuf_phase_name_add(struct cuf_text *text, uint32_t id);
