/* SPDX-License-Identifier: Apache-2.0 */
/* Opens all recordings of a path and keeps the last live set of each process. */
#include "analysis/replay/run.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/base/numbers.h"
#include "analysis/base/parallel.h"
#include "analysis/recording/pack.h"
#include "analysis/recording/stack_identity.h"
#include "analysis/replay/driver_state.h"
#include "analysis/replay/incidents.h"
#include "analysis/replay/replay.h"
#include "analysis/replay/run_groups.h"

static void add_process(struct run *run, struct reader *reader, size_t *room)
{
	xalloc_grow(&run->processes, run->count, room, sizeof *run->processes);
	run->processes[run->count++] = (struct run_process){ .reader = reader };
}

static void close_process(struct run_process *process)
{
	events_free(process->events);
	failures_free(process->failures);
	driver_history_free(process->driver);
	crossings_free(process->crossings);
	live_peaks_end(&process->peaks);
	liveset_fini(&process->live);
	reader_close(process->reader);
}

static int by_start(const void *a, const void *b)
{
	const struct cuf_header *left = &((const struct run_process *)a)->reader->header,
				*right = &((const struct run_process *)b)->reader->header;
	if (left->start_realtime_ns != right->start_realtime_ns)
		return compare_numbers(left->start_realtime_ns, right->start_realtime_ns);
	return compare_numbers(left->pid, right->pid);
}

static void read_meta(void *context, size_t i)
{
	struct run *run = context;

	meta_read(&run->processes[i].meta, run->processes[i].reader, run->arena);
}

/* The notes of all recordings show which belong together. */
static void group(struct run *run, size_t *run_of)
{
	if (run->count)
		qsort(run->processes, run->count, sizeof *run->processes, by_start);
	parallel_each(run->count, 0, read_meta, run);
	run->run_count = run_groups(run->processes, run->count, run_of);
}

/* Keeps the processes of one run of the directory: that number, or the last one (0). */
static void keep_run(struct run *run, size_t number)
{
	size_t *run_of = xalloc_zeroed(run->count + 1, sizeof *run_of), kept = 0;

	group(run, run_of);
	run->run_number = number ? number : run->run_count;
	for (size_t i = 0; i < run->count; i++) {
		if (run_of[i] == run->run_number)
			run->processes[kept++] = run->processes[i];
		else
			reader_close(run->processes[i].reader);
	}
	run->count = kept;
	free(run_of);
}

/* The live set that run_live is asked for first. */
static void read_ledger(struct run_process *process)
{
	replay_ledger(process->reader, &process->live, &process->live_exact);
	process->live_seq = CUF_UNKNOWN;
	process->live_valid = true;
}

static bool is_written(const struct run_process *process)
{
	return process->reader->until_seq != CUF_UNKNOWN;
}

enum { STILL_ATTEMPTS = 5, STILL_PAUSE_US = 1000 };

/*
 * Events and ledger of one moment. A call that was under way shows in one of them. Its thread may
 * be waiting for a processor, so the pause before each further attempt is twice as long.
 */
static void read_still(struct run_process *process)
{
	struct events_listener listener;
	bool is_still = false;

	for (unsigned i = 0; i < STILL_ATTEMPTS && !is_still; i++) {
		if (i) {
			usleep(STILL_PAUSE_US << i);
			events_free(process->events);
			failures_free(process->failures);
			liveset_fini(&process->live);
			reader_look_again(process->reader);
		}
		process->failures = failures_new(process->reader);
		listener = failures_listener(process->failures);
		is_still = replay_still(process->reader, &listener, &process->events,
					&process->live, &process->live_exact);
	}
	process->reader->is_blurred |= !is_still;
	replay_keep_still(process->reader, &process->live);
	process->live_seq = CUF_UNKNOWN;
	process->live_valid = true;
}

static void read_events(struct run_process *process)
{
	struct events_listener listener;

	process->failures = failures_new(process->reader);
	listener = failures_listener(process->failures);
	process->events = events_new(process->reader, &listener);
}

/* The events of each process, then the ledger of each. */
static void read_part(void *context, size_t i)
{
	struct run *run = context;
	struct run_process *process = &run->processes[i % run->count];

	if (is_written(process) && i < run->count)
		read_still(process);
	else if (i < run->count)
		read_events(process);
	else if (!is_written(process))
		read_ledger(process);
}

