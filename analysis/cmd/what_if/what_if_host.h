/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cuflight what-if --host`: resident memory of malloc under other allocators.
 * Contract: returns an exit status; prints its errors. Of a run of several processes, the one that
 * allocated most is replayed.
 */
#ifndef CMD_WHAT_IF_HOST_H
#define CMD_WHAT_IF_HOST_H

#include "analysis/cmd/cli/opts.h"

int what_if_host(const struct opts *opts, const char *path);

#endif
