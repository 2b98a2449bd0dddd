/* SPDX-License-Identifier: Apache-2.0 */
/* Opcodes of protocol 2. */
#include "analysis/view/export/pickle.h"

#include <string.h>
#include "analysis/view/export/names.h"

static void put_byte(struct pickle *pickle, int byte) { putc(byte, pickle->out); }

static void put_bytes(struct pickle *pickle, uint64_t number, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		put_byte(pickle, (int)(number >> 8 * i & 0xff));
}

void pickle_begin(struct pickle *pickle, FILE *out)
{
	*pickle = (struct pickle){ .out = out };
	put_byte(pickle, 0x80); /* PROTO */
	put_byte(pickle, 2);
}

void pickle_end(struct pickle *pickle) { put_byte(pickle, '.'); }

void pickle_begin_dict(struct pickle *pickle) { fputs("}(", pickle->out); }

void pickle_end_dict(struct pickle *pickle) { put_byte(pickle, 'u'); }

void pickle_begin_list(struct pickle *pickle) { fputs("](", pickle->out); }

void pickle_end_list(struct pickle *pickle) { put_byte(pickle, 'e'); }

static void put_text(struct pickle *pickle, const char *text)
{
	size_t bytes = strlen(text);

	put_byte(pickle, 'X');
	put_bytes(pickle, bytes, 4);
	fwrite(text, 1, bytes, pickle->out);
}

void pickle_word(struct pickle *pickle, const char *word)
{
	for (unsigned i = 0; i < pickle->word_count; i++)
		if (pickle->words[i] == word || !strcmp(pickle->words[i], word)) {
			put_byte(pickle, 'h');
			put_byte(pickle, (int)i);
			return;
		}
	put_text(pickle, word);
	if (pickle->word_count == PICKLE_WORDS)
		return;
	put_byte(pickle, 'q');
	put_byte(pickle, (int)pickle->word_count);
	pickle->words[pickle->word_count++] = word;
}

void pickle_text(struct pickle *pickle, const char *text)
{
	char clean[NAME_BYTES];

	name_text(text, clean, sizeof clean);
	put_text(pickle, clean);
}

void pickle_number(struct pickle *pickle, uint64_t number)
{
	unsigned count = 1;

	if (number <= 0xff) {
		put_byte(pickle, 'K');
		put_bytes(pickle, number, 1);
	} else if (number <= 0xffff) {
		put_byte(pickle, 'M');
		put_bytes(pickle, number, 2);
	} else if (number <= INT32_MAX) {
		put_byte(pickle, 'J');
		put_bytes(pickle, number, 4);
	} else { /* the highest bit is the sign */
		while (count < 9 && number >> (8 * count - 1))
			count++;
		put_byte(pickle, 0x8a);
		put_byte(pickle, (int)count);
		put_bytes(pickle, number, count < 9 ? count : 8);
		if (count == 9)
			put_byte(pickle, 0);
	}
}

void pickle_bool(struct pickle *pickle, int value) { put_byte(pickle, value ? 0x88 : 0x89); }

void pickle_pair(struct pickle *pickle, uint64_t first, uint64_t second)
{
	pickle_number(pickle, first);
	pickle_number(pickle, second);
	put_byte(pickle, 0x86);
}

void pickle_keep(struct pickle *pickle, uint32_t memo)
{
	put_byte(pickle, 'r');
	put_bytes(pickle, memo, 4);
}

void pickle_repeat(struct pickle *pickle, uint32_t memo)
{
	put_byte(pickle, 'j');
	put_bytes(pickle, memo, 4);
}
