/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports, on stdout, each run that ended: after a kernel's kill nothing else of ours runs where
 * the server did. `cuflight report --new DIRECTORY` is run as a child (child.h), with its limits:
 * for every directory at the start, and for that of each process that ends.
 *
 * Contract: one thread. ended_work is called in each turn of the loop, and returns the milliseconds
 * after which it wants to be called again. log, borrowed: a file for the text, too; NULL: none.
 */
#pragma once

#include "analysis/cmd/serve/child.h"
#include "analysis/watch/watch.h"

struct ended {
	uint64_t memory_bytes;
	const char *log;
	pid_t pid;          /* of the child; 0: none runs */
	int out;            /* what it wrote */
	uint64_t started_ns;
	char **directories; size_t count, room; /* that wait for a report */
};

void ended_init(struct ended *ended, const struct watch *watch, uint64_t memory_bytes,
		const char *log);
void ended_fini(struct ended *ended);
int ended_work(struct ended *ended, struct watch *watch);
