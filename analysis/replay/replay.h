/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was live at any moment. The ledger holds the state now; events are undone one by one, newest first, back to the
 * moment: an ALLOC by removing its block, a FREE by putting back the block it carries, a RESTORE as a free undone.
 *
 * Contract. replay_at fills *live (liveset_fini by the caller) with the blocks after event `seq`, those of frameworks
 * (kind FRAMEWORK) among them. *exact is false where events between the moment and now are gone from a ring, so that
 * blocks that died in between are missing: a framework's ring wraps much sooner than the driver's. Blocks put back by a
 * FREE whose ALLOC is gone too have the time of their birth to a millisecond, and seq 0. Times are CLOCK_MONOTONIC.
 */
#ifndef ANALYSIS_REPLAY_REPLAY_H
#define ANALYSIS_REPLAY_REPLAY_H

#include "analysis/recording/events.h"
#include "analysis/replay/liveset.h"

/* The ledger section, torn entries left out. */
void replay_now(const struct reader *reader, struct liveset *live);
struct replay_exact { bool device, framework; };
/* seq CUF_UNKNOWN: now. */
void replay_at(const struct reader *reader, const struct events *events, uint64_t seq,
	       struct liveset *live, struct replay_exact *exact);
/* From a set that is of `from` to an earlier moment: only what lies between is undone. False: it cannot, begin from now. */
bool replay_back(const struct events *events, uint64_t from, uint64_t to, struct liveset *live,
		 struct replay_exact *exact);
/* Forward: applies one event. For peaks and time lines, from a set that is right before it. */
void replay_apply(struct liveset *live, const struct cuf_event *event);

/* Does this kind take device memory of its own? MANAGED, pinned and address ranges do not. */
bool kind_is_device_memory(unsigned kind);
/* Is this a block that a program allocates and frees, on device or host? Levels and address ranges are not. */
bool kind_is_block(unsigned kind);

#endif
