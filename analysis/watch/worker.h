/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that makes passes, so that a recording which is large, damaged or hostile costs its
 * owner neither memory nor time. It keeps names of functions from pass to pass, until it has grown
 * to half of what it may use.
 *
 * Contract: one thread, which may fork. One pass at a time. After worker_ask, worker_take returns
 * false until the pass is made, the process has ended, or it was slower than WORKER_SECONDS; what
 * went wrong is in pass.error then. socket is readable when worker_take has something; -1: no
 * process. Ends with its parent.
 */
#pragma once

#include <sys/types.h>
#include "analysis/watch/pass.h"

enum { WORKER_SECONDS = 120 };

struct worker {
	struct worker_desk *desk; /* shared with the process */
	uint64_t memory_bytes;
	double warm_up_s;
	pid_t pid;
	int socket;
	bool is_busy;
	uint64_t asked_ns; /* CLOCK_MONOTONIC */
};

/* 0, or -1 with errno. */
int worker_init(struct worker *worker, uint64_t memory_bytes, double warm_up_s);
void worker_fini(struct worker *worker);

/* False: it is busy, or cannot be started. */
bool worker_ask(struct worker *worker, const char *path, uint64_t counted_to);
bool worker_take(struct worker *worker, struct pass *out);
