/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample as the history that it is a sample of. A sampled block of 64 bytes stands for thousands.
 * They are spread evenly over the time in which its call site allocated: from the middle between
 * this sample and the one before to the middle between it and the next. Each lives as long as the
 * sampled one. Time is counted in bytes allocated by the process, which is what a sample measures.
 *
 * Contract: fills steps, count, block_count and left_out_count of *history. At most `most` steps:
 * beyond that, the blocks that lived shortest are left out, since they leave the least behind.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_HISTORY_SAMPLED_H
#define ANALYSIS_WHAT_IF_HOST_HISTORY_SAMPLED_H

#include "analysis/what_if/host/history.h"
#include "analysis/what_if/host/lifetimes.h"

void history_spread(struct history *history, const struct lifetimes *lifetimes, size_t most);

#endif
