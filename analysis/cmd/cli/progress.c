/* SPDX-License-Identifier: Apache-2.0 */
/* A line of progress, after one second. */
#include "analysis/base/clock.h"
#include "analysis/cmd/cli/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/units.h"

#define SECOND_NS 1000000000ull

void progress_begin(struct progress *progress, bool quiet)
{
	*progress = (struct progress){ .wanted = !quiet && isatty(STDERR_FILENO) };
	if (!progress->wanted)
		return;
	progress->begin_ns = clock_ns(CLOCK_MONOTONIC);
	progress->next_ns = progress->begin_ns + SECOND_NS;
}

void progress_step(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;
	uint64_t now;

	if (!progress->wanted)
		return;
	now = clock_ns(CLOCK_MONOTONIC);
	if (now < progress->next_ns)
		return;
	progress->next_ns = now + SECOND_NS / 4;
	progress->shown = true;
	fprintf(stderr, "\r\033[Kcuflight: %s %s", units_count(done).s,
		progress->unit ? progress->unit : "events");
	if (total && done <= total)
		fprintf(stderr, ", %s", units_percent(done, total).s);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
