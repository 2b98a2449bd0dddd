/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not get into a recording: secrets in texts (both/secrets.h) become "***".
 *
 * Contract: texts need not be NUL-terminated.
 */
#pragma once

#include <stddef.h>
#include "both/secrets.h"
#include "interpose/platform/say.h"

/* Adds a text without the secrets in it. */
void cuf_redact_text(struct cuf_text *line, enum secrets_kind kind, const char *text,
		     size_t bytes);

/* Adds one argument of a command line. *next: SECRETS_NOTHING before the first one. */
void cuf_redact_argument(struct cuf_text *line, const char *argument, size_t bytes,
			 enum secrets_next *next);
