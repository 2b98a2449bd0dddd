/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process a row is of, across a fleet, and in which partition its files are.
 *
 * Contract: pure. The key is "HOST.PID.START", START in nanoseconds since 1970: no two processes
 * share it, and a copy of a recording has the same one. The texts of a path are names of files: of
 * letters, digits, '.', '-' and '_', everything else as %XX, which the readers of such layouts
 * decode.
 */
#pragma once

#include "analysis/facts/facts.h"

enum { PROCESS_WORD_BYTES = 200 };

struct process_key {
	char text[PROCESS_WORD_BYTES];
	char date[16];                   /* "2026-11-22", of the start, in UTC */
	char program[PROCESS_WORD_BYTES];
	char model[PROCESS_WORD_BYTES];  /* that its command line names; "" none */
	/* "date=2026-11-22/host=gpu3/program=serve.py" and "gpu3.4131.1763900000000000000" */
	char partition[3 * PROCESS_WORD_BYTES + 64], file[PROCESS_WORD_BYTES];
};

void process_key_of(const struct fact_process *process, struct process_key *key);
