/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots: packs of a recording as it is now (`cuflight pack`), below the directory of the
 * watcher. How many there are and how long they are has a limit. The first one is dropped last: it
 * shows what has grown since.
 *
 * Contract: one thread. Names are "snapshot.TIME.RECORDING.cufpack"; other files are left alone.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct snapshots {
	const char *directory;
	uint64_t most, most_bytes;
	bool is_full;      /* no room was left on the disk: stated once, until there is */
};

/* A name for the next one. False: it would be too long. */
bool snapshots_name(const struct snapshots *snapshots, const char *recording, char *out,
		    size_t bytes);
/* Whether the disk has room for another one of this recording: *free_bytes of *needed_bytes. */
bool snapshots_fit(const struct snapshots *snapshots, const char *recording, uint64_t *free_bytes,
		   uint64_t *needed_bytes);
/* Drops what is too much. Returns how many there are then. */
size_t snapshots_trim(const struct snapshots *snapshots);

/*
 * A pack of a recording, made by this program again as `cuflight pack` while the screen goes on.
 * Contract: one at a time; snapshot_start returns false while one runs, or when it cannot start
 * one. snapshot_take gives a sentence once that has ended; fd is readable then, and -1 where none
 * runs or the kernel has no such descriptor. What is being written when the screen ends is written
 * to its end.
 */

struct snapshot { pid_t pid; int fd, output; };

void snapshot_init(struct snapshot *snapshot);
/* The file is cuflight-PID-TIME.cufpack in the current directory. */
bool snapshot_start(struct snapshot *snapshot, const char *recording, unsigned pid);
bool snapshot_take(struct snapshot *snapshot, char *sentence, size_t bytes);
