/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds secrets in command lines, variables and names of phases. A secret is recognised by its
 * structure: a value behind a name such as --api-key or "password":, the user information of a URL,
 * the shape of a well-known token, a password where an option takes one. The recorder hides what is
 * found before it writes. The command hides it when it reads: an older recorder knew fewer kinds.
 *
 * Contract: freestanding; no state, no allocation. Texts need no terminator and may be hostile. It
 * errs on the side of hiding: a harmless value behind a name such as --auth is a secret, too. What
 * is hidden already ("***") is no secret.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What is searched, and so how far a value reaches behind a secret's name. */
enum secrets_kind {
	SECRETS_ARGUMENT, /* one argument, or the value of a variable: to the end */
	SECRETS_JOINED,   /* arguments joined by blanks: to the end of the word */
	/* What a program calls its work, in its own words: only what looks like a password. */
	SECRETS_WORDS,
};

/* What a word means for the next word, or for the next argument. */
enum secrets_next {
	SECRETS_NOTHING,
	SECRETS_VALUE,         /* it is the value of a secret's name */
	SECRETS_UNLESS_NUMBER, /* so it is, or a count, as after --max-tokens */
	SECRETS_USER,          /* it may be user:password, as after curl's -u */
	SECRETS_IF_PASSWORD,   /* it may be a password or something else, as after -p */
};

struct secrets_search {
	enum secrets_kind kind;
	const char *text;
	size_t bytes, at, no_user_before;
	enum secrets_next next; /* kept from one argument to the next */
};

struct secret { size_t at, bytes; };

/* Finds the next secret of the text, from left to right. */
bool secrets_find(struct secrets_search *search, struct secret *found);

/* True for a name whose value is a secret, as "HF_TOKEN" or "--password". */
bool secrets_is_name(const char *name, size_t name_bytes, const char *value, size_t value_bytes);
