/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was live at a moment. The ledger holds the state now. In a sweep up to now, a block that was
 * born before one of the moments and ended after it is kept. So a moment is the ledger, less what
 * was born later, plus what was kept for it.
 *
 * Contract. Live sets are the caller's, who ends them with liveset_fini; those of frameworks (kind
 * FRAMEWORK) are in them. *exact is false where events between the moment and now were overwritten:
 * blocks that died in between are missing, and those of now stand for them. The ring of a framework
 * wraps much sooner than that of the driver. A kept block whose ALLOC was overwritten has its birth
 * to a millisecond and seq 0. Times are CLOCK_MONOTONIC.
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
/* The blocks and the events of the reader's own moment, of a recording that is being written.
 * False: they do not sum up to what DEVICES has. */
bool replay_still(const struct reader *reader, const struct events_listener *listener,
		  struct events **events, struct liveset *live, struct replay_exact *exact);
/* Makes these blocks the content of LEDGER. */
void replay_keep_still(struct reader *reader, const struct liveset *live);
/* crossings_new, a sweep, crossings_end: then the set of a moment is known without events. */
struct crossings;
struct crossings *crossings_new(const struct events *events, const uint64_t *seqs, size_t count);
struct sweep_consumer crossings_consumer(struct crossings *moments);
void crossings_end(struct crossings *moments);
void crossings_free(struct crossings *moments); /* NULL is fine */
bool crossings_have(const struct crossings *moments, uint64_t seq); /* NULL has none */
/* Takes a set from one moment (CUF_UNKNOWN: now) back to an earlier one of these. */
void replay_back(const struct events *events, const struct crossings *moments, uint64_t from,
		 uint64_t to, struct liveset *live, struct replay_exact *exact);

/* Whether this kind occupies device memory of its own. MANAGED, pinned and address ranges do
 * not. */
bool kind_is_device_memory(unsigned kind);
/* Whether a program allocates and frees this kind, on device or host. Levels and address ranges are
 * no blocks. */
bool kind_is_block(unsigned kind);
