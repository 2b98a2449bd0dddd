/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes there are, what they are called, and their levels. */
#include "analysis/base/clock.h"
#include "analysis/watch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/explain/judge.h"

enum { PROCESSES_MAX = 1024, UNREADABLE_MAX = 64, RESCAN_S = 10, PASSES_A_WARM_UP = 30 };

uint64_t watch_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

bool watch_runs(const struct watch_process *process) { return !process->gone_ns; }

bool watch_is_complete(const struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!watch->processes[i]->pass && !*watch->processes[i]->pass_error)
			return false;
	return true;
}

const char *watch_short_path(const struct watch *watch, const char *path)
{
	size_t bytes = strlen(watch->finder.root);

	if (strncmp(path, watch->finder.root, bytes) != 0 || path[bytes] != '/')
		return path;
	return path + bytes + strspn(path + bytes, "/");
}

/* ---- counters ---- */

static void add_numbers(uint64_t *to, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

static void add_counters(struct watch_counters *to, const struct watch_counters *from)
{
	_Static_assert(sizeof *to % sizeof(uint64_t) == 0, "an array of numbers");
	add_numbers((uint64_t *)to, (const uint64_t *)from, sizeof *to / sizeof(uint64_t));
}

static struct watch_name *watch_name_of(const struct watch *watch, const char *name)
{
	for (size_t i = 0; i < watch->name_count; i++)
		if (!strcmp(watch->names[i].name, name))
			return &watch->names[i];
	return NULL;
}

struct watch_counters watch_counters_of(const struct watch *watch, const char *name)
{
	const struct watch_name *known = watch_name_of(watch, name);
	struct watch_counters sum = known ? known->sum : (struct watch_counters){ 0 };

	for (size_t i = 0; i < watch->count; i++)
		if (!strcmp(watch->processes[i]->name, name))
			add_counters(&sum, &watch->processes[i]->counters);
	return sum;
}

/* A counter never falls, whatever a hostile file has. */
static void raise_to(uint64_t *counter, uint64_t now)
{
	if (now > *counter && now != CUF_UNKNOWN)
		*counter = now;
}

static void count_levels(struct watch_process *process)
{
	struct watch_counters *counters = &process->counters;
	const struct cuf_header *header = &process->levels.header;

	for (size_t i = 0; i < process->levels.device_count; i++) {
		const struct cuf_device *device = &process->levels.devices[i];
		raise_to(&counters->allocations[device->ordinal], device->alloc_count);
		raise_to(&counters->frees[device->ordinal], device->free_count);
	}
	for (unsigned i = 0; i < CUF_LOST_MAX; i++)
		raise_to(&counters->lost[i], header->lost[i]);
	raise_to(&counters->overwritten[0], header->overwritten);
	raise_to(&counters->overwritten[1], header->host_overwritten);
	raise_to(&counters->overwritten[2], header->framework_overwritten);
	raise_to(&counters->recorder_ns, header->recorder_ns);
}

/* ---- names ---- */

/* Whether another process has the name and may still run. */
static bool is_taken(const struct watch *watch, const struct watch_process *by, const char *name)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->processes[i] != by && watch_runs(watch->processes[i]) &&
		    !strcmp(watch->processes[i]->name, name))
			return true;
	return false;
}

/* The name is that of the main thread, with a rank where a launcher gave one, and with a number
 * where several have it: the smallest that is free, so that a restart gets its own again. */
static void give_name(struct watch *watch, struct watch_process *process)
{
	const struct identity *identity = &process->identity;
	char base[96];

	snprintf(base, sizeof base, "%s%s%s", identity->name, *identity->rank ? " rank " : "",
		 identity->rank);
	snprintf(process->name, sizeof process->name, "%s", base);
	for (unsigned i = 2; is_taken(watch, process, process->name); i++)
		snprintf(process->name, sizeof process->name, "%s #%u", base, i);
	for (size_t i = 0; i < watch->count; i++)
		if (watch->processes[i] != process &&
		    !strcmp(watch->processes[i]->name, process->name))
			watch->processes[i]->is_succeeded = true;
	if (watch_name_of(watch, process->name))
		return;
	xalloc_grow(&watch->names, watch->name_count, &watch->name_room, sizeof *watch->names);
	watch->names[watch->name_count] = (struct watch_name){ 0 };
	memcpy(watch->names[watch->name_count++].name, process->name, sizeof process->name);
}

