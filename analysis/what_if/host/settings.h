/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocators of this machine and their settings, as environment variables that a user would
 * type.
 *
 * Contract. A setting is a few words NAME=VALUE separated by blanks; texts are in the arena or
 * constant. A library is a path of this machine, found by its soname. Nothing that a recording
 * contains becomes a path: of its environment only numbers of glibc's settings are used, and its
 * allocator is one of the table.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_SETTINGS_H
#define ANALYSIS_WHAT_IF_HOST_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include "analysis/base/xalloc.h"
#include "analysis/recording/meta.h"

enum { SETTING_WORDS_MAX = 8 };

struct host_setting {
	const char *typed;      /* as a user types it; "": nothing is set */
	const char *allocator;  /* glibc, jemalloc, mimalloc, tcmalloc */
	const char *library;    /* path to preload; NULL: libc's own */
	const char *words[SETTING_WORDS_MAX]; /* NAME=VALUE without LD_PRELOAD; NULL-terminated */
	bool is_extra;          /* seldom of use */
};

/* The allocator and settings that the process had. False: an allocator that is not here, named in
 * *why, a clause. */
bool host_setting_recorded(const struct meta *meta, struct arena *arena, struct host_setting *out,
			   const char **why);
/* Those worth trying, in the arena. */
struct host_setting *host_settings(struct arena *arena, bool all, size_t *count);
/* What a user typed. False: *why is a clause. */
bool host_setting_parse(const char *typed, struct arena *arena, struct host_setting *out,
			const char **why);

#endif
