/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass that plays the fatal request again, before causes are judged. Contract: that of a pass
 * (facts/passes/build.h); bounded work, nothing where no request of PyTorch was fatal.
 */
#pragma once

#include "analysis/facts/passes/build.h"

void build_what_ifs(struct build *build);
/* Takes part in the second sweep of a process. */
void listen_for_what_ifs(struct build *build, uint32_t process, struct sweep_consumer *consumer);
