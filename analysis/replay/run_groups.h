/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which recordings of a directory belong to one run. A pod that restarts writes one run after
 * another into the same directory, often with the same pids.
 *
 * The identity of a run is its first process: boot, pid and start time, as recorded. A process
 * belongs to the run of its parent, of the program that it replaced (exec), or of the `cuflight
 * run` that is in its options. Ranks belong to the run of the ranks that their launcher started
 * before, until a rank comes again. One without any of these belongs to the run that was not over
 * when it started: workers of an unrecorded launcher. Otherwise it begins a run. Different
 * programs of one parent, one after another, are steps of a run; the same one again is a restart.
 *
 * Contract: pure. `processes` are sorted by start. run_of[i] becomes the number of its run, from 1,
 * by start. Returns how many there are. The end of a process that was killed is that of its last
 * sample, so a restart within that interval would be counted to the same run, if it were not the
 * same pid.
 */
#pragma once

#include "analysis/replay/run.h"

size_t run_groups(const struct run_process *processes, size_t count, size_t *run_of);

/* `cuflight run` puts its pid into the options that all its descendants inherit; 0: none. */
unsigned long launcher_of_texts(const struct fact_meta_text *texts, size_t count);
/* The value of the first of these variables ("NAME=") that the environment had; NULL: none. */
const char *variable_of_texts(const struct fact_meta_text *texts, size_t count,
			      const char *const *names, size_t name_count);
/* The rank that a launcher gave a process (torchrun, MPI, Slurm), as its recorded environment has
 * it: the global one where there is one, else the one on this machine. NULL: none; borrowed. */
const char *rank_of_texts(const struct fact_meta_text *texts, size_t count);
