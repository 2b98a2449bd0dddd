/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the sub-commands: one table, from which getopt, --help, the man pages' OPTIONS, the completion and README
 * come. A command names its groups of rows; a row that an earlier group has is skipped.
 *
 * Contract. opts_init never fails for tables within OPTS_MAX rows (checked by assert). opts_parse returns 0, or -1 with
 * a sentence in error; texts point into argv. Long names are matched whole: no abbreviations, so that options can be
 * added. The accessors take a long name that the tables must have (checked by assert). Not thread-safe (getopt).
 */
#ifndef CMD_OPTS_H
#define CMD_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum opt_type {
	OPT_FLAG,   /* --name */
	OPT_SWITCH, /* --name or --name=0|1 */
	OPT_TEXT,   /* --name=WORD */
	OPT_CHOICE, /* one of value's words, "a|b|c"; number = index */
	OPT_COUNT,  /* a number within min..max */
	OPT_BYTES   /* the same, with KiB, MiB, GiB */
};

struct opt {
	const char *name;     /* key; '_' is shown and typed as '-' */
	char letter;          /* 0: long form alone */
	enum opt_type type;
	const char *value;    /* word for the value in help, or the choices; NULL for flags */
	uint64_t min, max;    /* COUNT, BYTES */
	const char *fallback; /* default: a word, a number of bytes, the index of a choice; NULL: none worth showing */
	const char *help;     /* one sentence without full stop */
};

struct opt_group {
	const char *title;
	const struct opt *opts;
	size_t count;
	const char *omit[3];  /* keys of rows that this command leaves out */
};

enum { OPTS_MAX = 48, OPTS_GROUPS_MAX = 4 };

struct opts_row {
	struct opt opt;
	const struct opt_group *group;
	char name[32];        /* with dashes */
	bool set;
	const char *text;     /* as typed; NULL */
	uint64_t number;
};

struct opts {
	struct opts_row rows[OPTS_MAX];
	size_t count;
	char **operands;      /* what is not an option, in order, NULL-terminated; points into argv */
	int operand_count;
	char error[320];
};

extern const struct opt_group opts_common; /* -h -V -q -v --color */
extern const struct opt_group opts_result; /* -o -f --format --json */

/* groups: NULL-terminated, at most OPTS_GROUPS_MAX. */
void opts_init(struct opts *opts, const struct opt_group *const *groups);
/* argv[0] is the command's name. stop_at_operand: what follows the first operand is somebody else's command line. */
int opts_parse(struct opts *opts, int argc, char **argv, bool stop_at_operand);

bool opts_has(const struct opts *opts, const char *name);
const char *opts_text(const struct opts *opts, const char *name);  /* NULL: not given */
uint64_t opts_number(const struct opts *opts, const char *name, uint64_t fallback);

/* The default as people read it: sizes with units, choices by their word; "" when there is none. */
void opts_default(const struct opt *opt, char *out, size_t bytes);
/* "-o, --output=FILE" */
void opts_spell(const struct opts_row *row, char *out, size_t bytes);

#endif
