/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds struct facts from recordings, judged causes included.
 *
 * Contract: returns 0 and a struct facts that owns all that is reachable from it, freed by
 * facts_free; or a negative enum reader_error_code, a filled struct reader_error, and *out NULL.
 * options and error may be NULL.
 */
#pragma once

#include "analysis/facts/facts.h"
#include "analysis/recording/reader.h"

/* path: a recording, or a directory whose *.cuf files are one run. coverage.blind lists those that
 * cannot be read, unless none can. */
int facts_build(const char *path, const struct facts_options *options, struct facts **out,
		struct reader_error *error);
/* The same for one recording in memory, which must outlive the facts. */
int facts_build_memory(const void *data, size_t bytes, const struct facts_options *options,
		       struct facts **out, struct reader_error *error);
void facts_free(struct facts *facts); /* NULL is fine */

/* With options.whole_replay: the requests to play again; NULL: there are none. */
struct replayed;
struct trace *facts_trace(const struct facts *facts, struct replayed *about);
