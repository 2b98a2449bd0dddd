/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the memory that ran out: rows by call site, largest first, that sum to the
 * total. Contract: holders_* fill a list that holders_free frees; sites that print alike
 * are one row. Host rows that rest on samples are scaled to what is resident. Rows are made
 * of facts only: which site the cause is about comes from the cause.
 */
#pragma once

#include "analysis/view/text/text.h"

enum holder_sort {
	HOLDER_SITE,    /* blocks of a call site */
	/* what no call site allocated: rounding, contexts, files, other processes */
	HOLDER_PART,
	HOLDER_FREE,    /* printed last */
	HOLDER_OUTSIDE  /* not part of the total: managed memory */
};

struct holder {
	enum holder_sort sort;
	struct place place;   /* of a SITE */
	char words[160];      /* of the others */
	const char *role;     /* as the facts have it; NULL unknown */
	bool role_is_likely;  /* inferred from when its blocks were allocated */
	bool leaks, suspect;  /* suspect: the cause is about it */
	bool is_process;      /* another process: there may be many */
	const char *program;  /* of recorded processes of this name; NULL */
	unsigned processes;   /* more of them than one */
	bool sampled;         /* an estimate: two digits */
	enum fact_shape shape;
	bool long_run;        /* seen for a second or more */
	uint64_t bytes, count;
};

struct holders {
	struct holder *rows; size_t count, room;
	uint64_t total_bytes; /* CUF_UNKNOWN: the driver's total is unknown */
	char title[96];
};

/* The device at its moment. */
void holders_of_device(const struct text *text, const struct fact_device *device,
		       struct holders *out);
/* Host memory of a process. No rows when nothing is known. */
void holders_of_host(const struct text *text, const struct fact_process *process,
		     struct holders *out);
/* Page-locked host memory of a process, by call site. */
void holders_of_locked(const struct text *text, const struct fact_process *process,
		       struct holders *out);
/* A title and at most `rows` rows; smaller ones are summed up in one. Returns the lines printed. */
unsigned holders_print(const struct text *text, const struct holders *holders, unsigned rows);
void holders_free(struct holders *holders);
/* "growing", "steady", "". */
const char *holder_trend(const struct holder *row);
/* What a framework reserved on the device and gave to nobody. */
void holders_name_slack(const struct fact_device *device, char *out, size_t bytes);

/* "at the failure", "at the end", "now", or the time that was asked for. */
void holders_moment(const struct text *text, const struct fact_moment *moment, char *out,
		    size_t bytes);
