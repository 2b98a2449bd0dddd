/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glibc's books. mallinfo2 allocates nothing and gives sums; malloc_info gives free chunks by size, but into a FILE, whose
 * making takes the lock of stdio's list: a thread that hangs in fflush(NULL) may hold that for ever. exit() takes it
 * anyway, so it is asked there alone. What lies in the threads' caches counts as handed out in both.
 */
#include <gnu/libc-version.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/hooks/malloc/allocator_books.h"

enum { CLASSES = 48, LINE_BYTES = 256 };

/* malloc_info's XML, taken line by line as it comes. */
static struct info {
	char line[LINE_BYTES];
	size_t used;
	bool in_heap;
	uint64_t heap_binned_bytes, heap_free_bytes;    /* of the arena being read */
	uint64_t arena_count, free_bytes, top_bytes, largest_bytes;
	uint64_t system_bytes, mapped_bytes, mapped_count;
	uint64_t class_count[CLASSES], class_bytes[CLASSES]; /* class i: [1 << i, 2 << i) */
} info;

static uint64_t attribute(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static bool begins(const char *text, const char *head) { return !strncmp(text, head, strlen(head)); }

static void count_chunks(uint64_t from, uint64_t to, uint64_t count, uint64_t bytes)
{
	uint64_t mean = count ? bytes / count : 0;
	unsigned class = mean ? 63u - (unsigned)__builtin_clzll(mean) : 0;
	if (!count)
		return;
	class = class < CLASSES ? class : CLASSES - 1;
	info.class_count[class] += count;
	info.class_bytes[class] += bytes;
	info.largest_bytes = to > info.largest_bytes ? to : info.largest_bytes;
	(void)from;
}

/* What an arena has free and no bin holds is its top. */
static void end_heap(void)
{
	uint64_t top = info.heap_free_bytes > info.heap_binned_bytes ? info.heap_free_bytes - info.heap_binned_bytes : 0;
	info.free_bytes += info.heap_free_bytes;
	info.top_bytes += top;
	info.largest_bytes = top > info.largest_bytes ? top : info.largest_bytes;
	info.in_heap = false;
}

static void take_line(const char *line)
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
		count_chunks(attribute(line, "from=\""), attribute(line, "to=\""), attribute(line, "count=\""), bytes);
	} else if (info.in_heap && (begins(line, "<total type=\"fast\"") || begins(line, "<total type=\"rest\""))) {
		info.heap_free_bytes += attribute(line, "size=\"");
	} else if (!info.in_heap && begins(line, "<total type=\"mmap\"")) {
		info.mapped_count = attribute(line, "count=\"");
		info.mapped_bytes = attribute(line, "size=\"");
	} else if (!info.in_heap && begins(line, "<system type=\"current\"")) {
		info.system_bytes = attribute(line, "size=\"");
	}
}

static ssize_t take(void *cookie, const char *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (data[i] == '\n') {
			info.line[info.used] = 0;
			take_line(info.line);
			info.used = 0;
		} else if (info.used + 1 < LINE_BYTES) {
			info.line[info.used++] = data[i];
		}
	}
	(void)cookie;
	return (ssize_t)bytes;
}

static bool read_info(void)
{
	static char buffer[4096];
	FILE *file = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = take });
	int failed;
	if (!file)
		return false;
	memset(&info, 0, sizeof info);
	setvbuf(file, buffer, _IOFBF, sizeof buffer);
	failed = malloc_info(0, file);
	fclose(file);
	return !failed && info.arena_count;
}

static void add_sums(struct cuf_text *text)
{
	struct mallinfo2 sums = mallinfo2();
	cuf_books_add(text, "system_bytes", sums.arena + sums.hblkhd);
	cuf_books_add(text, "live_bytes", sums.uordblks + sums.hblkhd);
	cuf_books_add(text, "free_bytes", sums.fordblks);
	cuf_books_add(text, "free_count", sums.ordblks + sums.smblks);
	cuf_books_add(text, "top_bytes", sums.keepcost); /* of the main arena alone */
	cuf_books_add(text, "mapped_bytes", sums.hblkhd);
	cuf_books_add(text, "mapped_count", sums.hblks);
}

static void add_info(struct cuf_text *text)
{
	uint64_t count = info.arena_count; /* each has a top */
	cuf_books_add(text, "system_bytes", info.system_bytes + info.mapped_bytes);
	cuf_books_add(text, "live_bytes", (info.system_bytes > info.free_bytes ? info.system_bytes - info.free_bytes : 0) + info.mapped_bytes);
	cuf_books_add(text, "free_bytes", info.free_bytes);
	for (unsigned i = 0; i < CLASSES; i++)
		count += info.class_count[i];
	cuf_books_add(text, "free_count", count);
	cuf_books_add(text, "top_bytes", info.top_bytes);
	cuf_books_add(text, "mapped_bytes", info.mapped_bytes);
	cuf_books_add(text, "mapped_count", info.mapped_count);
	cuf_books_add(text, "arena_count", info.arena_count);
	cuf_books_add(text, "largest_bytes", info.largest_bytes);
	for (unsigned i = 0; i < CLASSES; i++)
		if (info.class_count[i])
			cuf_books_class(text, "free", 1ull << i, info.class_count[i], info.class_bytes[i]);
}

bool cuf_books_glibc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text)
{
	if (moment == CUF_MOMENT_END && read_info())
		add_info(text);
	else
		add_sums(text);
	return true;
}

void cuf_version_glibc(const struct cuf_allocator *allocator, struct cuf_text *text) { cuf_text_add(text, gnu_get_libc_version()); }
