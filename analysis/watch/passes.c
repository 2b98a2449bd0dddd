/* SPDX-License-Identifier: Apache-2.0 */
/* Which recording gets the next pass, and what its result changes. */
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/watch/watch.h"

/* ---- call sites that are shown ---- */

static bool is_shown(const struct watch_process *process, const struct pass_site *site)
{
	for (size_t i = 0; i < process->site_count; i++) {
		const struct shown_site *shown = &process->sites[i];
		if (shown->memory == site->memory && shown->device == site->device &&
		    !strcmp(shown->name, site->name))
			return true;
	}
	return false;
}

/* The largest keep their places, up to WATCH_LARGEST_SITES; the others are for leaks that come
 * later. So the number of series has a limit, and none comes and goes. */
static void show_sites(struct watch_process *process)
{
	const struct pass *pass = process->pass;

	for (size_t i = 0; i < pass->site_count && process->site_count < WATCH_SITES; i++) {
		const struct pass_site *site = &pass->sites[i];
		struct shown_site *to = &process->sites[process->site_count];

		if (is_shown(process, site) ||
		    (!site->is_leak && process->site_count >= WATCH_LARGEST_SITES))
			continue;
		memcpy(to->name, site->name, sizeof to->name);
		to->memory = site->memory;
		to->device = site->device;
		process->site_count++;
	}
}

const struct pass_site *watch_site_now(const struct watch_process *process,
				      const struct shown_site *site)
{
	const struct pass *pass = process->pass;

	for (size_t i = 0; pass && i < pass->site_count; i++)
		if (pass->sites[i].memory == site->memory &&
		    pass->sites[i].device == site->device &&
		    !strcmp(pass->sites[i].name, site->name))
			return &pass->sites[i];
	return NULL;
}

/* ---- a finished pass ---- */

static void count_failures(struct watch_process *process, const struct pass *pass)
{
	for (unsigned device = 0; device <= CUF_DEVICES_MAX; device++)
		for (unsigned outcome = 0; outcome < OUTCOME_MAX; outcome++) {
			unsigned at = device < pass->device_count ?
					      pass->devices[device].ordinal % CUF_DEVICES_MAX :
					      CUF_DEVICES_MAX;
			process->counters.failures[at][outcome] += pass->failures[device][outcome];
		}
}

static void take_pass(struct watch_process *process, const struct pass *pass, bool is_last)
{
	process->has_last_pass |= is_last;
	process->is_error_said &= !strcmp(process->pass_error, pass->error);
	memcpy(process->pass_error, pass->error, sizeof pass->error);
	if (*pass->error)
		return;
	count_failures(process, pass);
	free(process->pass);
	process->pass = pass_copy(pass);
	process->pass_ns = watch_now_ns();
	show_sites(process);
}

static void finish_pass(struct watch *watch, const struct pass *pass)
{
	uint64_t now_ns = watch_now_ns();
	/* what a pass costs sets when the next one may begin */
	uint64_t rest_ns = (uint64_t)((double)pass->cost_ns * (1 / watch->share - 1));

	watch->free_ns = now_ns + rest_ns;
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_process *process = watch->processes[i];

		if (process->path != watch->asked)
			continue;
		process->due_ns = now_ns + watch->pass_ns;
		watch->asked = NULL;
		take_pass(process, pass, watch->asked_last);
		return;
	}
}

/* ---- the next one ---- */

/* Whoever ended is looked at once more, at once. */
static uint64_t due_of(const struct watch_process *process)
{
	if (!process->gone_ns)
		return process->due_ns;
	return process->has_last_pass ? UINT64_MAX : 0;
}

static struct watch_process *next_one(const struct watch *watch)
{
	struct watch_process *next = NULL;

	for (size_t i = 0; i < watch->count; i++)
		if (due_of(watch->processes[i]) != UINT64_MAX &&
		    (!next || due_of(watch->processes[i]) < due_of(next)))
			next = watch->processes[i];
	return next;
}

static void ask(struct watch *watch, struct watch_process *process)
{
	uint64_t counted_to = process->pass ? process->pass->counted_to : 0;

	if (!worker_ask(&watch->worker, process->path, counted_to)) {
		process->due_ns = watch_now_ns() + 1000000000;
		return;
	}
	watch->asked = process->path;
	watch->asked_last = process->gone_ns != 0;
}

enum { LONGEST_MS = 1000 };

static int milliseconds_until(uint64_t then_ns)
{
	uint64_t now_ns = watch_now_ns(), ms;

	if (then_ns <= now_ns)
		return 0;
	ms = (then_ns - now_ns) / 1000000 + 1;
	return ms < LONGEST_MS ? (int)ms : LONGEST_MS;
}

int watch_work(struct watch *watch)
{
	struct pass *pass = xalloc_zeroed(1, sizeof *pass);
	struct watch_process *next;
	uint64_t begin_ns;

	if (worker_take(&watch->worker, pass))
		finish_pass(watch, pass);
	free(pass);
	next = next_one(watch);
	if (watch->worker.is_busy || !next)
		return LONGEST_MS;
	begin_ns = due_of(next);
	if (begin_ns && begin_ns < watch->free_ns) /* the end of a process does not wait */
		begin_ns = watch->free_ns;
	if (begin_ns <= watch_now_ns())
		ask(watch, next);
	return watch->worker.is_busy ? LONGEST_MS : milliseconds_until(begin_ns);
}
