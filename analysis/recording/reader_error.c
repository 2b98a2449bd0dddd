/* SPDX-License-Identifier: Apache-2.0 */
/* The table of codes and sentences, from the list in the header. */
#include "analysis/recording/reader_error.h"

#include <stddef.h>

static const struct { int code; const char *sentence; } sentences[] = {
#define READER_ERROR(name, code, sentence) { code, sentence },
	READER_ERRORS(READER_ERROR)
#undef READER_ERROR
};

const char *reader_error_sentence(int code)
{
	for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++)
		if (sentences[i].code == code)
			return sentences[i].sentence;
	if (!code)
		return "no error";
	return "unknown error";
}
