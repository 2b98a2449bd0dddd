/* SPDX-License-Identifier: Apache-2.0 */
/* Breaking lines at blanks. */
#include "analysis/view/flow.h"

#include <string.h>

static unsigned columns_of(const char *text, size_t bytes)
{
	unsigned columns = 0;
	for (size_t i = 0; i < bytes; i++)
		columns += ((unsigned char)text[i] & 0xc0) != 0x80;
	return columns;
}

void flow_text(FILE *out, const char *text, unsigned indent, unsigned from, unsigned columns)
{
	unsigned column = from;
	while (*text) {
		size_t blanks = strspn(text, " "), word = strcspn(text + blanks, " ");
		unsigned width = columns_of(text, blanks + word);
		if (column > indent && column + width > columns) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
			text += blanks;
			width -= (unsigned)blanks;
			blanks = 0;
		}
		fprintf(out, "%.*s", (int)(blanks + word), text);
		column += width;
		text += blanks + word;
	}
	fputc('\n', out);
}
