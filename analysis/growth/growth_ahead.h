/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A source that another thread reads ahead: decoding events and counting them take about as long.
 *
 * Contract: the source is the thread's between growth_ahead_begin and growth_ahead_end, where the
 * thread ends. The steps are the same, in the same order. Where no thread can be made the caller
 * reads the source itself.
 */
#pragma once

#include "analysis/growth/growth.h"

struct growth_ahead;
struct growth_ahead *growth_ahead_begin(const struct growth_source *source);
struct growth_source growth_ahead_source(struct growth_ahead *ahead);
void growth_ahead_end(struct growth_ahead *ahead);