/* Few processes leave processors idle. Of many, the live sets would need too much memory. */
static size_t parts_of(const struct run *run)
{
	return run->count < parallel_threads(0) ? 2 * run->count : run->count;
}

static void read_all(struct run *run, size_t number)
{
	keep_run(run, number);
	parallel_each(parts_of(run), 0, read_part, run);
}

static int is_recording(const struct dirent *entry)
{
	const char *suffix = strrchr(entry->d_name, '.');
	return suffix && !strcmp(suffix, ".cuf");
}

static void note_unreadable(struct run *run, const struct reader_error *error, size_t *room)
{
	xalloc_grow(&run->unreadable, run->unreadable_count, room, sizeof *run->unreadable);
	run->unreadable[run->unreadable_count++] =
		arena_format(run->arena, "%s is left out: %s (at byte %llu)", error->path,
			     reader_error_sentence(error->code), (unsigned long long)error->offset);
}

static int open_directory(struct run *run, const char *path, struct reader_error *error)
{
	struct dirent **entries;
	struct reader_error first = { .code = READER_E_NONE_FOUND }, now;
	size_t room = 0, unreadable_room = 0;
	int count = scandir(path, &entries, is_recording, alphasort);
	if (count < 0)
		first = (struct reader_error){ .code = READER_E_OPEN, .system = errno };
	strncpy(first.path, path, sizeof first.path - 1);
	for (int i = 0; i < count; i++) {
		struct reader *reader;
		char *name =
			arena_format(run->arena, "%s%s%s", path,
				     path[strlen(path) - 1] == '/' ? "" : "/", entries[i]->d_name);
		free(entries[i]);
		if (!reader_open_entry(name, &reader, &now)) {
			add_process(run, reader, &room);
			continue;
		}
		note_unreadable(run, &now, &unreadable_room);
		if (first.code == READER_E_NONE_FOUND)
			first = now;
	}
	if (count >= 0)
		free(entries);
	if (run->count)
		return 0;
	if (error)
		*error = first;
	return first.code;
}

