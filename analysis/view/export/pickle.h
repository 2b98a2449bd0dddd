/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's pickle, protocol 2, as a stream of dictionaries, lists, numbers and texts. Only opcodes
 * that PyTorch's viewer in JavaScript knows, too.
 *
 * Contract: the caller closes what it opens: between begin and end of a list come values, of a
 * dictionary words and values in turn. One thread.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { PICKLE_WORDS = 128, PICKLE_MEMO_FIRST = 256 };

struct pickle {
	FILE *out;
	const char *words[PICKLE_WORDS]; /* that were written before, by their memo number */
	unsigned word_count;
};

void pickle_begin(struct pickle *pickle, FILE *out);
void pickle_end(struct pickle *pickle);
void pickle_begin_dict(struct pickle *pickle);
void pickle_end_dict(struct pickle *pickle);
void pickle_begin_list(struct pickle *pickle);
void pickle_end_list(struct pickle *pickle);
/* A constant of the program: its text is written once. */
void pickle_word(struct pickle *pickle, const char *word);
/* Any foreign text. */
void pickle_text(struct pickle *pickle, const char *text);
void pickle_number(struct pickle *pickle, uint64_t number);
void pickle_bool(struct pickle *pickle, int value);
/* A pair of numbers. */
void pickle_pair(struct pickle *pickle, uint64_t first, uint64_t second);
/* The value just written is kept under a number from PICKLE_MEMO_FIRST on, and repeated. */
void pickle_keep(struct pickle *pickle, uint32_t memo);
void pickle_repeat(struct pickle *pickle, uint32_t memo);
