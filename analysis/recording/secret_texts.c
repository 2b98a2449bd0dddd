/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/secret_texts.h"

#include <stdbool.h>
#include <string.h>
#include "both/secrets.h"
#include "interpose/abi/format.h"

/* False for a text that no user and no program wrote: paths and names of functions. */
static bool search_begin(struct secrets_search *search, uint32_t type, const char *text,
			 size_t bytes)
{
	*search = (struct secrets_search){ .text = text, .bytes = bytes };
	switch (type) {
	case CUF_META_CMDLINE: search->kind = SECRETS_JOINED; return true;
	case CUF_META_ENV: search->kind = SECRETS_ARGUMENT; return true;
	case CUF_META_NOTE:
	case CUF_META_PHASE: search->kind = SECRETS_WORDS; return true;
	default: return false;
	}
}

/* What is kept moves down over what was cut, once, behind the search. */
void secret_texts_hide(uint32_t meta_type, char *text)
{
	struct secrets_search search;
	struct secret secret;
	char *to = text, *from = text;

	if (!search_begin(&search, meta_type, text, strlen(text)))
		return;
	while (secrets_find(&search, &secret)) {
		size_t kept = secret.at - (size_t)(from - text);
		size_t stars = secret.bytes < 3 ? secret.bytes : 3;

		memmove(to, from, kept);
		memset(to + kept, '*', stars);
		to += kept + stars;
		from = text + secret.at + secret.bytes;
	}
	memmove(to, from, search.bytes - (size_t)(from - text) + 1);
}

size_t secret_texts_cover(void *meta, size_t bytes)
{
	size_t count = 0, at = 0;

	while (at + sizeof(struct cuf_meta) <= bytes) {
		char *record = (char *)meta + at, *text = record + sizeof(struct cuf_meta);
		struct secrets_search search;
		struct secret secret;
		struct cuf_meta head;

		memcpy(&head, record, sizeof head);
		if (!head.type || head.bytes < sizeof head || head.bytes % 8 ||
		    head.bytes > bytes - at)
			break;
		at += head.bytes;
		if (head.text_bytes > head.bytes - sizeof head ||
		    !search_begin(&search, head.type, text, head.text_bytes))
			continue;
		for (; secrets_find(&search, &secret); count++)
			memset(text + secret.at, '*', secret.bytes);
	}
	return count;
}
