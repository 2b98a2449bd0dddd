/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests, with the state of memory at that moment. Contract: the thread is entered; scratch memory is mapped
 * once, on the first failure, and used by one thread at a time (another one's snapshot then lacks holes and sites).
 */
#ifndef CUF_INCIDENT_H
#define CUF_INCIDENT_H

#include <stdbool.h>
#include "interpose/abi/format.h"
#include "interpose/incident/request.h"

/* Fills a new incident; its number is stored (and so the incident readable) by publish alone. NULL: no recording. */
struct cuf_incident *cuf_incident_open(const struct cuf_block *wanted, uint32_t result, bool unsized, const struct cuf_driver_view *view);
uint64_t cuf_incident_number(const struct cuf_incident *incident);
void cuf_incident_publish(struct cuf_incident *incident);

/* A request succeeded: it may resolve the last incident, of the same thread, or of another one that it outlived for long. */
void cuf_incident_success(uint32_t tid, const struct cuf_request *request, uint64_t seq, uint64_t now_ns);

/* The last incident when nothing resolved it, else NULL. */
const struct cuf_incident *cuf_incident_unresolved(void);

#endif
