/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that falls into independent pieces, done by several threads.
 *
 * Contract: run(context, i) is called once for each i below count, in no particular order and
 * perhaps at the same time; all calls have returned when parallel_each returns. A piece writes
 * only what belongs to it, so results do not depend on the number of threads. threads 0: as many
 * as this process has CPUs. Where no thread can be made the caller does all pieces.
 */
#pragma once

#include <stddef.h>

void parallel_each(size_t count, unsigned threads, void (*run)(void *context, size_t i),
		   void *context);
/* How many threads `threads` stands for; at least 1. */
unsigned parallel_threads(unsigned threads);