/* ---- processes ---- */

static void free_process(struct watch_process *process)
{
	free(process->path);
	free(process->pass);
	free(process);
}

/* Its counters stay with its name. */
static void drop_process(struct watch *watch, size_t index)
{
	struct watch_process *process = watch->processes[index];
	struct watch_name *name = watch_name_of(watch, process->name);

	if (name)
		add_counters(&name->sum, &process->counters);
	if (watch->asked == process->path)
		watch->asked = NULL;
	free_process(process);
	memmove(&watch->processes[index], &watch->processes[index + 1],
		(--watch->count - index) * sizeof(struct watch_process *));
}

/* An old recording of a process that ended before we looked is no news. */
static bool is_past(const struct levels *levels)
{
	return levels->life == LIFE_GONE && levels->last_event_ns != CUF_UNKNOWN &&
	       levels->last_event_ns + WATCH_KEEP_S * 1000000000ull < clock_ns(CLOCK_REALTIME);
}

static bool is_known_past(const struct watch *watch, const char *path, ino_t inode)
{
	for (size_t i = 0; i < watch->past_count; i++)
		if (watch->past[i].inode == inode && !strcmp(watch->past[i].path, path))
			return true;
	return false;
}

static struct watch_process *process_at(const struct watch *watch, const char *path)
{
	for (size_t i = 0; i < watch->count; i++)
		if (!strcmp(watch->processes[i]->path, path))
			return watch->processes[i];
	return NULL;
}

static void note_failed(struct watch *watch, const char *path, const struct reader_error *error)
{
	if (watch->unreadable_count >= UNREADABLE_MAX)
		return;
	xalloc_grow(&watch->unreadable, watch->unreadable_count, &watch->unreadable_room,
		    sizeof *watch->unreadable);
	watch->unreadable[watch->unreadable_count++] = (struct watch_unreadable){
		xalloc_string(path),
		error->system ? strerror(error->system) : reader_error_sentence(error->code) };
}

/* What was there before under that name is replaced. */
static void note_past(struct watch *watch, const char *path, ino_t inode)
{
	for (size_t i = 0; i < watch->past_count; i++)
		if (!strcmp(watch->past[i].path, path)) {
			watch->past[i].inode = inode;
			return;
		}
	xalloc_grow(&watch->past, watch->past_count, &watch->past_room, sizeof *watch->past);
	watch->past[watch->past_count++] = (struct watch_past){ xalloc_string(path), inode };
}

static void take_levels(struct watch_process *process, const struct levels *levels)
{
	process->levels = *levels;
	count_levels(process);
	if (levels->life == LIFE_GONE && !process->gone_ns)
		process->gone_ns = watch_now_ns();
	else if (levels->life != LIFE_GONE)
		process->gone_ns = 0;
}

/* A file of the scan. What is no recording is left alone. */
static void found(void *state, const char *path, ino_t inode)
{
	struct watch *watch = state;
	struct watch_process *process = process_at(watch, path);
	struct reader_error error = { 0 };
	struct identity identity;
	struct levels levels;
	int code;

	if (process) {
		process->is_listed = true;
		process->inode = inode;
		return;
	}
	if (is_known_past(watch, path, inode) || watch->count >= PROCESSES_MAX)
		return;
	code = identity_read(&identity, path, &error);
	if (!code)
		code = levels_read(&levels, path, identity.cgroup);
	if (code == READER_E_EMPTY || code == READER_E_UNBEGUN)
		watch->is_pending = true;
	else if (code && code != READER_E_MAGIC)
		note_failed(watch, path, &error);
	if (code)
		return;
	if (is_past(&levels)) {
		note_past(watch, path, inode);
		return;
	}
	process = xalloc_zeroed(1, sizeof *process);
	process->path = xalloc_string(path);
	process->identity = identity;
	process->seen_ns = watch_now_ns();
	process->inode = inode;
	process->is_listed = true;
	take_levels(process, &levels);
	xalloc_grow(&watch->processes, watch->count, &watch->room, sizeof *watch->processes);
	watch->processes[watch->count++] = process;
}

