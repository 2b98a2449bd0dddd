/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not get into a recording. Command lines and environment variables keep their words, and
 * secrets in them become "***". A secret is recognised by its structure: a value behind a name such
 * as --api-key or "password":, the user information in a URL, the shape of a well-known token.
 *
 * Contract: texts need not be NUL-terminated. It errs on the side of hiding: a harmless value
 * behind a name such as --auth is hidden too.
 */
#ifndef CUF_REDACT_H
#define CUF_REDACT_H

#include <stdbool.h>
#include <stddef.h>
#include "interpose/platform/say.h"

/* True for a name whose value is a secret, as "HF_TOKEN" or "--password". */
bool cuf_redact_is_secret_name(const char *name, size_t bytes);

/* Adds a text without the secrets in it. */
void cuf_redact_text(struct cuf_text *line, const char *text, size_t bytes);

/* What an argument means for the next one. */
enum cuf_redact_next {
	CUF_REDACT_NOTHING,
	CUF_REDACT_VALUE,       /* it is the value of an option with a secret name */
	CUF_REDACT_USER,        /* it may be user:password, as after curl's -u */
	CUF_REDACT_IF_PASSWORD, /* it may be a password or a port, as after -p */
};

/*
 * Adds one argument of a command line. *next: what the argument before it means for this one; set
 * for the next.
 */
void cuf_redact_argument(struct cuf_text *line, const char *argument, size_t bytes,
			 enum cuf_redact_next *next);

#endif