/* A pack opens if one of its recordings does. */
static int open_pack(struct run *run, const char *path, struct reader_error *error)
{
	struct reader_error first = { .code = READER_E_NONE_FOUND }, now;
	size_t room = 0, unreadable_room = 0;
	int code = pack_open(path, &run->pack, error);

	if (code)
		return code;
	for (size_t i = 0; i < pack_count(run->pack); i++) {
		struct reader *reader;

		if (!pack_recording(run->pack, i, &reader, &now)) {
			add_process(run, reader, &room);
			continue;
		}
		note_unreadable(run, &now, &unreadable_room);
		if (first.code == READER_E_NONE_FOUND)
			first = now;
	}
	if (run->count)
		return 0;
	if (error)
		*error = first;
	return first.code;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return *path && !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* "DIRECTORY/#3" without the number; 0: it is none. */
static size_t run_of_path(const char *path, char *directory, size_t bytes)
{
	const char *hash = strrchr(path, '#');
	size_t number = 0, length = hash ? (size_t)(hash - path) : 0;
	char *end;

	if (!length || length >= bytes || path[length - 1] != '/' || hash[1] < '0' ||
	    hash[1] > '9' || !access(path, F_OK))
		return 0;
	snprintf(directory, bytes, "%.*s", (int)length, path);
	number = strtoull(hash + 1, &end, 10);
	return *end || !is_directory(directory) ? 0 : number;
}

int run_open_number(struct run *run, const char *path, size_t number, struct reader_error *error)
{
	char directory[PATH_MAX];
	size_t named = run_of_path(path, directory, sizeof directory);
	struct reader *reader;
	size_t room = 0;
	int code;
	*run = (struct run){ .arena = arena_new() };
	if (named) {
		path = directory;
		number = number ? number : named;
	}
	if (is_directory(path)) {
		code = open_directory(run, path, error);
	} else if (pack_is(path)) {
		code = open_pack(run, path, error);
	} else {
		code = reader_open(path, &reader, error);
		if (!code)
			add_process(run, reader, &room);
	}
	if (!code)
		read_all(run, number);
	if (!code && !run->count) {
		code = READER_E_NO_RUN;
		if (error)
			*error = (struct reader_error){ .code = code };
	}
	return code;
}

/* ---- one run after another ---- */

void run_catalog_read(struct run_catalog *catalog, const char *path)
{
	struct run run = { .arena = arena_new() };

	*catalog = (struct run_catalog){ .arena = arena_new() };
	if (is_directory(path) && !open_directory(&run, path, NULL)) {
		catalog->run_of = xalloc_zeroed(run.count, sizeof *catalog->run_of);
		group(&run, catalog->run_of);
		catalog->run_count = run.run_count;
		catalog->paths = arena_zeroed(catalog->arena, run.count, sizeof *catalog->paths);
		catalog->count = run.count;
	}
	for (size_t i = 0; i < catalog->count; i++)
		catalog->paths[i] = arena_format(catalog->arena, "%s",
						 run.processes[i].reader->path);
	run_fini(&run);
}

void run_catalog_fini(struct run_catalog *catalog)
{
	free(catalog->run_of);
	arena_free(catalog->arena);
}

int run_open_listed(struct run *run, const struct run_catalog *catalog, size_t number,
		    struct reader_error *error)
{
	struct reader_error first = { .code = READER_E_NO_RUN }, now;
	size_t room = 0, unreadable_room = 0;

	*run = (struct run){ .arena = arena_new() };
	for (size_t i = 0; i < catalog->count; i++) {
		struct reader *reader;

		if (catalog->run_of[i] != number)
			continue;
		if (!reader_open_entry(catalog->paths[i], &reader, &now)) {
			add_process(run, reader, &room);
			continue;
		}
		note_unreadable(run, &now, &unreadable_room); /* it was readable before */
		first = now;
	}
	if (!run->count) {
		if (error)
			*error = first;
		return first.code;
	}
	parallel_each(run->count, 0, read_meta, run);
	parallel_each(parts_of(run), 0, read_part, run);
	run->run_count = catalog->run_count;
	run->run_number = number;
	return 0;
}

int run_open(struct run *run, const char *path, struct reader_error *error)
{
	return run_open_number(run, path, 0, error);
}

int run_open_memory(struct run *run, const void *data, uint64_t bytes, struct reader_error *error)
{
	struct reader *reader;
	size_t room = 0;
	int code;
	*run = (struct run){ .arena = arena_new() };
	code = reader_open_memory(data, bytes, &reader, error);
	if (code)
		return code;
	add_process(run, reader, &room);
	read_all(run, 0);
	return 0;
}

bool run_keep_pid(struct run *run, uint32_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < run->count; i++) {
		if (run->processes[i].reader->header.pid == pid)
			run->processes[kept++] = run->processes[i];
		else
			close_process(&run->processes[i]);
	}
	run->count = kept;
	return kept;
}

void run_merge_call_sites(struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		struct run_process *process = &run->processes[i];
		struct stack_identities merged =
			stack_identities(process->reader, &process->meta, run->symbols);

		reader_merge_stacks(process->reader, &merged);
		reader_drop(process->reader, CUF_SEC_STACK_INDEX);
		reader_drop(process->reader, CUF_SEC_STACK_FRAMES);
	}
}

void run_fini(struct run *run)
{
	for (size_t i = 0; i < run->count; i++)
		close_process(&run->processes[i]);
	free(run->processes);
	free(run->unreadable);
	pack_close(run->pack);
	arena_free(run->arena);
}

/* All moments from the last event on are one: now. */
static uint64_t moment_of(const struct run_process *process, uint64_t seq)
{
	const struct events *events = process->events;

	if (seq >= events->last_seq && seq >= events->framework->last_seq)
		return CUF_UNKNOWN;
	return seq;
}

bool run_is_at(const struct run_process *process, uint64_t seq)
{
	return process->live_valid && process->live_seq == moment_of(process, seq);
}

struct sweep_consumer run_expect(struct run_process *process, const uint64_t *seqs, size_t count)
{
	crossings_free(process->crossings);
	process->crossings = crossings_new(process->events, seqs, count);
	return crossings_consumer(process->crossings);
}

static void go_back(const struct run_process *process, uint64_t from, uint64_t seq,
		    struct liveset *live, struct replay_exact *exact)
{
	struct crossings *moments = process->crossings, *own = NULL;
	struct sweep_consumer consumer;

