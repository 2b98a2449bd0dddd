/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats. A new one is a file and a row. */
#include "analysis/view/commands/gate_writers.h"

#include <string.h>

const struct gate_writer gate_writers[] = {
	{ "junit", "JUnit XML, one test case for each limit", write_junit },
	{ "sarif", "SARIF 2.1.0, for code scanning", write_sarif },
	{ "md", "Markdown, for a job summary", write_markdown },
	{ "github", "workflow commands of GitHub, which annotate source lines", write_github },
	{ NULL, NULL, NULL },
};

const struct gate_writer *gate_writer_find(const char *name, size_t length)
{
	for (const struct gate_writer *writer = gate_writers; writer->name; writer++)
		if (strlen(writer->name) == length && !strncmp(writer->name, name, length))
			return writer;
	return NULL;
}
