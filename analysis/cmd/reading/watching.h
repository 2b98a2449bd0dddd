/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the commands that watch running processes share (serve, top, watch): which recordings, what
 * analysing may cost, and which signals end them.
 *
 * Contract: watching_open takes a directory, one recording, or the pid of a process, whose
 * recording is found; without an operand it is the directory of CUFLIGHT_OUTPUT, else the current
 * one. It refuses a file that shows nothing and never will. It returns 0 and writes the path that
 * it opened, or -1 after a message, when there is nothing to close.
 */
#pragma once

#include <limits.h>
#include "analysis/cmd/cli/opts.h"
#include "analysis/watch/watch.h"

extern const struct opt_group opts_watching; /* --memory --warm-up --processor */
struct watch_options watching_options(const struct opts *opts);
int watching_open(struct watch *watch, char path[PATH_MAX], const char *operand,
		  const struct watch_options *options);

/* Of two waits, in milliseconds. */
static inline int sooner(int a_ms, int b_ms) { return a_ms < b_ms ? a_ms : b_ms; }

/* Blocks SIGTERM, SIGINT and SIGHUP, which then make the descriptor readable; ignores SIGPIPE. */
int watching_signals(void);
