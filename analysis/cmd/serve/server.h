/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `cuflight serve` answers, without HTTP: a request in, an answer out. http.h carries both.
 *
 * Contract. One thread. A path and a query of a client select among what is there and are never
 * opened. An answer has a body, or the command line of a child that makes it (child.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "analysis/view/live/metrics.h"

enum { SERVE_HOSTS = 16, SERVE_WORDS = 12 };

struct server {
	struct watch watch;
	struct metrics_options metrics;
	char token[256];                       /* "": none is asked for */
	const char *hosts[SERVE_HOSTS]; size_t host_count; /* other names that we go by */
	uint64_t memory_bytes;
	uint64_t refreshed_ns;
};

struct request {
	const char *method, *path;
	const char *host, *authorization, *accept; /* NULL: not sent */
	const char *(*query)(void *state, const char *key); /* NULL: not in the query */
	void *state;
};

struct answer {
	unsigned status;
	const char *type;            /* Content-Type */
	const char *policy;          /* Content-Security-Policy; NULL: nothing is allowed */
	char *body; size_t bytes;    /* heap memory; NULL with a command */
	char *words[SERVE_WORDS + 1]; /* arguments of cuflight, heap memory; NULL at the end */
};

/* Levels are at most a tenth of a second old afterwards. */
void server_refresh(struct server *server);
void server_answer(struct server *server, const struct request *request, struct answer *answer);
void answer_fini(struct answer *answer);
/* A short text; for failures. */
void answer_text(struct answer *answer, unsigned status, const char *text);
