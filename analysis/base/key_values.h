/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "key=value" lines, the form in which the recorder writes facts into META (abi/FORMAT.md).
 *
 * Contract: the text is hostile and only read. A key is matched at the beginning of a line.
 * CUF_UNKNOWN is returned for a key that is absent or whose value is no number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The value of a key, up to the end of its line; NULL: absent. */
const char *key_value(const char *text, const char *key, size_t *bytes);
uint64_t key_number(const char *text, const char *key);
bool key_is(const char *text, const char *key, const char *value);

/* Iterates over the lines "FAMILY.CLASS=FIRST,SECOND". Start with *at = text; false when there is
 * no further line. */
struct key_class {
	uint64_t class, first, second;
};
bool key_next_class(const char **at, const char *family, struct key_class *out);
