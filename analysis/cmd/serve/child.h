/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports and profiles on request: this program again, as its own command line would run it, with
 * limits of time, memory and length. One at a time; results are kept for CHILD_FRESH_S seconds, so
 * that many clients cost no more than one.
 *
 * Contract: one thread. children_find gives the result of these words, borrowed; NULL: none that is
 * fresh. children_start does nothing while one runs. fd of struct children is readable when
 * children_take has something; -1: none runs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_FRESH_S = 10, CHILD_SECONDS = 60, CHILD_BYTES = 64 << 20, CHILD_RESULTS = 4 };

struct child_result {
	char *key;          /* NULL: empty */
	int fd;             /* of what it wrote */
	uint64_t bytes, made_ns;
	bool is_good;
};

struct children {
	struct child_result results[CHILD_RESULTS];
	uint64_t memory_bytes;
	char *running;      /* key; NULL: none */
	pid_t pid;
	int fd, out;
	uint64_t started_ns;
};

/* This program with these words, its stdout to `out`, nothing else open. -1: it could not start. */
pid_t child_spawn(char *const *words, uint64_t memory_bytes, int out);

void children_init(struct children *children, uint64_t memory_bytes);
void children_fini(struct children *children);
const struct child_result *children_find(const struct children *children, char *const *words);
void children_start(struct children *children, char *const *words);
/* True: the one that ran has ended; a result is there, good or not. */
bool children_take(struct children *children);
