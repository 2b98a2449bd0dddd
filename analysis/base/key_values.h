/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "key=value" lines, as the recorder writes facts into META (abi/FORMAT.md). Contract: the text is hostile and is only
 * read; a key is found at the beginning of a line; CUF_UNKNOWN for what is absent or no number.
 */
#ifndef ANALYSIS_BASE_KEY_VALUES_H
#define ANALYSIS_BASE_KEY_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a key, up to the end of its line; NULL: absent. */
const char *key_value(const char *text, const char *key, size_t *bytes);
uint64_t key_number(const char *text, const char *key);
bool key_is(const char *text, const char *key, const char *value);

/* The lines "FAMILY.CLASS=FIRST,SECOND", one after another: false when there is none after *at (start with the text). */
struct key_class { uint64_t class, first, second; };
bool key_next_class(const char **at, const char *family, struct key_class *out);

#endif
