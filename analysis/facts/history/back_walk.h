/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device and framework events of one process, newest first. The ledger is the state after the
 * newest one, so sums that are undone event by event are absolute from the first step on.
 *
 * Contract: events and reader are borrowed. Events that change nothing are passed over.
 */
#pragma once

#include "analysis/recording/events.h"
#include "analysis/facts/history/timeline.h"

struct back_walk {
	const struct events *rings[2];
	size_t left[2], passed;
	struct cuf_event next[2];
	bool have[2];
};

/* is_of_driver: without the events of frameworks. */
void back_walk_begin(struct back_walk *walk, const struct events *events, bool is_of_driver);
/* Allocations, frees and captures. False: the oldest was returned. */
bool back_walk_next(struct back_walk *walk, struct cuf_event *event);

/* +1: the block is live after the event, -1: before it, 0: neither. */
int walk_sign(const struct cuf_event *event);
/* The call site that allocated the block. */
uint32_t walk_site(const struct reader *reader, const struct cuf_event *event);
/* Blocks and levels that pictures show: what a program allocates, and the pools of graphs. */
bool walk_shows(unsigned kind);
enum timeline_layer walk_layer(unsigned kind);
/* Bytes that no sum can overflow with. */
int64_t walk_bytes(uint64_t bytes);
/* CLOCK_MONOTONIC of the oldest event that is left, where older ones were lost; else 0. */
uint64_t walk_first_ns(const struct events *ring);
