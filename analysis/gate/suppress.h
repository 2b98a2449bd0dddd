/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that excuse call sites: the file of LeakSanitizer, which heaptrack reads, too, with what
 * only cuflight needs in comment lines.
 *
 *     # why this is fine
 *     #cuflight until=2027-06-30 reason="fixed in NCCL 2.31"
 *     leak:ncclCommInitRank
 *     #cuflight device:^load_weights$
 *
 * A line `KIND:PATTERN` is a rule. A line `#cuflight [until=DATE] [reason="..."] [KIND:PATTERN]` is
 * a rule with a date, or without one states the date of the next rule. A pattern is found anywhere
 * in the function, the source file or the module of any frame of the call site. `*` is any text,
 * `^` at its begin and `$` at its end anchor it, as LeakSanitizer reads them. LeakSanitizer stops
 * at kinds other than `leak:`, so a shared file has all others in comments. suppress_kinds.c
 * lists the kinds.
 *
 * Contract: suppressions_read returns 0, or -1 with a sentence in error, and no rule was added
 * then. Dates are "YYYY-MM-DD", which sort as text. Texts live as long as the suppressions. One
 * thread: matching counts.
 */
#pragma once

#include <stdio.h>
#include "analysis/gate/finding.h"

struct suppress_rule {
	const char *kind;    /* "leak" */
	const char *pattern;
	const char *text;    /* "leak:ncclCommInitRank" */
	const char *origin;  /* "memory.supp:3"; "" built in */
	const char *reason;  /* "" none */
	const char *until;   /* the last day on which it holds; "" always */
	bool expired;
	uint64_t sites;      /* that it matched */
};

struct suppressions;

/* today decides which rules have expired. built_in: with the rules for what drivers, NCCL, cuBLAS
 * and interpreters allocate once. */
struct suppressions *suppressions_new(const char *today, bool built_in);
void suppressions_free(struct suppressions *suppressions); /* NULL is fine */

int suppressions_read(struct suppressions *suppressions, const char *path, char *error,
		      size_t error_bytes);
/* The same for a text; name is what messages call it. */
int suppressions_parse(struct suppressions *suppressions, const char *text, size_t bytes,
		       const char *name, char *error, size_t error_bytes);

/* A gate_suppress (check.h); context: the suppressions. The first rule that matches counts. */
const char *suppressions_match(void *context, const struct gate_measure *measure,
			       const struct gate_site *site);

size_t suppressions_count(const struct suppressions *suppressions);
const struct suppress_rule *suppressions_rule(const struct suppressions *suppressions, size_t i);

/* Sentences, each a line with this prefix: rules of files that have expired, or that matched none
 * of the call sites of exceeded limits, if there were any. Returns how many. */
size_t suppressions_print_stale(const struct suppressions *suppressions, const char *prefix,
				FILE *out);

/* Ready rules for all call sites of exceeded findings, as lines of a shared file. Returns how
 * many. */
size_t suppressions_generate(const struct gate_result *result, FILE *out);

/* Whether LeakSanitizer's pattern matches the text. */
bool suppress_matches(const char *pattern, const char *text);
