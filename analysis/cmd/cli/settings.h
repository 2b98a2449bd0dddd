/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's settings as options of our commands: interpose/abi/options.def is the table, its keys are the names.
 * Contract: settings_compose writes CUFLIGHT_OPTIONS for what was given on the command line, after what the environment
 * has already (the later word counts); 0, or -1 with a sentence in error.
 */
#ifndef CMD_SETTINGS_H
#define CMD_SETTINGS_H

#include <stddef.h>
#include "analysis/cmd/cli/opts.h"

extern const struct opt_group settings_launched; /* for run, which sets start and verbose itself */
extern const struct opt_group settings_printed;  /* for env */

/* first: pairs that come before, "start=1"; inherited: an existing value; both may be NULL. */
int settings_compose(const struct opts *opts, const char *inherited, const char *first, char *out, size_t bytes, char *error, size_t error_bytes);

#endif
