/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, read once from the environment at start and constant from then on, also in forked
 * children. The table is abi/options.def. Contract: no allocation; texts are copied into the
 * struct; a setuid program reads no settings.
 */
#pragma once

#include <stdint.h>
#include "interpose/abi/format.h"

#define CUF_OPTION_PATH_BYTES 1024

struct cuf_options {
#define OPTION(name, type, def, min, max, unit, help) CUF_OPTION_FIELD_##type(name)
#define CUF_OPTION_FIELD_FLAG(name) uint64_t name;
#define CUF_OPTION_FIELD_COUNT(name) uint64_t name;
#define CUF_OPTION_FIELD_BYTES(name) uint64_t name;
#define CUF_OPTION_FIELD_CHOICE(name) uint64_t name;
#define CUF_OPTION_FIELD_PATH(name) char name[CUF_OPTION_PATH_BYTES];
#include "interpose/abi/options.def"
	/* CUFLIGHT_OUTPUT, not yet expanded; "" when unset */
	char output[CUF_OPTION_PATH_BYTES];
	/* where the program was started; "" when unknown or too long */
	char directory[CUF_OPTION_PATH_BYTES];
	/* CUFLIGHT_DISABLE is set, or the program is setuid */
	int disabled;
	/* no setting: the program, or a library of its, refers to mlockall */
	int locks_memory;
	/* no setting: valgrind reports each process that ends, copies of it, too */
	int under_valgrind;
};

extern struct cuf_options cuf_options;

/*
 * environment: NAME=value strings, NULL-terminated; NULL is an empty one. secure: nonzero in a
 * setuid program. A wrong key or value keeps the default and is reported on stderr, one line
 * each.
 */
void cuf_options_read(char **environment, int secure);

/* The value of NAME in an environment, or NULL. Borrowed. */
const char *cuf_environment_find(char **environment, const char *name);

/* What a pattern for a file name can refer to. Texts are borrowed. */
struct cuf_name_parts {
	uint32_t pid;
	uint64_t epoch_s;
	/* the lowest free number: counted up by whoever creates the file */
	unsigned n;
	const char *host, *executable;
	char **environment;
};

/*
 * Expands %p pid, %h host, %e executable, %n number, %t epoch seconds, %q{VAR} and %% of a pattern.
 * Returns 0, or -1 when the result does not fit.
 */
int cuf_options_expand(const char *pattern, const struct cuf_name_parts *parts, char *out,
		       unsigned out_bytes);
