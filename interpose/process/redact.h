/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not get into a recording: command lines keep their words, secrets in them become "***".
 * By pattern: names such as --api-key, the shapes of well-known tokens, passwords in URLs.
 * Contract: texts need not be NUL-terminated.
 */
#ifndef CUF_REDACT_H
#define CUF_REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include "interpose/platform/say.h"

/* True for a name whose value is a secret, as "HF_TOKEN" or "--password". */
bool cuf_redact_is_secret_name(const char *name, size_t bytes);
/* True for a value of the shape of a token, as "hf_..." or "sk-...". */
bool cuf_redact_is_secret_value(const char *value, size_t bytes);

/*
 * Adds one argument of a command line. *hide_next: this one is the value of an option with a secret
 * name; set for the next.
 */
void cuf_redact_argument(struct cuf_text *line, const char *argument, size_t bytes,
			 bool *hide_next);

#endif
