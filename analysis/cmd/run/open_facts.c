/* SPDX-License-Identifier: Apache-2.0 */
/* Builds facts, or prints why it cannot. */
#include "analysis/cmd/run/open_facts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/explain/facts_build.h"

void refuse_recording(const char *path, const struct reader_error *error)
{
	const char *file = *error->path ? error->path : path;
	const char *sentence = reader_error_sentence(error->code);
	bool is_missing = error->code != READER_E_NO_RUN && error->code != READER_E_NO_PROCESS &&
			  access(path, F_OK);

	if (error->system)
		say_error("cannot open '%s': %s", file, strerror(error->system));
	else if (is_missing)
		say_error("cannot open '%s': %s", path, strerror(errno));
	else if (error->offset)
		say_error("cannot read '%s': %s (at byte %llu)", file, sentence,
			  (unsigned long long)error->offset);
	else
		say_error("cannot read '%s': %s", file, sentence);
}

struct facts *open_facts(const char *path, struct symbols *symbols,
			 const struct facts_options *options)
{
	struct facts_options own = { 0 };
	struct reader_error error = { 0 };
	struct facts *facts;

	if (options)
		own = *options;
	own.symbols = symbols;
	if (facts_build(path, &own, &facts, &error)) {
		refuse_recording(path, &error);
		return NULL;
	}
	return facts;
}
