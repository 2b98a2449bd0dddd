/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up /proc/self/smaps, line by line, in one fixed buffer; and what has changed since then. */
#include "interpose/hooks/malloc/process_maps.h"

#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum { BUFFER_BYTES = 16384 };

static char buffer[BUFFER_BYTES];
static uintptr_t recorder_start; /* of the recording, and its length, for one reading */
static size_t recorder_range;

/* The file is ASCII, so no locale is involved. */
static bool begins(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}

/* Lower case, as the kernel writes it. Stops at the first other character. */
static uint64_t hex(const char *text)
{
	uint64_t value = 0;
	for (;; text++) {
		if (*text >= '0' && *text <= '9')
			value = value << 4 | (uint64_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			value = value << 4 | (uint64_t)(*text - 'a' + 10);
		else
			return value;
	}
}

/* The sum to which the resident bytes of this mapping belong. start - recorder_start wraps for
 * lower addresses, so one comparison checks both ends. */
static uint64_t *sum_of(struct cuf_process_maps *maps, uint64_t start, const char *path)
{
	if (start - recorder_start < recorder_range)
		return &maps->recorder_bytes;
	if (!*path)
		return &maps->anonymous_bytes;
	if (begins(path, "[heap]"))
		return &maps->heap_bytes;
	if (begins(path, "[stack"))
		return &maps->stack_bytes;
	if (*path == '[')
		return &maps->anonymous_bytes;
	if (begins(path, "/dev/shm/") || begins(path, "/memfd:") || begins(path, "/SYSV") ||
	    begins(path, "/dev/zero"))
		return &maps->shared_bytes;
	return &maps->file_bytes;
}

/* "Rss:                 132 kB" */
static uint64_t bytes_of(const char *line)
{
	uint64_t kib = 0;
	for (line = strchr(line, ':'); line && *line && (*line < '0' || *line > '9'); line++)
		;
	for (; line && *line >= '0' && *line <= '9'; line++)
		kib = kib * 10 + (uint64_t)(*line - '0');
	return kib * 1024;
}

/* The name in "start-end perms offset device inode   name" comes after the fifth field. */
static const char *name_of(const char *line)
{
	for (unsigned field = 0; field < 5; field++) {
		while (*line && *line != ' ')
			line++;
		while (*line == ' ')
			line++;
	}
	return line;
}

/* A line that starts with an address begins a mapping; the lines after it are its figures. */
static void parse_line(struct cuf_process_maps *maps, uint64_t **sum, const char *line)
{
	bool is_head = (*line >= '0' && *line <= '9') || (*line >= 'a' && *line <= 'f');
	if (is_head) {
		*sum = sum_of(maps, hex(line), name_of(line));
		maps->map_count++;
	} else if (begins(line, "Rss:")) {
		**sum += bytes_of(line);
		maps->rss_bytes += bytes_of(line);
	} else if (begins(line, "Pss:")) {
		maps->pss_bytes += bytes_of(line);
	} else if (begins(line, "Private_Dirty:")) {
		maps->private_dirty_bytes += bytes_of(line);
	} else if (begins(line, "Swap:")) {
		maps->swap_bytes += bytes_of(line);
	} else if (begins(line, "Anonymous:") && *sum == &maps->file_bytes) {
		/* its bytes were added with the Rss line, which comes first */
		maps->file_bytes -= bytes_of(line);
		maps->file_private_bytes += bytes_of(line);
	}
}

/* Parses the whole lines of the buffer. The rest moves to its front; returns the length of the
 * rest. */
static size_t parse_lines(struct cuf_process_maps *maps, uint64_t **sum, size_t used)
{
	size_t at = 0;
	for (;;) {
		char *end = memchr(buffer + at, '\n', used - at);
		if (!end)
			break;
		*end = 0;
		parse_line(maps, sum, buffer + at);
		at = (size_t)(end - buffer) + 1;
	}
	if (!at && used == BUFFER_BYTES) /* a path of 16 KiB: the line is dropped */
		return 0;
	memmove(buffer, buffer + at, used - at);
	return used - at;
}

/* ---- the kernel's counters ---- */

struct counters {
	uint64_t anonymous_bytes, file_bytes, shared_bytes, swap_bytes, threads;
};

/* The last whole reading of smaps, and the counters of that time. */
static struct {
	struct cuf_process_maps maps;
	struct counters counters;
} base;

/* A child's sums are its own. */
static void forget_base(void) { base.maps.whole = false; }
CUF_AT_FORK_CHILD(forget_base);

/* "RssAnon:	     132 kB"; the threads are a number without a unit */
static uint64_t counter(const char *text, const char *key)
{
	const char *line = strstr(text, key);
	return line ? bytes_of(line) : 0;
}

static bool read_counters(struct counters *counters)
{
	static char text[4096];
	long fd = cuf_open("/proc/self/status", O_RDONLY, 0), bytes;
	if (fd < 0)
		return false;
	bytes = cuf_sys_read((int)fd, text, sizeof text - 1);
	cuf_close((int)fd);
	text[bytes > 0 ? bytes : 0] = 0;
	if (!strstr(text, "\nRssAnon:"))
		return false;
	counters->anonymous_bytes = counter(text, "\nRssAnon:");
	counters->file_bytes = counter(text, "\nRssFile:");
	counters->shared_bytes = counter(text, "\nRssShmem:");
	counters->swap_bytes = counter(text, "\nVmSwap:");
	counters->threads = counter(text, "\nThreads:") / 1024;
	return true;
}

static void keep_base(const struct cuf_process_maps *maps)
{
	base.maps = *maps;
	base.maps.whole = read_counters(&base.counters);
}

static void add_change(uint64_t *sum, uint64_t before, uint64_t now)
{
	if (now >= before)
		*sum += now - before;
	else
		*sum -= before - now < *sum ? before - now : *sum;
}

/* ---- readings ---- */

/* One pass. The file has about 25 lines for each mapping. The kernel locks the address space while
 * it formats a chunk. So the pass has a time limit, after which `whole` stays false. System calls
 * only: stdio would allocate. */
bool cuf_process_maps_read(struct cuf_process_maps *maps, uintptr_t own, size_t own_bytes)
{
	uint64_t until_ns = cuf_now_ns() + CUF_MAPS_NS_MAX, unused = 0, *sum = &unused;
	long fd, got = 0;
	size_t used = 0;
	*maps = (struct cuf_process_maps){ .whole = false };
	recorder_start = own;
	recorder_range = own_bytes;
	fd = cuf_open("/proc/self/smaps", O_RDONLY, 0);
	if (fd >= 0) {
		while ((got = cuf_sys_read((int)fd, buffer + used, BUFFER_BYTES - used)) > 0) {
			used = parse_lines(maps, &sum, used + (size_t)got);
			if (cuf_now_ns() > until_ns)
				break;
		}
		cuf_close((int)fd);
	}
	maps->whole = fd >= 0 && got == 0;
	if (maps->whole)
		keep_base(maps);
	return fd >= 0 && maps->map_count;
}

bool cuf_process_maps_update(struct cuf_process_maps *maps)
{
	struct counters now;
	if (!read_counters(&now))
		return false;
	*maps = base.maps;
	maps->anonymous_bytes += maps->heap_bytes; /* the counters do not tell them apart */
	maps->heap_bytes = 0;
	add_change(&maps->anonymous_bytes, base.counters.anonymous_bytes, now.anonymous_bytes);
	add_change(&maps->file_bytes, base.counters.file_bytes, now.file_bytes);
	add_change(&maps->shared_bytes, base.counters.shared_bytes, now.shared_bytes);
	maps->swap_bytes = now.swap_bytes;
	maps->whole = true;
	maps->rss_bytes = maps->anonymous_bytes + maps->stack_bytes + maps->file_bytes +
			  maps->file_private_bytes + maps->shared_bytes + maps->recorder_bytes;
	return true;
}

bool cuf_process_maps_are_known(void) { return base.maps.whole; }

struct cuf_process_size cuf_process_size(void)
{
	struct counters now;
	if (!read_counters(&now))
		return (struct cuf_process_size){ 0 };
	return (struct cuf_process_size){
		now.anonymous_bytes + now.file_bytes + now.shared_bytes, now.threads
	};
}
