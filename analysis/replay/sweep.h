/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over the device and framework events of a process, in order, for all who listen. To
 * decode and to order the events costs more than to look at one, so measurements that need no
 * result of each other share a sweep.
 *
 * Contract: consumers are called in the order of the list, each with every row from the first
 * event on until it returns false. A row is valid during the call. Nothing here interprets events.
 */
#pragma once

#include "analysis/recording/events.h"

enum { SWEEP_ROW = 64 };
struct sweep_row {
	struct cuf_event events[SWEEP_ROW];
	bool is_framework[SWEEP_ROW]; /* of the framework's ring, else of the device ring */
	size_t count;
};

struct sweep_consumer {
	bool (*take)(void *state, const struct sweep_row *row); /* false: it needs no more */
	void *state;
};

/* The list is the caller's; take is NULL in it where a consumer was done before the end. */
void sweep_events(const struct events *events, struct sweep_consumer *consumers, size_t count);
