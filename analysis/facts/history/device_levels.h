/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of devices while several processes use them. The events of all are undone together in
 * the order of time, newest first. A process joins with what it has at its end. Where its oldest
 * events were overwritten, the recorder's samples go on.
 *
 * Contract: after the processes' samples and device_of are filled. Times are CLOCK_REALTIME; those
 * of the changes never rise. run is read by one thread.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/replay/run.h"

struct device_change {
	uint32_t process, device; /* device: index into facts.devices */
	bool is_framework;        /* of the blocks inside a framework's segments */
	bool is_sampled;          /* a process is known only by its samples from here back */
	uint64_t time_ns;
	int64_t delta; /* on the way back: what to add to have what was there before */
};

struct device_levels_visitor {
	void (*change)(void *state, const struct device_change *change);
	/* a block that is live at the end of a process, and one that was freed; NULL: none */
	void (*block)(void *state, uint32_t process, unsigned kind, uint64_t bytes, bool is_live);
	bool is_of_driver;         /* blocks of frameworks are passed over, which are most */
	void *state;
};

/* whose: by process, whether it counts; NULL: all do. */
void device_levels_walk(const struct facts *facts, const struct run *run, const bool *whose,
			const struct device_levels_visitor *visitor);
