/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run of a directory that ended last, unless it was given out before: what the next start of a
 * pod reports. DIRECTORY/.cuflight-reported has the runs that were given out.
 *
 * Contract: returns the number of the run, as run_open_number takes it; 0: there is none. The run
 * is noted, with all that ended before, when it is given out: whatever then happens to its report,
 * the next call does not give it out again. Where that cannot be written, a line on stderr tells
 * why. Runs that go on, or may, are left for later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The newest run in the directory of CUFLIGHT_OUTPUT, or in the current one, for commands whose
 * operand may be left out. A directory without other recordings is read as a whole.
 *
 * Contract: path gets the file or the directory, and a line on stderr names it. Returns 0; -1 after
 * an error on stderr.
 */

int newest_run(char *path, size_t bytes);

size_t new_run(const char *directory);

/* Of a directory that has nothing else: true, and its note is gone. */
bool new_run_forget(const char *directory);
