/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recording/pack/pack_writer.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <stdlib.h>
#include "analysis/base/xalloc.h"

enum { OWNER_ONLY = 0600, CHUNK_BYTES = 1 << 20 };

struct pack_writer {
	struct archive *archive;
	bool failed;
};

static void note(struct pack_writer *writer, la_ssize_t result)
{
	if (result < 0 && result != ARCHIVE_WARN)
		writer->failed = true;
}

struct pack_writer *pack_writer_begin(FILE *out)
{
	struct pack_writer *writer = xalloc_zeroed(1, sizeof *writer);

	writer->archive = archive_write_new();
	note(writer, archive_write_set_format_pax_restricted(writer->archive));
	note(writer, archive_write_add_filter_zstd(writer->archive));
	note(writer, archive_write_set_bytes_in_last_block(writer->archive, 1)); /* no padding */
	note(writer, archive_write_open_FILE(writer->archive, out));
	return writer;
}

void pack_writer_add(struct pack_writer *writer, const char *name, const void *data, size_t bytes)
{
	struct archive_entry *entry;

	if (writer->failed)
		return;
	entry = archive_entry_new();
	archive_entry_set_pathname(entry, name);
	archive_entry_set_size(entry, (la_int64_t)bytes);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, OWNER_ONLY);
	archive_entry_set_mtime(entry, 0, 0);
	note(writer, archive_write_header(writer->archive, entry));
	for (size_t at = 0; at < bytes && !writer->failed; at += CHUNK_BYTES)
		note(writer, archive_write_data(writer->archive, (const char *)data + at,
						bytes - at < CHUNK_BYTES ? bytes - at
									 : CHUNK_BYTES));
	archive_entry_free(entry);
}

int pack_writer_end(struct pack_writer *writer, char *error, size_t error_bytes)
{
	int failed;

	if (!writer->failed)
		note(writer, archive_write_close(writer->archive));
	failed = writer->failed ? -1 : 0;
	snprintf(error, error_bytes, "%s", archive_error_string(writer->archive)
						   ? archive_error_string(writer->archive)
						   : "write error");
	archive_write_free(writer->archive);
	free(writer);
	return failed;
}
