/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cuflight check` and `cuflight run --check` share: gathers the limits of the command line
 * and of cuflight.ini and the baseline, and judges a recording.
 *
 * Contract: everything in the request is borrowed. judge_run returns 0 and a filled *out, freed by
 * judge_free; or -1 after an error on stderr, and then there is nothing to free. judge_check_limits
 * reads what can be read before anything is recorded: 0, or -1 after an error.
 */
#pragma once

#include "analysis/cmd/cli/opts.h"
#include "analysis/gate/baseline.h"
#include "analysis/gate/check.h"
#include "analysis/gate/finding.h"
#include "analysis/symbols/symbols.h"

struct suppressions;
struct judge_request {
	const char *path;           /* a recording, or a directory that is one run */
	char *const *limits;
	size_t limit_count;
	const char *config;         /* NULL: the nearest cuflight.ini, if there is one */
	bool no_config;             /* look for none */
	const char *baseline;       /* NULL: as cuflight.ini has it */
	bool any_environment;
	struct suppressions *suppressions; /* NULL: nothing is suppressed */
	const struct symbols_options *symbols; /* NULL: defaults */
};

struct judged {
	struct arena *arena;
	struct symbols *symbols;
	struct facts *facts;
	struct gate_limits limits;
	const char *unused_sections; /* a sentence: cuflight.ini has none for what was recorded */
	bool nothing_asked;          /* and nothing else in it is judged either */
	struct gate_baseline baseline;
	struct gate_result result;
};

int judge_check_limits(const struct judge_request *request);
int judge_run(const struct judge_request *request, struct judged *out);
void judge_free(struct judged *judged);

/*
 * What a gate reads and writes next to its result: suppressions, and documents for CI systems.
 *
 * Contract: gate_outputs_open reads the options and the files of rules, and returns 0, or -1 after
 * an error on stderr with nothing to close. gate_outputs_write writes every document and returns 0,
 * or -1 after an error; it also reports rules that matched nothing or have expired. A file appears
 * only when it is complete, and replaces an older one. opts is borrowed.
 */

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
