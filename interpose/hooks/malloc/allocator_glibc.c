/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc's statistics. mallinfo2 allocates nothing and returns sums. malloc_info has free chunks by
 * size, but writes to a FILE. Creating one takes the lock of stdio's list, which a thread that
 * hangs in fflush(NULL) may hold permanently. exit() takes that lock anyway, so malloc_info is
 * called only there. Both count the blocks in the threads' caches as allocated.
 */
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/hooks/malloc/allocator_stats.h"

/* ---- malloc_info's XML, line by line as it comes ---- */

enum { CLASSES = 48, LINE_BYTES = 256 };

static struct info {
	char line[LINE_BYTES];   /* longer lines are cut */
	size_t used;
	bool in_heap;
	uint64_t heap_binned_bytes, heap_free_bytes;    /* of the arena being read */
	uint64_t arena_count, free_bytes, top_bytes, largest_bytes;
	uint64_t system_bytes, mapped_bytes, mapped_count;
	uint64_t class_count[CLASSES], class_bytes[CLASSES]; /* class i: [1 << i, 2 << i) */
} info;

/* key includes the opening quote, e.g. `size="`. */
/* A value of an XML attribute in decimal. 0 when the line lacks it. */
static uint64_t attribute(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	if (!at)
		return 0;
	return strtoull(at + strlen(key), NULL, 10);
}

/* Lines of malloc_info are fixed in form, so no XML parser is needed. */
static bool begins(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}

/* A bin of `count` chunks. Its class is that of their mean size. chunk_max: the bin's upper end. */
static void count_chunks(uint64_t chunk_max, uint64_t count, uint64_t bytes)
{
	unsigned class = 0;
	if (!count)
		return;
	if (bytes / count)
		class = 63u - (unsigned)__builtin_clzll(bytes / count);
	if (class >= CLASSES)
		class = CLASSES - 1;
	info.class_count[class] += count;
	info.class_bytes[class] += bytes;
	if (chunk_max > info.largest_bytes)
		info.largest_bytes = chunk_max;
}

/* Free bytes of an arena that are in no bin are its top. The top is free and contiguous, so it may
 * be the largest free block. */
static void end_heap(void)
{
	uint64_t top = 0;
	if (info.heap_free_bytes > info.heap_binned_bytes)
		top = info.heap_free_bytes - info.heap_binned_bytes;
	info.free_bytes += info.heap_free_bytes;
	info.top_bytes += top;
	if (top > info.largest_bytes)
		info.largest_bytes = top;
	info.in_heap = false;
}

/* "<heap nr=...>" begins an arena. Outside of one are the sums of the process. */
static void parse_line(const char *line)
{
	line += strspn(line, " ");
	if (begins(line, "<heap ")) {
		info.in_heap = true;
		info.arena_count++;
		info.heap_binned_bytes = info.heap_free_bytes = 0;
	} else if (begins(line, "</heap>")) {
		end_heap();
	} else if (begins(line, "<size ") || begins(line, "<unsorted ")) {
		uint64_t bytes = attribute(line, "total=\"");
		info.heap_binned_bytes += bytes;
		count_chunks(attribute(line, "to=\""), attribute(line, "count=\""), bytes);
	} else if (info.in_heap && (begins(line, "<total type=\"fast\"") ||
				    begins(line, "<total type=\"rest\""))) {
		info.heap_free_bytes += attribute(line, "size=\"");
	} else if (!info.in_heap && begins(line, "<total type=\"mmap\"")) {
		info.mapped_count = attribute(line, "count=\"");
		info.mapped_bytes = attribute(line, "size=\"");
	} else if (!info.in_heap && begins(line, "<system type=\"current\"")) {
		info.system_bytes = attribute(line, "size=\"");
	}
}

/* The write function of the FILE. It collects lines; glibc may write any part of one. */
static ssize_t parse_bytes(void *cookie, const char *data, size_t bytes)
{
	(void)cookie;
	for (size_t i = 0; i < bytes; i++) {
		if (data[i] == '\n') {
			info.line[info.used] = 0;
			parse_line(info.line);
			info.used = 0;
		} else if (info.used + 1 < LINE_BYTES) {
			info.line[info.used++] = data[i];
		}
	}
	return (ssize_t)bytes;
}

/* The buffer is static: setvbuf keeps stdio from allocating one. Runs at the end of the process
 * only, on one thread. */
static bool read_info(void)
{
	static char buffer[4096];
	FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = parse_bytes });
	int failed;
	if (!file)
		return false;
	memset(&info, 0, sizeof info);
	setvbuf(file, buffer, _IOFBF, sizeof buffer);
	failed = malloc_info(0, file);
	fclose(file);
	return !failed && info.arena_count;
}

/* ---- the lines ---- */

/* Sums over all arenas, without sizes of chunks. mallinfo2 takes the lock of each arena in turn and
 * allocates nothing. */
static void add_sums(struct cuf_text *text)
{
	struct mallinfo2 sums = mallinfo2();
	cuf_stats_add(text, "system_bytes", sums.arena + sums.hblkhd);
	cuf_stats_add(text, "live_bytes", sums.uordblks + sums.hblkhd);
	cuf_stats_add(text, "free_bytes", sums.fordblks);
	cuf_stats_add(text, "free_count", sums.ordblks + sums.smblks);
	cuf_stats_add(text, "top_bytes", sums.keepcost); /* of the main arena only */
	cuf_stats_add(text, "mapped_bytes", sums.hblkhd);
	cuf_stats_add(text, "mapped_count", sums.hblks);
}

/* Blocks with a map of their own are in no arena. */
static void add_info(struct cuf_text *text)
{
	uint64_t live_bytes = info.mapped_bytes;
	uint64_t free_count = info.arena_count; /* each arena has a top */
	if (info.system_bytes > info.free_bytes)
		live_bytes += info.system_bytes - info.free_bytes;
	for (unsigned i = 0; i < CLASSES; i++)
		free_count += info.class_count[i];
	cuf_stats_add(text, "system_bytes", info.system_bytes + info.mapped_bytes);
	cuf_stats_add(text, "live_bytes", live_bytes);
	cuf_stats_add(text, "free_bytes", info.free_bytes);
	cuf_stats_add(text, "free_count", free_count);
	cuf_stats_add(text, "top_bytes", info.top_bytes);
	cuf_stats_add(text, "mapped_bytes", info.mapped_bytes);
	cuf_stats_add(text, "mapped_count", info.mapped_count);
	cuf_stats_add(text, "arena_count", info.arena_count);
	cuf_stats_add(text, "largest_bytes", info.largest_bytes);
	for (unsigned i = 0; i < CLASSES; i++)
		if (info.class_count[i])
			cuf_stats_add_class(text, "free", 1ull << i, info.class_count[i],
					    info.class_bytes[i]);
}

/* malloc_info only at the end of the process (see above). When it fails, the sums remain. */
bool cuf_stats_glibc(const struct cuf_allocator *allocator, enum cuf_moment moment,
		     struct cuf_text *text)
{
	if (moment == CUF_MOMENT_END && read_info())
		add_info(text);
	else
		add_sums(text);
	return true;
}

void cuf_version_glibc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	cuf_text_add(text, gnu_get_libc_version());
}
