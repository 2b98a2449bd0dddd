/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the sub-commands. One table is the source for getopt, --help, the OPTIONS sections of
 * the man pages, the bash completion and the tables in README.md. A command lists groups of rows.
 * A row whose name an earlier group already has is skipped.
 *
 * Contract: opts_init never fails for tables within OPTS_MAX rows (checked by assert). opts_parse
 * returns 0, or -1 with a sentence in error. Texts point into argv. Long names must be typed in
 * full: without abbreviations, new options cannot break old command lines. The accessors take a
 * long name that the tables contain (checked by assert). Not thread-safe (getopt).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_type {
	OPT_FLAG,   /* --name */
	OPT_SWITCH, /* --name or --name=0|1 */
	OPT_TEXT,   /* --name=WORD */
	OPT_LIST,   /* the same, any number of times up to OPTS_LIST_MAX */
	OPT_CHOICE, /* one of the words in value, "a|b|c"; the number is the index */
	OPT_COUNT,  /* a number from min to max */
	OPT_BYTES   /* the same, with KiB, MiB, GiB */
};

struct opt {
	const char *name;     /* '_' is shown and typed as '-' */
	char letter;          /* 0: there is only the long form */
	enum opt_type type;
	const char *value;    /* placeholder for the value, or the choices; NULL for flags */
	uint64_t min, max;    /* OPT_COUNT and OPT_BYTES */
	const char *fallback; /* the default: a word, a number of bytes, or the index of a choice;
			       * NULL: nothing worth showing */
	const char *help;     /* one phrase, without a capital and without a full stop */
};

struct opt_group {
	const char *title;
	const struct opt *opts;
	size_t count;
	const char *omit[3];  /* names of rows that this command leaves out */
};

enum { OPTS_MAX = 48, OPTS_GROUPS_MAX = 4, OPTS_LIST_MAX = 16 };

struct opts_row {
	struct opt opt;
	const struct opt_group *group;
	char name[32];        /* with hyphens */
	bool set;
	const char *text;     /* as typed; NULL: not given, or given without a value */
	const char *list[OPTS_LIST_MAX]; /* OPT_LIST: all texts, in order */
	size_t list_count;
	uint64_t number;
};

struct opts {
	struct opts_row rows[OPTS_MAX];
	size_t count;
	char **operands;      /* everything else, in order, NULL-terminated; points into argv */
	int operand_count;
	char error[320];
};

extern const struct opt_group opts_common; /* -h -V -q -v --color */
extern const struct opt_group opts_result; /* -o -f --format --json */

/* groups: NULL-terminated, at most OPTS_GROUPS_MAX. */
void opts_init(struct opts *opts, const struct opt_group *const *groups);

/*
 * argv[0] is the name of the command. With stop_at_operand, everything after the first operand is
 * an operand too: it belongs to another program's command line.
 */
int opts_parse(struct opts *opts, int argc, char **argv, bool stop_at_operand);

bool opts_has(const struct opts *opts, const char *name);
const char *opts_text(const struct opts *opts, const char *name); /* NULL: not given */
/* All values of an OPT_LIST; *count 0: not given. */
const char *const *opts_list(const struct opts *opts, const char *name, size_t *count);
uint64_t opts_number(const struct opts *opts, const char *name, uint64_t fallback);

/* The default for people: sizes with units, choices as words. "" when there is none. */
void opts_default(const struct opt *opt, char *out, size_t bytes);

/* "-o, --output=FILE" */
void opts_spell(const struct opts_row *row, char *out, size_t bytes);