static int by_start(const void *a, const void *b)
{
	const struct watch_process *left = *(struct watch_process *const *)a,
				  *right = *(struct watch_process *const *)b;
	uint64_t l = left->identity.start_ns, r = right->identity.start_ns;

	return l != r ? compare_numbers(l, r) : strcmp(left->path, right->path);
}

/* The older one first: it keeps its name, and whoever has ended gives it up. */
static void name_new_ones(struct watch *watch)
{
	qsort(watch->processes, watch->count, sizeof *watch->processes, by_start);
	for (size_t i = 0; i < watch->count; i++)
		if (!*watch->processes[i]->name)
			give_name(watch, watch->processes[i]);
}

static void forget_unreadable(struct watch *watch)
{
	for (size_t i = 0; i < watch->unreadable_count; i++)
		free(watch->unreadable[i].path);
	watch->unreadable_count = 0;
}

static int scan(struct watch *watch)
{
	int status;

	for (size_t i = 0; i < watch->count; i++)
		watch->processes[i]->is_listed = false;
	forget_unreadable(watch);
	watch->is_pending = false;
	watch->scanned_ns = watch_now_ns();
	status = finder_scan(&watch->finder, found, watch);
	for (size_t i = watch->count; i-- > 0; )
		if (!watch->processes[i]->is_listed)
			drop_process(watch, i);
	name_new_ones(watch);
	return status;
}

/* Another process writes a file of that name now. */
static bool is_replaced(const struct watch_process *process, const struct levels *levels)
{
	return levels->header.pid != process->identity.pid ||
	       levels->start_ns != process->identity.start_ns;
}

static bool is_over(const struct watch_process *process, uint64_t now_ns)
{
	return process->gone_ns && process->has_last_pass &&
	       (process->is_succeeded ||
		now_ns - process->gone_ns > WATCH_KEEP_S * 1000000000ull);
}

/* False: it is not this process's recording any more. */
static bool refresh_process(struct watch_process *process)
{
	struct levels levels;

	if (process->gone_ns && process->has_last_pass)
		return true;
	if (levels_read(&levels, process->path, process->identity.cgroup) ||
	    is_replaced(process, &levels))
		return false;
	take_levels(process, &levels);
	return true;
}

void watch_refresh(struct watch *watch)
{
	uint64_t now_ns = watch_now_ns();

	for (size_t i = watch->count; i-- > 0; ) {
		struct watch_process *process = watch->processes[i];

		if (is_over(process, now_ns)) {
			note_past(watch, process->path, process->inode);
			drop_process(watch, i);
		} else if (!refresh_process(process)) {
			drop_process(watch, i);
			watch->is_pending = true;
		}
	}
	if (watch->is_pending || finder_is_stale(&watch->finder) ||
	    now_ns - watch->scanned_ns > RESCAN_S * 1000000000ull)
		scan(watch);
}

int watch_open(struct watch *watch, const char *directory, const struct watch_options *options)
{
	double warm_up_s = options->warm_up_s > 0 ? options->warm_up_s : JUDGE_WARM_UP_S;

	*watch = (struct watch){ .finder = { .root = directory }, .share = options->share,
				 .pass_ns = (uint64_t)(warm_up_s / PASSES_A_WARM_UP * 1e9) };
	if (worker_init(&watch->worker, options->memory_bytes, options->warm_up_s))
		return -1;
	if (!scan(watch))
		return 0;
	watch_close(watch);
	return -1;
}

void watch_close(struct watch *watch)
{
	int error = errno;

	worker_fini(&watch->worker);
	finder_fini(&watch->finder);
	forget_unreadable(watch);
	for (size_t i = 0; i < watch->count; i++)
		free_process(watch->processes[i]);
	for (size_t i = 0; i < watch->past_count; i++)
		free(watch->past[i].path);
	free(watch->past);
	free(watch->processes);
	free(watch->names);
	free(watch->unreadable);
	errno = error;
}
