/* SPDX-License-Identifier: Apache-2.0 */
/* Builds facts, or prints why it cannot. */
#include "analysis/cmd/gate/open_facts.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/explain/facts_build.h"

void refuse_recording(const char *path, const struct reader_error *error)
{
	const char *file = *error->path ? error->path : path;

	if (error->system)
		say_error("cannot open '%s': %s", file, strerror(error->system));
	else if (access(path, F_OK))
		say_error("cannot open '%s': %s", path, strerror(errno));
	else
		say_error("cannot read '%s': %s", file, reader_error_sentence(error->code));
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
