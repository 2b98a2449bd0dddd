/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mapped recording may be truncated by somebody while it is read. The kernel then answers a load
 * with SIGBUS, which would end the command.
 *
 * Contract. While a range is guarded, a load behind the end of the file reads zeros, and
 * cut_guard_seen() is true from then on. The reader takes zeros for unwritten records, as in any
 * damaged recording. A SIGBUS elsewhere ends the process as before. One process may guard
 * CUT_GUARD_RANGES ranges at a time; further ones are not guarded. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { CUT_GUARD_RANGES = 4096 };

void cut_guard_begin(const void *mapped, size_t bytes);
void cut_guard_end(const void *mapped);

/* A guarded file was shorter than it had been when it was mapped. */
bool cut_guard_seen(void);
