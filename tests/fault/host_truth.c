/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_truth FOLDER [some]: reads from stdin what processes print about their host blocks
 * (tests/victims/host/host_ways.h) and compares it with their recordings in FOLDER: every
 * allocation and free of such a size, the live blocks in the ledger, and the longest run of equal
 * frames in the stacks. Prints each difference. Exits 1 when there was one, or nothing to compare.
 * some: a process may have no recording (in sampled mode forked children keep theirs in memory).
 */
#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/recording/events.h"
#include "analysis/recording/reader.h"

enum { RECORDINGS = 64 };

struct seen { unsigned long allocs, frees, live; unsigned run_least, run_most; };

static struct reader *recordings[RECORDINGS];
static unsigned recording_count, compared, wrong;
static bool some;

__attribute__((format(printf, 1, 2))) static void complain(const char *format, ...)
{
	va_list args;

	wrong++;
	va_start(args, format);
	fputs("# ", stdout);
	vprintf(format, args);
	va_end(args);
}

static void open_all(const char *folder)
{
	DIR *directory = opendir(folder);
	struct reader_error error;
	struct dirent *entry;
	char path[4096];

	while (directory && (entry = readdir(directory)) && recording_count < RECORDINGS) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (reader_open(path, &recordings[recording_count], &error))
			complain("%s cannot be read\n", path);
		else
			recording_count++;
	}
	if (directory)
		closedir(directory);
}

static unsigned longest_run(const struct reader *reader, uint32_t id)
{
	const struct cuf_stack *stack = id ? reader_at(reader, CUF_SEC_STACK_INDEX, id - 1) : NULL;
	unsigned run = 0, longest = 0;

	for (unsigned i = 0; stack && i < stack->depth; i++) {
		const uint64_t *frame = reader_at(reader, CUF_SEC_STACK_FRAMES, stack->first + i);
		const uint64_t *below =
			i ? reader_at(reader, CUF_SEC_STACK_FRAMES, stack->first + i - 1) : NULL;
		run = frame && below && *frame == *below ? run + 1 : 1;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void see_events(const struct reader *reader, uint64_t size, struct seen *seen)
{
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event;

	while (host_stream_next(stream, &event)) {
		int sign = event.bytes == size ? host_event_sign(event.op) : 0;
		if (sign > 0) {
			unsigned run = longest_run(reader, event.stack);
			seen->allocs++;
			seen->run_least = run < seen->run_least ? run : seen->run_least;
			seen->run_most = run > seen->run_most ? run : seen->run_most;
		}
		seen->frees += sign < 0;
	}
	host_stream_free(stream);
}

static struct seen look(const struct reader *reader, uint64_t size)
{
	struct seen seen = { .run_least = UINT32_MAX };

	see_events(reader, size, &seen);
	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_HOST_LEDGER); i++) {
		const struct cuf_host_block *block = reader_at(reader, CUF_SEC_HOST_LEDGER, i);
		seen.live += cuf_host_addr(block->word0) && cuf_host_bytes(block->word1) == size;
	}
	return seen;
}

static const struct reader *recording_of(unsigned pid)
{
	for (unsigned i = 0; i < recording_count; i++) {
		const struct cuf_header *h = &recordings[i]->header;
		if (h->pid != pid)
			continue;
		for (unsigned l = 0; l < CUF_LOST_MAX; l++)
			if (h->lost[l])
				complain("process %u: lost[%u] is %lu\n", pid, l,
				         (unsigned long)h->lost[l]);
		return recordings[i];
	}
	if (!some)
		complain("process %u: no recording\n", pid);
	return NULL;
}

static void compare(const struct reader *reader, unsigned pid, uint64_t size, unsigned long allocs,
                    unsigned long frees, long recursion)
{
	struct seen seen = look(reader, size);

	compared++;
	if (seen.live != allocs - frees)
		complain("process %u: %lu blocks of %lu bytes are live, %lu recorded\n", pid,
		         allocs - frees, (unsigned long)size, seen.live);
	if (!reader->header.host_overwritten && (seen.allocs != allocs || seen.frees != frees))
		complain(
			"process %u: %lu allocations and %lu frees of %lu bytes, %lu and %lu recorded\n",
			pid, allocs, frees, (unsigned long)size, seen.allocs, seen.frees);
	if (recursion >= 0 && seen.allocs &&
	    (seen.run_least != recursion || seen.run_most != recursion))
		complain("process %u: %ld calls deep at %lu bytes, %u to %u recorded\n", pid,
		         recursion, (unsigned long)size, seen.run_least, seen.run_most);
}

int main(int argc, char **argv)
{
	const struct reader *reader = NULL;
	char line[256];
	unsigned pid = 0;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: host_truth FOLDER [some] <TRUTH\n");
		return 2;
	}
	some = argc == 3;
	open_all(argv[1]);
	while (fgets(line, sizeof line, stdin)) {
		unsigned long size, allocs, frees;
		long recursion;
		if (sscanf(line, "process pid %u", &pid) == 1)
			reader = recording_of(pid);
		else if (reader && sscanf(line, "size %lu allocs %lu frees %lu recursion %ld",
		                          &size, &allocs, &frees, &recursion) == 4)
			compare(reader, pid, size, allocs, frees, recursion);
	}
	printf("# %u recordings, %u sizes compared, %u differences\n", recording_count, compared,
	       wrong);
	return wrong || !compared;
}
