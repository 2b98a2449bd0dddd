/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pack: recordings with the names of their functions and their report, in one file that `tar`
 * opens too (tar, compressed with zstd). A recording that somebody compressed with zstd is read as
 * a pack with one recording and no names.
 *
 * Contract. A pack is hostile. Nothing of it becomes a file with a name: recordings are unpacked
 * into one unnamed temporary file (TMPDIR, else /tmp), which is gone when the process ends, and
 * pages of zeros take no room there. What it may unpack to is bounded by its size. pack_open
 * returns 0 or a negative enum reader_error_code with *error filled. Readers of pack_recording do
 * not outlive the pack. Entries with other names are skipped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "analysis/recording/reader.h"

#define PACK_RECORDINGS "recordings/" /* of its entries; what follows is the file's name */
#define PACK_NAMES "names.ndjson"     /* symbols/names_file.h */

struct pack;

/* Does the file begin like one? */
bool pack_is(const char *path);
int pack_open(const char *path, struct pack **out, struct reader_error *error);
void pack_close(struct pack *pack); /* NULL is fine */

size_t pack_count(const struct pack *pack);
int pack_recording(const struct pack *pack, size_t i, struct reader **out,
		   struct reader_error *error);
/* What names_file_read takes; "" where the pack has no names. */
char *pack_names(struct pack *pack);

/*
 * Writes a pack. Equal entries give an equal file: names, times
 * and owners are fixed.
 *
 * Contract: entries appear in the order in which they were added. The first failure is kept, and
 * what follows does nothing; pack_writer_end returns -1 then, with the reason, and frees the
 * writer. The stream is the caller's.
 */

struct pack_writer;
struct pack_writer *pack_writer_begin(FILE *out);
void pack_writer_add(struct pack_writer *writer, const char *name, const void *data, size_t bytes);
int pack_writer_end(struct pack_writer *writer, char *error, size_t error_bytes);
