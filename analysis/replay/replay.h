/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was live at any moment. The ledger holds the state now. Events are undone one by one,
 * newest first, back to the moment: an ALLOC removes its block, a FREE puts back the block that it
 * carries, a RESTORE is a free undone. Where the block of a FREE was born is found in an index of
 * the events by address, which a sweep or the first such question makes.
 *
 * Contract. replay_at fills *live, which the caller ends with liveset_fini, with the blocks after
 * event `seq`, those of frameworks (kind FRAMEWORK) included. *exact is false where events between
 * the moment and now were overwritten, so blocks that died in between are missing. The ring of a
 * framework wraps much sooner than that of the driver. A block put back by a FREE whose ALLOC was
 * overwritten has its birth to a millisecond and seq 0. Times are CLOCK_MONOTONIC.
 */
#pragma once

#include "analysis/recording/events.h"
#include "analysis/replay/liveset.h"
#include "analysis/replay/sweep.h"

/* The blocks of the ledger section, without torn entries. */
void replay_now(const struct reader *reader, struct liveset *live);
/* Entry i of the ledger section, copied; false: empty, torn, or of an unknown kind. */
bool replay_block(const struct reader *reader, uint64_t i, struct cuf_block *block);
struct replay_exact { bool device, framework; };
/* What is live now, which no event can change. */
void replay_ledger(const struct reader *reader, struct liveset *live, struct replay_exact *exact);
/* seq CUF_UNKNOWN: now. */
void replay_at(const struct reader *reader, struct events *events, uint64_t seq,
	       struct liveset *live, struct replay_exact *exact);
/* The blocks and the events of the reader's own moment, of a recording that is being written.
 * False: they do not sum up to what DEVICES has. */
bool replay_still(const struct reader *reader, const struct events_listener *listener,
		  struct events **events, struct liveset *live, struct replay_exact *exact);
/* Makes these blocks the content of LEDGER. */
void replay_keep_still(struct reader *reader, const struct liveset *live);
/* Takes a set from one moment back to an earlier one. False: that is not possible, use
 * replay_at. */
bool replay_back(struct events *events, uint64_t from, uint64_t to, struct liveset *live,
		 struct replay_exact *exact);

/* Makes the index by address in a sweep that others need, too: begin, a sweep, end. A moment before
 * events that free blocks will ask for it, and makes it in a sweep of its own otherwise. */
struct replay_index;
struct replay_index *replay_index_begin(struct events *events, struct sweep_consumer *consumer);
void replay_index_end(struct replay_index *index); /* NULL is fine */

/* Whether this kind occupies device memory of its own. MANAGED, pinned and address ranges do
 * not. */
bool kind_is_device_memory(unsigned kind);
/* Whether a program allocates and frees this kind, on device or host. Levels and address ranges are
 * no blocks. */
bool kind_is_block(unsigned kind);
