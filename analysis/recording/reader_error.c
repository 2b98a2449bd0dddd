/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences of reader_error.h. */
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
	return code ? "unknown error" : "no error";
}
