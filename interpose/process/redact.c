/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/process/redact.h"

#include "interpose/platform/laws.h"

static void add_rest(struct cuf_text *line, struct secrets_search *search)
{
	struct secret secret;
	size_t done = 0;

	while (secrets_find(search, &secret)) {
		cuf_text_bytes(line, search->text + done, secret.at - done);
		cuf_text_add(line, "***");
		done = secret.at + secret.bytes;
	}
	cuf_text_bytes(line, search->text + done, search->bytes - done);
}

void cuf_redact_text(struct cuf_text *line, enum secrets_kind kind, const char *text,
		     size_t bytes)
{
	struct secrets_search search = { .kind = kind, .text = text, .bytes = bytes };

	add_rest(line, &search);
}

void cuf_redact_argument(struct cuf_text *line, const char *argument, size_t bytes,
			 enum secrets_next *next)
{
	struct secrets_search search = {
		.kind = SECRETS_ARGUMENT, .text = argument, .bytes = bytes, .next = *next
	};

	add_rest(line, &search);
	*next = search.next;
}
