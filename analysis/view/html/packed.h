/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container of DATA.md, compressed. Contract: heap memory in *out, which the caller frees; NULL
 * out of memory. base64 writes the text of the bytes, without line ends.
 */
#pragma once

#include <stdio.h>
#include "analysis/view/html/columns.h"

/* JSON and columns as gzip. */
uint8_t *packed_make(const char *json, size_t json_bytes, const struct columns *columns,
		     size_t *bytes);
void packed_write_base64(FILE *out, const uint8_t *bytes, size_t count);
size_t packed_base64_bytes(size_t count);
/* Text that is valid UTF-8, and no markup. */
void packed_write_escaped(FILE *out, const char *text);
