/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a directory of recordings, as of now: what top, serve and watch show.
 *
 * A process has a name that another one takes over when it has ended: the restarts of a server are
 * one line of counters. Levels are read by watch_refresh, in microseconds a file. Passes are made
 * by watch_work in a process of their own: the next one when a hundred times the cost of the last
 * one is over, and of one recording every ten seconds (a thirtieth of the warm-up). What ended is
 * shown for WATCH_KEEP_S seconds, and gets a last pass.
 *
 * Contract: one thread. Nothing is written below the directory. Times `_ns` of this header are
 * CLOCK_MONOTONIC of the reader, 0 for "not yet". An array and its count are one pair.
 */
#pragma once

#include "analysis/watch/finder.h"
#include "analysis/watch/levels.h"
#include "analysis/watch/pass.h"
#include "analysis/watch/worker.h"

enum { WATCH_KEEP_S = 300, WATCH_SITES = 8, WATCH_LARGEST_SITES = 5 };

/* What only rises. Of a name: over all processes that had it. */
struct watch_counters {
	uint64_t allocations[CUF_DEVICES_MAX], frees[CUF_DEVICES_MAX];
	uint64_t failures[CUF_DEVICES_MAX + 1][OUTCOME_MAX]; /* as in struct pass */
	uint64_t lost[CUF_LOST_MAX];
	uint64_t overwritten[3]; /* device, host, framework */
	uint64_t recorder_ns;
};

/* A call site that is shown once is shown as long as its process is. */
struct shown_site { char name[PASS_TEXT]; enum watch_memory memory; unsigned device; };

struct watch_process {
	char *path;
	char name[128];
	struct identity identity;
	struct levels levels;
	struct watch_counters counters; /* failures: of the passes so far */
	struct pass *pass;       /* the last whole one; NULL */
	uint64_t pass_ns;        /* when it was made */
	char pass_error[PASS_SENTENCE]; /* why the last attempt failed; "" */
	bool is_error_said;      /* for the owner of the watch: cleared with a new error */
	bool is_end_noted;       /* for the owner, too */
	uint64_t due_ns;         /* of the next one */
	uint64_t seen_ns;        /* it was found */
	uint64_t gone_ns;        /* it was seen to have ended; 0: it may run */
	bool has_last_pass;      /* made after it had ended */
	bool is_succeeded;       /* another process has its name: it is not shown any more */
	ino_t inode;             /* of its file at the last scan */
	bool is_listed;          /* it was there */
	struct shown_site sites[WATCH_SITES];
	size_t site_count, leak_count;
};

struct watch_name { char name[128]; struct watch_counters sum; };
struct watch_unreadable { char *path; const char *why; };
struct watch_past { char *path; ino_t inode; };

struct watch {
	struct finder finder;
	struct worker worker;
	struct watch_process **processes; size_t count, room; /* by name */
	struct watch_name *names; size_t name_count, name_room;
	struct watch_unreadable *unreadable; size_t unreadable_count, unreadable_room;
	struct watch_past *past; size_t past_count, past_room; /* recordings that are not shown */
	const char *asked;       /* the path of the pass that is being made; NULL */
	bool asked_last;         /* its process had ended before */
	bool is_pending;         /* a file was not begun yet */
	uint64_t scanned_ns, free_ns; /* the worker may be asked again */
	double share;            /* of a processor, for passes */
	uint64_t pass_ns;        /* between two passes over one recording */
};

struct watch_options {
	uint64_t memory_bytes; /* of the process that makes passes */
	double share;          /* of a processor that they may use: 0.01 */
	double warm_up_s;      /* of explain/judge.h; 0: the usual */
};

/* 0, or -1 with errno: the directory cannot be read. It is borrowed. */
int watch_open(struct watch *watch, const char *directory, const struct watch_options *options);
void watch_close(struct watch *watch);

void watch_refresh(struct watch *watch);
/* Takes a finished pass and asks for the next one. Returns the milliseconds after which it wants to
 * be called again, unless watch->worker.socket becomes readable before. */
int watch_work(struct watch *watch);

bool watch_runs(const struct watch_process *process);
/* Every process that is shown has been analysed, or cannot be. */
bool watch_is_complete(const struct watch *watch);
/* Of all processes that had the name. */
struct watch_counters watch_counters_of(const struct watch *watch, const char *name);
/* Below the directory. */
const char *watch_short_path(const struct watch *watch, const char *path);
/* The row of a site in the last pass; NULL: it holds nothing now. */
const struct pass_site *watch_site_now(const struct watch_process *process,
				      const struct shown_site *site);
uint64_t watch_now_ns(void);
