/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pack of a recording, made by this program again as `cuflight pack` while the screen goes on.
 * Contract: one at a time; snapshot_start returns false while one runs, or when it cannot start
 * one. snapshot_take gives a sentence once that has ended; fd is readable then, and -1 where none
 * runs or the kernel has no such descriptor. What is being written when the screen ends is written
 * to its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct snapshot { pid_t pid; int fd, output; };

void snapshot_init(struct snapshot *snapshot);
/* The file is cuflight-PID-TIME.cufpack in the current directory. */
bool snapshot_start(struct snapshot *snapshot, const char *recording, unsigned pid);
bool snapshot_take(struct snapshot *snapshot, char *sentence, size_t bytes);
