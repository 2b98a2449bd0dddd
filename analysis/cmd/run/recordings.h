/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings on disk: which are in a directory, which belong to one run, and which to show first.
 * Contract: only headers and META are read. Files that are no recordings are skipped.
 * recordings_free frees everything that a list owns. Times are CLOCK_REALTIME nanoseconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recording_file {
	char *path;
	uint32_t pid, ppid;
	uint64_t start_ns;
	uint64_t bytes;
	uint64_t incident_count;
	bool saw_cuda;
	bool replaced;            /* it ended by exec: the process continued as another program */
	uint32_t launcher;        /* pid of the `cuflight run` that it descends from; 0: none */
	bool every_host_event;    /* host=full */
	bool of_run;              /* set by recordings_mark_run */
};

struct recordings {
	struct recording_file *files;
	size_t count, room;
	size_t older;             /* recordings that the scan left out */
};

/*
 * Appends the recordings in directory that started at or after since_ns. depth: levels of
 * directories below it to search.
 */
void recordings_scan(struct recordings *list, const char *directory, unsigned depth,
		     uint64_t since_ns);
void recordings_free(struct recordings *list);

/*
 * Marks the recordings of the process pid and of its recorded descendants. With a launcher, also
 * all that this `cuflight run` started, however many unrecorded processes are between. Returns how
 * many are marked.
 */
size_t recordings_mark_run(struct recordings *list, uint32_t pid, uint32_t launcher);

/* Marks the run that the youngest recording belongs to. 0: the list is empty. */
size_t recordings_mark_newest_run(struct recordings *list);

/*
 * A chain of exec (sh -c, env, a version shim) is one process. This removes, from disk and list,
 * recordings of the marked run whose program was replaced before it used CUDA. The recording of
 * the last program takes the first one's name. Recordings with host=full stay, and so does each
 * one without a successor. Returns how many were removed.
 */
size_t recordings_drop_replaced(struct recordings *list);

/*
 * The marked recording to explain: one with failed requests, else one that used CUDA, else the
 * first that was not replaced by exec. NULL: none is marked.
 */
const struct recording_file *recordings_best(const struct recordings *list);

/* Whether the process of a recording is gone. */
bool process_has_ended(uint32_t pid);

/* The path as one would type it here: relative if possible, and quoted for the shell. */
void recordings_show_path(const char *path, char *out, size_t bytes);
