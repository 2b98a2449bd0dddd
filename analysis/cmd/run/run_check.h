/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cuflight run --check`: judges what was just recorded, as `cuflight check` does. --error-exitcode
 * is the short form: it judges fatal failures and proven leaks, and is silent about all else.
 *
 * Contract: run_check_prepare reads limits and baseline before the command starts: 0, or -1 after
 * an error. run_check_judge returns the status of this run, 0 if nothing was asked for; results go
 * to stderr, because stdout belongs to the command. Each process is judged by itself. What cannot
 * be judged counts for the processes that used CUDA, and for the one that a report would show.
 */
#pragma once

#include "analysis/cmd/cli/opts.h"
#include "analysis/cmd/run/recordings.h"

extern const struct opt_group run_check_options;

int run_check_prepare(const struct opts *opts);
/* In list, the recordings of the run are marked. */
int run_check_judge(const struct opts *opts, const struct recordings *list);
