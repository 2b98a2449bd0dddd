/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The value of --at: the moment that a command is about. Contract: 0, or -1 after an error on
 * stderr. at may be NULL in moment_option_check: nothing was asked for.
 */
#pragma once

#include "analysis/facts/facts.h"

/* Before any file is opened. */
int moment_option_parse(const char *at, struct facts_options *options);
/* Only the facts tell whether the recording contains the moment. */
int moment_option_check(const struct facts_options *options, const struct facts *facts,
			const char *at);
