/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the history corrects about the snapshot: the state at a failure can look like one thing, and
 * the events before it show that it is another.
 *
 * Contract: pure. Returns an adjusted copy; it is the only place that changes a signal after it was
 * set. kv_grows: most of what only grows is a KV cache.
 */
#pragma once

#include "analysis/explain/evidence/trace.h"

struct evidence evidence_adjust(const struct evidence *snapshot, const struct history *history,
				bool kv_grows);
