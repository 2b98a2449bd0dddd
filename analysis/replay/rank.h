/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rank that a launcher gave a process (torchrun, MPI, Slurm), as its recorded environment has
 * it. Contract: pure; the text is borrowed. NULL: no launcher set one.
 */
#ifndef ANALYSIS_REPLAY_RANK_H
#define ANALYSIS_REPLAY_RANK_H

#include <stddef.h>
#include "analysis/recording/fact_types.h"

/* The global rank where there is one, else the one on this machine. */
const char *rank_of_texts(const struct fact_meta_text *texts, size_t count);

#endif
