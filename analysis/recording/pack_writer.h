/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a pack (pack.h): tar, compressed with zstd. Equal entries give an equal file: names, times
 * and owners are fixed.
 *
 * Contract: entries appear in the order in which they were added. The first failure is kept, and
 * what follows does nothing; pack_writer_end returns -1 then, with the reason, and frees the
 * writer. The stream is the caller's.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct pack_writer;
struct pack_writer *pack_writer_begin(FILE *out);
void pack_writer_add(struct pack_writer *writer, const char *name, const void *data, size_t bytes);
int pack_writer_end(struct pack_writer *writer, char *error, size_t error_bytes);
