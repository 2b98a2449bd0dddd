/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the memory controller, of both versions of cgroups, and /proc/self/statm. */
#include "interpose/process/cgroup.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "interpose/abi/format.h"
#include "interpose/platform/page.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/say.h"
#include "interpose/platform/sys.h"
#include "interpose/process/proc_file.h"
#include "interpose/platform/laws.h"

enum { PATH_BYTES = 600 };
/* version 1 writes LONG_MAX, rounded to pages, when there is no limit */
#define NO_LIMIT (1ull << 60)

static char directory[512];               /* "" for none */
static const char *current_file, *max_file, *events_file;

const char *cuf_cgroup_directory(void) { return directory; }

/* A line of /proc/self/cgroup is "0::/path" in version 2 and "N:memory:/path" in version 1. */
static const struct version {
	const char *mark, *root, *current, *max, *events;
} versions[] = {
	{ "0::", "/sys/fs/cgroup", "/memory.current", "/memory.max", "/memory.events" },
	{ ":memory:", "/sys/fs/cgroup/memory", "/memory.usage_in_bytes", "/memory.limit_in_bytes",
	  "/memory.oom_control" },
};

/* Takes root/path when the controller's files are there. */
static bool try_directory(const struct version *version, const char *path, size_t path_bytes)
{
	CUF_TEXT(built, PATH_BYTES);
	size_t used;
	cuf_text_add(&built, version->root);
	cuf_text_bytes(&built, path, path_bytes);
	used = built.used;
	cuf_text_add(&built, version->current);
	if (used >= sizeof directory || cuf_sandbox_entered() ||
	    cuf_sys(SYS_faccessat, AT_FDCWD, (long)built.at, R_OK, 0, 0, 0))
		return false;
	memcpy(directory, built.at, used);
	directory[used] = 0;
	current_file = version->current;
	max_file = version->max;
	events_file = version->events;
	return true;
}

void cuf_cgroup_find(void)
{
	char text[2048];
	directory[0] = 0;
	if (cuf_proc_read("/proc/self/cgroup", text, sizeof text) <= 0)
		return;
	for (unsigned i = 0; i < sizeof versions / sizeof *versions; i++) {
		const char *path = strstr(text, versions[i].mark);
		size_t bytes;
		if (!path)
			continue;
		path += strlen(versions[i].mark);
		bytes = strcspn(path, "\n");
		/*
		 * a container usually sees its own cgroup as the root of the mount, whatever the
		 * path is
		 */
		if ((bytes > 1 && try_directory(&versions[i], path, bytes)) ||
		    try_directory(&versions[i], "", 0))
			return;
	}
}

/* Returns the length, 0 without a cgroup, or -errno. */
static long read_cgroup_file(const char *file, char *text, size_t bytes)
{
	CUF_TEXT(path, PATH_BYTES);
	if (!*directory)
		return 0;
	cuf_text_add(&path, directory);
	cuf_text_add(&path, file);
	return cuf_proc_read(path.at, text, bytes);
}

/* "max" has no digits, so that it is unknown, which means "no limit" here. */
static uint64_t read_number(const char *file)
{
	char text[64];
	uint64_t value = CUF_UNKNOWN;
	if (file && read_cgroup_file(file, text, sizeof text) > 0)
		value = cuf_proc_number(text, NULL);
	return value < NO_LIMIT ? value : CUF_UNKNOWN;
}

uint64_t cuf_cgroup_oom_kills(void)
{
	char text[2048];
	if (!*directory || read_cgroup_file(events_file, text, sizeof text) <= 0)
		return CUF_UNKNOWN;
	return cuf_proc_number(text, "oom_kill ");
}

/*
 * Shared memory, and the lists that the kernel drops pages from. They are in the first half of a
 * long file, for which the kernel sums up all processors: so it is read only near the limit.
 */
static void read_parts(struct cuf_process_memory *memory)
{
	char text[1024];
	uint64_t inactive_bytes, active_bytes;
	if (read_cgroup_file("/memory.stat", text, sizeof text) <= 0)
		return;
	memory->cgroup_shmem_bytes = cuf_proc_number(text, "\nshmem ");
	inactive_bytes = cuf_proc_number(text, "\ninactive_file");
	active_bytes = cuf_proc_number(text, "\nactive_file");
	if (inactive_bytes != CUF_UNKNOWN && active_bytes != CUF_UNKNOWN)
		memory->cgroup_file_bytes = inactive_bytes + active_bytes;
}

/* Pages as bytes. */
static uint64_t statm_bytes(const char *text)
{
	uint64_t pages = cuf_proc_number(text, NULL);
	return pages == CUF_UNKNOWN ? pages : pages * cuf_page_bytes();
}

/* *text moves behind the next blank. */
static uint64_t next_statm_bytes(const char **text)
{
	if (*text)
		*text = strchr(*text, ' ');
	if (!*text)
		return CUF_UNKNOWN;
	return statm_bytes(++*text);
}

/* Within a quarter of it: then the kernel is about to drop page cache or to kill. */
static bool is_near_limit(const struct cuf_process_memory *memory)
{
	uint64_t max_bytes = memory->cgroup_max_bytes;
	return memory->cgroup_bytes != CUF_UNKNOWN && max_bytes != CUF_UNKNOWN &&
	       memory->cgroup_bytes >= max_bytes - max_bytes / 4;
}

static void read_memory(void *argument)
{
	struct cuf_process_memory *memory = argument;
	char text[256];
	const char *statm = text;
	/* total, resident, shared, code, 0, data and stacks */
	if (cuf_proc_read("/proc/self/statm", text, sizeof text) > 0) {
		memory->address_bytes = statm_bytes(statm);
		memory->rss_bytes = next_statm_bytes(&statm);
		memory->rss_shared_bytes = next_statm_bytes(&statm);
		next_statm_bytes(&statm);
		next_statm_bytes(&statm);
		memory->data_bytes = next_statm_bytes(&statm);
	}
	memory->cgroup_bytes = read_number(current_file);
	memory->cgroup_max_bytes = read_number(max_file);
	if (is_near_limit(memory))
		read_parts(memory);
}

/* The files need a buffer, and a hook of malloc comes here. */
void cuf_process_memory(struct cuf_process_memory *memory)
{
	*memory = (struct cuf_process_memory){ CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN,
					       CUF_UNKNOWN, CUF_UNKNOWN, CUF_UNKNOWN,
					       CUF_UNKNOWN };
	cuf_on_side_stack(read_memory, memory);
}

/* A directory has a link for itself, one in its parent, and one for each thread. */
uint64_t cuf_process_threads(void)
{
	struct stat tasks;
	if (cuf_sys(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/task", (long)&tasks, 0, 0, 0) < 0 ||
	    tasks.st_nlink <= 2)
		return CUF_UNKNOWN;
	return (uint64_t)tasks.st_nlink - 2;
}
