/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a run: what `cuflight run` appends to the recordings, and its last lines on stderr.
 * Contract: in list, the recordings of the run are marked, and their processes may still run.
 * Errors are printed; none changes the exit status.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/run/supervise.h"
#include "analysis/cmd/target/cgroup.h"
#include "analysis/cmd/target/destination.h"

/*
 * How often the kernel's OOM killer ran while the command did. SIGKILL has no sender on record, so
 * these counters are the evidence. Contract: CUF_UNKNOWN where the kernel has no such counter.
 * oom_kills_of is for one recording of the run: its process may have entered another control group
 * than ours, and then only the count of that one is about it.
 */

struct oom_kills {
	uint64_t in_cgroup, on_machine;
	uint64_t limit_bytes;      /* of the cgroup */
	const char *directory;     /* of the cgroup, borrowed from `before` */
};

struct oom_kills oom_kills_since(const struct cgroup_memory *before);

struct oom_kills oom_kills_of(const char *recording, const struct oom_kills *own);

/* True when the counter is known and has risen. */
bool oom_kills_any(uint64_t rise);

/* After a SIGKILL: whether it came from the OOM killer. */
void conclusion_print_kill(const struct recordings *list, const struct supervised *supervised,
			   const struct oom_kills *own);

/*
 * Appends what a later report cannot know: how the command ended, if it wrote no end record, and
 * whether the OOM killer ran meanwhile.
 */
void conclusion_note_end(const struct recordings *list, const struct supervised *supervised,
			 const struct oom_kills *own);

/* Makes the files as small as what they hold, where the process has ended. */
void conclusion_trim(struct recordings *list);

/*
 * The same for what lies in a directory, of this user: no `run` was there at the end of what a
 * plain preload recorded. Prints nothing, and leaves alone what somebody may still write to.
 */
void conclusion_trim_directory(const char *directory);

/*
 * Where the recordings are, the likely cause if something went wrong, and the command that
 * explains it. named_output: the destination was named on the command line, so the command must
 * name it too. status: the exit status of the command.
 */
void conclusion_print(const struct recordings *list, size_t processes,
		      const struct destination *destination, bool named_output, int status);
