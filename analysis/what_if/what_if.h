/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays the requests of a recording under every setting that is worth trying, and reports which of
 * them would have fitted.
 *
 * Contract: rows and their texts are in the arena. The first row is the recording's own setting;
 * the others are those that fit, the smallest change first, then those that do not, then those that
 * cannot be judged.
 */
#pragma once

#include "analysis/what_if/play.h"
#include "analysis/what_if/trials.h"

struct what_if_row {
	struct trial trial;
	struct play_result result;
	size_t order; /* in the list of trials */
};

struct what_if {
	const struct trace *trace; /* borrowed */
	struct what_if_row *rows;
	size_t count;
	/* The replay of the recorded setting ends as the program did: it fits, or the same request
	 * is refused. Otherwise why not, a clause; NULL: it does. */
	const char *unlike;
};

struct what_if_options {
	bool all;              /* rows that are seldom of use, too */
	const char *set;       /* NAME=VALUE: this one and the recorded one; NULL */
	unsigned threads;      /* 0: as many as there are CPUs */
	/* Called now and then with the share that is done, from one thread; NULL. */
	void (*progress)(void *argument, double share);
	void *argument;
};

/* False: options->set cannot be read; *why is a clause. */
bool what_if_run(const struct trace *trace, const struct what_if_options *options,
		 struct arena *arena, struct what_if *out, const char **why);
