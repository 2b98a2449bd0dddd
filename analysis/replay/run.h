/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run: the recordings of a file, of a directory, of a pack, or of a piece of memory.
 *
 * Contract: run_open returns 0 or a reader error; run_fini frees whatever it filled. Processes are
 * sorted by start. Different processes may be used by different threads at the same time. A
 * directory opens if one of its recordings does; the others are listed in
 * `unreadable`.
 */
#pragma once

#include "analysis/recording/events.h"
#include "analysis/replay/liveset.h"
#include "analysis/recording/meta.h"
#include "analysis/replay/live_peaks.h"
#include "analysis/replay/replay.h"

struct driver_history;
struct failures;
struct pack;
struct symbols;

/*
 * What was live at a moment, in bytes, by device and kind. A block without a device of this run
 * counts in the last row, and one of 2^58 bytes or more is damage and left out. on_host: the part
 * that is physical memory of the host.
 */
struct live_sums {
	uint64_t bytes[CUF_DEVICES_MAX + 1][CUF_KIND_MAX];
	uint64_t on_host[CUF_KIND_MAX];
};

struct run_process {
	struct reader *reader;
	struct meta meta;
	struct events *events;
	struct failures *failures; /* NULL: no request failed */
	struct driver_history *driver; /* NULL before the first sweep */
	struct live_peaks peaks; /* with facts_options.all_peaks */
	struct crossings *crossings; /* moments that run_live needs no sweep for; NULL */
	/* the last live set: the devices of a process ask for the same moment */
	struct liveset live;
	uint64_t live_seq;
	bool live_valid;
	struct replay_exact live_exact;
	/* the last sums; they stay when the live set is freed */
	struct live_sums sums;
	uint64_t sums_seq;
	bool sums_valid;
};

struct run {
	struct arena *arena;
	struct run_process *processes; size_t count;
	size_t run_count, run_number; /* runs in the directory (run_groups.h); which one is open */
	const char **unreadable; size_t unreadable_count; /* sentences, in the arena */
	struct pack *pack; /* that it was read from; NULL */
	/* set by who reads it, borrowed: names of functions in its programs' files; NULL: none */
	struct symbols *symbols;
	unsigned threads; /* that read it; 0: as many as there are CPUs */
};

/* Of a directory with several runs, the last one. */
int run_open(struct run *run, const char *path, struct reader_error *error);
/* The run of that number, from 1, by start; 0: the last one, or of "DIRECTORY/#3" the third. */
int run_open_number(struct run *run, const char *path, size_t number, struct reader_error *error);

/* Which recordings of a directory are of which run, for whoever opens one run after another: to
 * find out, all of them are read. Anything but a directory has no runs. */
struct run_catalog {
	struct arena *arena;
	const char **paths; size_t count; /* by start */
	size_t *run_of; /* of each path, from 1 */
	size_t run_count;
};
void run_catalog_read(struct run_catalog *catalog, const char *path);
void run_catalog_fini(struct run_catalog *catalog);
/* The run of that number, from 1. What cannot be read at all is not listed as unreadable. */
int run_open_listed(struct run *run, const struct run_catalog *catalog, size_t number,
		    struct reader_error *error);

int run_open_memory(struct run *run, const void *data, uint64_t bytes, struct reader_error *error);
void run_fini(struct run *run);
/* Closes all processes but those of this pid: several after an exec. False: there is none. */
bool run_keep_pid(struct run *run, uint32_t pid);

/* Makes call sites that print alike one site, in everything that is read from here on. Without
 * symbols only the recordings' names are compared. */
void run_merge_call_sites(struct run *run);

/* Takes part in a sweep, after which run_live has these moments; then crossings_end. */
struct sweep_consumer run_expect(struct run_process *process, const uint64_t *seqs, size_t count);
/*
 * The blocks live after event seq (CUF_UNKNOWN: now), borrowed until the next call for this
 * process. A moment that was not expected costs a sweep; going back to an earlier one costs less
 * than to a later one. *exact is that of the driver's blocks; process->live_exact has the
 * framework's, too.
 */
const struct liveset *run_live(struct run_process *process, uint64_t seq, bool *exact);
/* The same in a set of the caller's own; that of run_live stays. */
void run_live_apart(const struct run_process *process, uint64_t seq, struct liveset *live);
/* Whether run_live has just that moment. */
bool run_is_at(const struct run_process *process, uint64_t seq);
/* The sums of run_live, which need no live set where they are asked for again. */
const struct live_sums *run_sums(struct run_process *process, uint64_t seq);
/* The sums of now less what the events since changed, without a live set of that moment. Blocks
 * that took the place of others make it wrong. */
struct live_sums run_sums_counted(struct run_process *process, uint64_t seq);
/*
 * Ends a pass over one process: its live set is freed where those of all processes together would
 * need too much memory. The next run_live makes it again.
 */
void run_rest(const struct run *run, struct run_process *process);
/* Frees the last live sets of all processes, for what streams the events afterwards. */
void run_forget_live(struct run *run);
