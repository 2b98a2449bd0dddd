/* SPDX-License-Identifier: Apache-2.0 */
/* Which run to read when none is named. */
#include "analysis/cmd/reading/newest_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/target/destination.h"

/* Prints which recording was chosen, because nobody named it. */
static void print_choice(const char *path, size_t processes, bool whole_directory)
{
	char shown[PATH_MAX];

	recordings_show_path(path, shown, sizeof shown);
	if (processes > 1 && !whole_directory)
		say_info("reading %s, one of %zu processes of the newest run here", shown,
			 processes);
	else
		say_info("reading %s, the newest run here", shown);
}

int newest_run(char *path, size_t bytes)
{
	struct destination destination;
	struct recordings list = { 0 };
	const struct recording_file *best;
	size_t processes;
	bool whole;

	if (destination_set(&destination, NULL)) {
		say_error("cannot read the current directory: %s", strerror(errno));
		return -1;
	}
	recordings_scan(&list, destination.directory, destination.depth, 0);
	processes = recordings_mark_newest_run(&list);
	best = recordings_best(&list);
	if (best) {
		whole = processes > 1 && processes == list.count && !destination.depth;
		snprintf(path, bytes, "%s", best->path);
		if (whole)
			snprintf(path, bytes, "%s", destination.directory);
		print_choice(path, processes, whole);
	} else {
		say_error("no recording in %s; record one with 'cuflight run -- COMMAND', "
			  "or name a file or directory", destination.directory);
	}
	recordings_free(&list);
	return best ? 0 : -1;
}
