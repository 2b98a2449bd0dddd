/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes held the GPU when a request failed. While `cuflight run` waits, it polls its
 * command's recordings, and queries NVML when one of them has a new incident of a device.
 *
 * Contract: a live process is the only writer of its recording. Readings are therefore kept here
 * and appended by gpu_watch_end, after the process has ended. At most 64 readings; per recording
 * they are at least a second apart, then ever longer. All calls come from one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include "analysis/cmd/run/recordings.h"

struct gpu_watch;

/*
 * directory, depth, since_ns: as for recordings_scan. options: CUFLIGHT_OPTIONS of the command.
 * NULL: the options have nvml=0.
 */
struct gpu_watch *gpu_watch_new(const char *directory, unsigned depth, uint64_t since_ns,
				const char *options);

/* Polls once. False: there is no NVML here, and further polls are useless. context: the watch. */
bool gpu_watch_tick(void *context);

/* Polls a last time, appends the readings, frees the watch. In list, the run's recordings are
 * marked. watch may be NULL. */
void gpu_watch_end(struct gpu_watch *watch, const struct recordings *list);
