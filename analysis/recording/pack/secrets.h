/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides secrets in what a recording has as text, before it leaves the machine. The recorder did so
 * already; its version may have known fewer kinds of them.
 *
 * Contract: in place, by '*' of the same length, so that no record moves. Returns how many were
 * hidden. What was hidden already ("***") does not count. Texts are hostile and have no terminator.
 */
#ifndef ANALYSIS_RECORDING_SECRETS_H
#define ANALYSIS_RECORDING_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

/* named: values behind a secret's name count, too, as in command lines and variables. */
size_t secrets_hide(char *text, size_t bytes, bool named);
/* The same in the texts of a section META that a user or a program wrote. */
size_t secrets_hide_meta(void *meta, size_t bytes);

#endif
