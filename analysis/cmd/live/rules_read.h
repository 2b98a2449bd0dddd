/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of --rule and --rules. Contract: 0, or -1 after a message that shows what is wrong. */
#pragma once

#include "analysis/cmd/cli/opts.h"
#include "analysis/cmd/live/rule.h"

struct rules { struct rule **rules; size_t count, room; };

int rules_of_options(struct rules *rules, const struct opts *opts);
void rules_fini(struct rules *rules);
