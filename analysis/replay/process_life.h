/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a recorded process that left no end record still lives.
 *
 * Contract. A pid counts only in the pid namespace that gave it. Where the process cannot be looked
 * up the file decides: the recorder maps it for writing until the process is gone. Both are asked,
 * since each misses something. A child that was forked a moment ago maps its
 * parent's file; a recorder that switched itself off maps none. Of a copy nobody maps anything, so
 * it is looked for among all processes. LIFE_UNKNOWN: none of these can be asked from here. Reads
 * /proc and sends no signal but the empty one.
 */
#pragma once

#include <stdbool.h>
#include "analysis/recording/reader.h"

enum process_life { LIFE_GONE, LIFE_RUNS, LIFE_UNKNOWN };

/* Only of a recording whose header, as it was read, has no end. */
enum process_life process_life(const struct reader *reader);

/* Whether the header's process is there under its pid, here and now: no other process that got the
 * pid, and none that has ended. */
bool process_is_here(const struct cuf_header *header);

/* Whether the recording is of this machine since it was last started. */
bool is_this_boot(const struct cuf_header *header);
