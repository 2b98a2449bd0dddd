/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What outlives a watcher: when each rule last fired for each process, in the file `state` of its
 * directory. The same file is the lock: one watcher a directory.
 *
 * Contract: one thread. The file has its size from the start, so that a full disk does not make the
 * limits forget. keep_open makes the directory if need be; it returns 0, or -1 with errno,
 * EWOULDBLOCK where another one watches, whose pid is in *other then (0: unknown). keep_may and
 * keep_note take seconds of CLOCK_REALTIME; a clock that was set back counts as time that is over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct keep { int fd; uint64_t interval_s; };

int keep_open(struct keep *keep, const char *directory, uint64_t interval_s, pid_t *other);
void keep_close(struct keep *keep);

/* Whether the rule may fire for the process: its last time is interval_s ago. */
bool keep_may(const struct keep *keep, const char *rule, const char *process, uint64_t now_s);
/* It fires now. 0, or -1 with errno: then it must not. */
int keep_note(const struct keep *keep, const char *rule, const char *process, uint64_t now_s);
