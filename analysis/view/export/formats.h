/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats of other people's tools. A format is one descriptor, one file and one row in
 * formats.c; help, errors and the choice of defaults come from the descriptor.
 *
 * Contract. write gets rows with the filter applied and writes the whole document to target->file.
 * It returns 0, or -1 with a sentence in target->error. It need not check for full disks: the
 * command does. Names of hostile recordings are data: each format escapes them by its own rules.
 */
#pragma once

#include <stdio.h>
#include "analysis/facts/history/rows.h"

struct export_target {
	FILE *file;
	char error[320];
};

struct export_format {
	const char *name;      /* of --to */
	const char *ending;    /* of the file, when -o names a directory: ".folded" */
	const char *about;     /* one phrase: which tools read it */
	bool binary;           /* never written to a terminal */
	bool takes_moment;     /* the blocks live at --at; else the whole history, and no --at */
	/* It adds blocks up. Framework blocks lie inside device blocks, so without --kind they are
	 * left out. */
	bool sums;
	/* The recordings of one process only: the format has no place for more. */
	bool one_process;
	int (*write)(struct export_target *target, struct rows *rows);
};

extern const struct export_format export_folded, export_pprof, export_perfetto,
	export_torch_snapshot, export_heaptrack;

/* All formats, in the order of the help; NULL at the end. */
extern const struct export_format *const export_formats[];
const struct export_format *export_format_find(const char *name); /* NULL: none */
