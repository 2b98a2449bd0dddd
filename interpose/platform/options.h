/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings, read once from the environment at start and constant from then on (also in forked children). The table is
 * abi/options.def. Contract: no allocation; texts are copied into the struct; in a setuid program nothing is read.
 */
#ifndef CUF_OPTIONS_H
#define CUF_OPTIONS_H

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
	char output[CUF_OPTION_PATH_BYTES]; /* CUFLIGHT_OUTPUT, unexpanded; "" none */
	int disabled;                       /* CUFLIGHT_DISABLE, or a setuid program */
};

extern struct cuf_options cuf_options;

/* environment: NAME=value strings, NULL-terminated; NULL is an empty one. secure: nonzero in a setuid program.
 * Wrong keys and values are said on stderr, one line each, and leave the default. */
void cuf_options_read(char **environment, int secure);

/* The value of NAME in an environment, or NULL. */
const char *cuf_environment_find(char **environment, const char *name);

/*
 * Expands %p pid, %h host, %e executable, %n (lowest free number: n), %t epoch seconds, %q{VAR}, %% of a pattern.
 * Returns 0, or -1 when it does not fit.
 */
struct cuf_name_parts { uint32_t pid; uint64_t epoch_s; unsigned n; const char *host, *executable; char **environment; };
int cuf_options_expand(const char *pattern, const struct cuf_name_parts *parts, char *out, unsigned out_bytes);

#endif
