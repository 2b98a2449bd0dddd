/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's settings as options of run and env. The table is interpose/abi/options.def; its
 * keys are the names. Contract: settings_compose writes the value of CUFLIGHT_OPTIONS: first what
 * the environment has, then what was given on the command line, because the recorder uses the last
 * value of a key. Returns 0, or -1 with a sentence in error.
 */
#pragma once

#include <stddef.h>
#include "analysis/cmd/cli/opts.h"

extern const struct opt_group settings_launched; /* for run, which sets start and verbose itself */
extern const struct opt_group settings_printed;  /* for env */

/* inherited: the value in the environment; first: pairs that precede the options, "start=1".
 * Both may be NULL. */
int settings_compose(const struct opts *opts, const char *inherited, const char *first,
		     char *out, size_t bytes, char *error, size_t error_bytes);
