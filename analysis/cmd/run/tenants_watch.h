/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who else held the device when a request failed: `cuflight run` looks at its command's recordings while it waits, and asks
 * NVML when one of them has a new incident. Contract: recordings are read only, until their process is gone; then
 * tenants_watch_end writes what was seen into them. Readings are paced (a second apart for each recording, then ever more) and at most
 * 64. All calls from one thread.
 */
#ifndef CMD_TENANTS_WATCH_H
#define CMD_TENANTS_WATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "analysis/cmd/run/recordings.h"

struct tenants_watch;

/* directory, depth, since_ns: as for recordings_scan. options: CUFLIGHT_OPTIONS of the command. NULL: nvml=0. */
struct tenants_watch *tenants_watch_new(const char *directory, unsigned depth, uint64_t since_ns, const char *options);
/* One look. False: there is no NVML here, so no further look is of use. context: the watch. */
bool tenants_watch_tick(void *context);
/* The last look, the writing, the end; list: the run's recordings are marked. NULL is fine. */
void tenants_watch_end(struct tenants_watch *watch, const struct recordings *list);

#endif