	if (!crossings_have(moments, seq)) {
		moments = own = crossings_new(process->events, &seq, 1);
		consumer = crossings_consumer(own);
		sweep_events(process->events, &consumer, 1);
	}
	replay_back(process->events, moments, from, seq, live, exact);
	crossings_free(own);
}

void run_live_apart(const struct run_process *process, uint64_t seq, struct liveset *live)
{
	struct replay_exact exact;

	seq = moment_of(process, seq);
	replay_ledger(process->reader, live, &exact);
	if (seq != CUF_UNKNOWN)
		go_back(process, CUF_UNKNOWN, seq, live, &exact);
}

const struct liveset *run_live(struct run_process *process, uint64_t seq, bool *exact)
{
	seq = moment_of(process, seq);
	if (!process->live_valid || seq > process->live_seq) {
		liveset_fini(&process->live);
		read_ledger(process);
	}
	if (seq < process->live_seq)
		go_back(process, process->live_seq, seq, &process->live, &process->live_exact);
	process->live_seq = seq;
	*exact = process->live_exact.device;
	return &process->live;
}

static void sum_up(struct live_sums *sums, const struct liveset *live)
{
	size_t at = 0;

	*sums = (struct live_sums){ 0 };
	for (const struct cuf_block *block; (block = liveset_next(live, &at));) {
		/* damage: no such size, or no such kind */
		if (block->bytes >> CUF_KEY_SHIFT || block->kind >= CUF_KIND_MAX)
			continue;
		sums->bytes[least_of(block->device, CUF_DEVICES_MAX)][block->kind] += block->bytes;
		if (block->flags & CUF_EVENT_HOST_LOCATION)
			sums->on_host[block->kind] += block->bytes;
	}
}

const struct live_sums *run_sums(struct run_process *process, uint64_t seq)
{
	bool exact;

	seq = moment_of(process, seq);
	if (!process->sums_valid || process->sums_seq != seq)
		sum_up(&process->sums, run_live(process, seq, &exact));
	process->sums_seq = seq;
	process->sums_valid = true;
	return &process->sums;
}

/* Takes the sums back from now. */
static void sum_back(struct live_sums *sums, const struct events *events, uint64_t to)
{
	for (size_t i = events_after(events, to); i < events->count; i++) {
		struct cuf_event event = events_get(events, i);
		uint64_t bytes = event.bytes;

		events_passed(events, i);
		if (!event.kind || bytes >> CUF_KEY_SHIFT)
			continue;
		if (event.op == CUF_OP_ALLOC || event.op == CUF_OP_RESTORE)
			bytes = -bytes;
		else if (event.op != CUF_OP_FREE)
			continue;
		sums->bytes[least_of(event.device, CUF_DEVICES_MAX)][event.kind] += bytes;
		if (event.flags & CUF_EVENT_HOST_LOCATION)
			sums->on_host[event.kind] += bytes;
	}
}

struct live_sums run_sums_counted(struct run_process *process, uint64_t seq)
{
	struct live_sums sums = *run_sums(process, CUF_UNKNOWN);

	sum_back(&sums, process->events, seq);
	sum_back(&sums, process->events->framework, seq);
	return sums;
}

/* For the live sets of all processes together. */
enum { LIVE_BYTES_MAX = 192 << 20 };

void run_rest(const struct run *run, struct run_process *process)
{
	static const enum cuf_section_id walked[] = { CUF_SEC_RING, CUF_SEC_FRAMEWORK_RING };

	/* a small ring is walked without being dropped, and a run may have many */
	for (size_t i = 0; run->count > 1 && i < sizeof walked / sizeof *walked; i++)
		reader_drop(process->reader, walked[i]);
	if (liveset_bytes(&process->live) <= LIVE_BYTES_MAX / run->count ||
	    run->count == 1)
		return;
	/* sums of this moment are asked for again: those of page-locked memory, for one */
	if (process->live_valid)
		run_sums(process, process->live_seq);
	liveset_fini(&process->live);
	process->live_valid = false;
}

void run_forget_live(struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		liveset_fini(&run->processes[i].live);
		run->processes[i].live_valid = false;
	}
}
