/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rule of `cuflight watch`:
 *
 *	NAME[(WORD, ...)] < or > VALUE [for DURATION] -> ACTION, ...
 *
 * NAME is a metric of view/live/ without cuflight_ and its unit, or a short name of
 * rule_values.c; each WORD is the value of one of its labels. Actions are `snapshot`, `log`,
 * `exec COMMAND`, `webhook URL` and `signal NAME`. A comma ends an action, quotes keep it and
 * blanks together.
 *
 * Contract: rule_parse fills *rule, or returns false with a sentence in *error; `at` is where in
 * the text it stopped. A rule points into itself: it is not copied. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "analysis/view/live/metrics.h"

enum { RULE_TEXT = 1024, RULE_WORDS = 4, RULE_ACTIONS = 8, RULE_ARGS = 64 };

#define RULE_EXAMPLE "time_to_oom(gpu) < 30m for 5m -> snapshot, log"

enum action_kind { ACTION_SNAPSHOT, ACTION_LOG, ACTION_EXEC, ACTION_WEBHOOK, ACTION_SIGNAL,
		   ACTION_KINDS };

struct rule_action {
	enum action_kind kind;
	char **args; /* of EXEC, NULL at the end; of WEBHOOK, only its address */
	int signal;
};

enum rule_unit { RULE_NUMBER, RULE_BYTES, RULE_SECONDS };

/* What a rule looks at. */
struct rule_subject {
	const struct exposed *metric;
	const struct exposed *whole; /* what a share is of; NULL: it has none */
	char words[RULE_WORDS][24];
	size_t word_count;
	bool is_rest;                /* what the metric leaves of the whole: used, from free */
	enum rule_unit unit;
};

struct rule {
	char text[RULE_TEXT];        /* as typed */
	struct rule_subject subject;
	bool is_below;               /* < */
	bool is_share;               /* value is a share of the whole, from 0 to 1 */
	double value, hold_s;
	struct rule_action actions[RULE_ACTIONS];
	size_t action_count;
	char condition[RULE_TEXT];   /* the text up to the arrow */
	char storage[RULE_TEXT + RULE_ARGS];
	char *args[RULE_ARGS];
};

struct rule_error {
	size_t at;
	char text[400];
};

bool rule_parse(struct rule *rule, const char *text, struct rule_error *error);

/* NAME[(WORDS)]: rule_values.c. *wrong: the word that is not one, or NULL where the name is. */
bool rule_subject_find(struct rule_subject *subject, const char *name, const char **wrong);
/* Names that are nearest, or the words of the subject. */
void rule_subject_hint(const struct rule_subject *subject, const char *name, const char *wrong,
		       char *out, size_t bytes);

/* The samples of a rule now, and for each whether the condition holds. */
struct rule_sample {
	const char *process; /* "": it is of no single process */
	const char *gpu;     /* "" */
	char series[256];    /* for people: "python3, GPU 0, append_kv (server.c:64)" */
	double value;        /* a counter's: since the process began */
	double share;        /* NAN: there is no whole */
};
typedef void rule_take(void *state, const struct rule_sample *sample);
void rule_read(const struct rule *rule, const struct watch *watch, rule_take *take, void *state);
bool rule_holds(const struct rule *rule, double value, double share);

/* A value of the rule for people: "2m26s", "512 MiB", "93.1%". */
void rule_value_text(const struct rule *rule, double value, double share, char *out, size_t bytes);
