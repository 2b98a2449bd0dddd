/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failed requests, with the state of memory at that moment. Several attempts at one need are one
 * ladder of incidents, and a later success resolves the last one. Contract: the thread is entered;
 * scratch memory is mapped once, at the first failure, and used by one thread at a time (another
 * one's snapshot lacks free ranges and sites then).
 */
#pragma once

#include <stdbool.h>
#include "interpose/abi/format.h"
#include "interpose/incident/request.h"

/* Fills a new incident. Publish stores its number, which makes it readable. NULL: no recording. */
struct cuf_incident *cuf_incident_open(const struct cuf_block *requested, uint32_t result,
				       bool unsized,
				       const struct cuf_driver_view *view);
/* Of an incident that is not published yet. */
uint64_t cuf_incident_number(const struct cuf_incident *incident);
void cuf_incident_publish(struct cuf_incident *incident);

/*
 * A request succeeded. It may resolve the last incident: of the same thread, or of another one that
 * it outlived by long.
 */
void cuf_incident_success(uint32_t tid, const struct cuf_request *request, uint64_t seq,
			  uint64_t now_ns);

/* A request to page-lock memory of the host. */
static inline bool cuf_is_page_lock(const struct cuf_incident *incident)
{
	return incident->kind == CUF_KIND_PINNED || incident->kind == CUF_KIND_REGISTERED;
}

/* The last incident when nothing resolved it, else NULL. Of a launch that only reports a refused
 * page-lock: that one. */
const struct cuf_incident *cuf_incident_unresolved(void);
