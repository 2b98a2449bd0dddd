/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interactive screen. Contract: screen_run shows what is watched until a key, a signal or the
 * end of the terminal ends it, and returns 0 with the terminal as it was; -1 at once where the
 * terminal cannot move its cursor, or this build has no screen, which it prints.
 */
#pragma once

#include "analysis/base/terminal.h"
#include "analysis/watch/watch.h"

struct screen_options {
	const char *subject; /* for the title */
	uint64_t every_ns;   /* from frame to frame */
	enum style_colour colour;
};

int screen_run(struct watch *watch, const struct screen_options *options);
