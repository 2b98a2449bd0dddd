/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a player (player_image.h) under another allocator.
 *
 * Contract: waits for the child, at most limits->seconds, then ends it. The child has no
 * descriptors but the history, the answer and a null device. The answer has a status in every
 * case; PLAY_NOT_ENDED when the child was ended or died. One call at a time for each history.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_CHILD_H
#define ANALYSIS_WHAT_IF_HOST_CHILD_H

#include "analysis/what_if/host/player/play.h"
#include "analysis/what_if/host/settings.h"

struct play_answer child_play(int history_fd, const struct host_setting *setting,
			      const struct play_limits *limits);

#endif
