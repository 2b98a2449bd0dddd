/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of phases, requests and marks as small numbers: each is written into META once. Contract: no lock, no allocation,
 * errno untouched; the caller is entered (thread.h). Names are cut at CUF_PHASE_NAME_BYTES. When half of the table is in
 * use, a run of digits in a new name is taken for "#", so that a name for each iteration does not fill it.
 */
#ifndef CUF_PHASE_NAMES_H
#define CUF_PHASE_NAMES_H

#include <stddef.h>
#include <stdint.h>
#include "interpose/incident/request.h"

/* The number of "domain: text", or of text alone when there is no domain. 0: no room (counted as CUF_LOST_CODES). */
uint32_t cuf_phase_name(const char *domain, size_t domain_bytes, const char *text, size_t bytes);
/* Adds what META calls this number, shortened to one line's worth; nothing when it has no name. For cold paths: it searches. */
struct cuf_text;
void cuf_phase_name_add(struct cuf_text *text, uint32_t id);

#endif
