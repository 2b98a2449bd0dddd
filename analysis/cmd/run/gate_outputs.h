/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a gate reads and writes next to its result: suppressions, and documents for CI systems.
 *
 * Contract: gate_outputs_open reads the options and the files of rules, and returns 0, or -1 after
 * an error on stderr with nothing to close. gate_outputs_write writes every document and returns 0,
 * or -1 after an error; it also reports rules that matched nothing or have expired. A file appears
 * only when it is complete, and replaces an older one. opts is borrowed.
 */
#pragma once

#include "analysis/cmd/cli/opts.h"
#include "analysis/gate/finding.h"

/* --write, --suppressions, --no-default-suppressions, --gen-suppressions */
extern const struct opt_group opts_gate;

struct suppressions;
struct gate_outputs {
	const struct opts *opts;
	struct suppressions *suppressions; /* for gate_question */
};

/* Only the rules, for a command that has --suppressions and --no-default-suppressions. NULL after
 * an error; else freed by suppressions_free. */
struct suppressions *gate_rules_open(const struct opts *opts);

int gate_outputs_open(struct gate_outputs *outputs, const struct opts *opts);
int gate_outputs_write(const struct gate_outputs *outputs, const struct gate_result *result);
void gate_outputs_close(struct gate_outputs *outputs);
