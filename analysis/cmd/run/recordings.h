/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings on disk: which are in a directory, which belong to one run, which of them to show first.
 * Contract: only headers are read; files that are no recordings are passed over. recordings_free frees all that a list
 * owns. Times are CLOCK_REALTIME nanoseconds.
 */
#ifndef CMD_RECORDINGS_H
#define CMD_RECORDINGS_H

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
	bool replaced;            /* ended by exec: another program took over */
	uint32_t launcher;        /* pid of the `cuflight run` it descends from; 0 none */
	bool every_host_event;    /* host=full */
	bool of_run;              /* set by recordings_mark_run */
};

struct recordings {
	struct recording_file *files; size_t count, room;
	size_t older;             /* met by the scan and left out */
};

/* Appends what lies in directory and started at or after since_ns; depth: levels of directories below it to look into. */
void recordings_scan(struct recordings *list, const char *directory, unsigned depth, uint64_t since_ns);
void recordings_free(struct recordings *list);

/* Marks the recordings of the process pid, of its recorded descendants, and (launcher not 0) of all that this `cuflight
 * run` started, however many unrecorded processes lie between. Returns how many. */
size_t recordings_mark_run(struct recordings *list, uint32_t pid, uint32_t launcher);
/* Marks the run that the youngest recording belongs to. 0: the list is empty. */
size_t recordings_mark_newest_run(struct recordings *list);
/* A chain of exec (sh -c, env, a version shim) is one process, and what came before its last image met no CUDA: removes
 * such recordings of the marked run from disk and list, unless they hold every host event; the last image's takes the
 * name of its pid's first. Nothing is removed that no later image of the same process follows. Returns how many. */
size_t recordings_drop_replaced(struct recordings *list);
/* Of the marked ones, the one to explain: it failed requests, else it met CUDA, else it is the run's first
 * that was not replaced by exec. NULL: none. */
const struct recording_file *recordings_best(const struct recordings *list);

/* The path as one would type it here: without the current directory in front, quoted for the shell where needed. */
void recordings_show_path(const char *path, char *out, size_t bytes);

#endif
