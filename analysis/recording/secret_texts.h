/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides secrets in what a recording has as text. The recorder did so already; its version may have
 * known fewer kinds of them, or none.
 *
 * Contract: in place; texts are hostile. What was hidden already ("***") does not count.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Makes each secret "***", or fewer stars where it is shorter. The text is NUL-terminated. */
void secret_texts_hide(uint32_t meta_type, char *text);
/* Covers the secrets of a whole section META by stars of the same length, so that no record moves.
 * Returns how many there were. */
size_t secret_texts_cover(void *meta, size_t bytes);
