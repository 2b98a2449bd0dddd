/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of all processes that run, each once. What processes hold themselves is in their last
 * passes, which are not of one moment; the rest is what makes the sum that of the device.
 * Contract: pure.
 */
#pragma once

#include "analysis/watch/watch.h"

struct watch_device {
	uint8_t uuid[16];
	unsigned gpu;          /* the driver's index in the first process that has it */
	uint64_t total_bytes;
	uint64_t own_bytes;    /* of all processes, as passes saw them */
	/* OTHER_PROCESSES, UNEXPLAINED and FREE; with own_bytes they sum to total_bytes */
	uint64_t rest[WATCH_OWNER_MAX];
	bool has_pass;         /* false: nothing but total_bytes is known */
};

enum { WATCH_DEVICES = 64 };
size_t watch_devices(const struct watch *watch, struct watch_device out[WATCH_DEVICES]);

/* In the last pass of a process; NULL: it does not use the device, or has no pass yet. */
const struct pass_device *watch_device_of(const struct watch_process *process,
					  const uint8_t uuid[16], unsigned ordinal);
/* By UUID; where the driver told none, the index has to do. */
bool watch_is_same_device(const uint8_t a[16], unsigned a_ordinal, const uint8_t b[16],
			  unsigned b_ordinal);
/* The first of its owners that is no process's own. */
#define WATCH_OWN_MAX WATCH_OTHER_PROCESSES
