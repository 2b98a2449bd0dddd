/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/stat of the process's own pid namespace, and who maps the file. */
#include "analysis/replay/process_life.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Process ids, start times and groups are unique only within one boot of a machine. */
bool is_this_boot(const struct cuf_header *header)
{
	static const uint8_t unknown[16];
	const uint8_t *recorded = header->boot_id;
	char text[40] = "";
	uint8_t now[16];
	unsigned n = 0;
	FILE *f;
	if (!memcmp(recorded, unknown, sizeof unknown) ||
	    !(f = fopen("/proc/sys/kernel/random/boot_id", "re")))
		return false;
	if (!fgets(text, sizeof text, f))
		*text = 0;
	fclose(f);
	for (const char *at = text; *at && n < 16; at += *at == '-' ? 1 : 2) {
		char pair[3] = { at[0], at[1], 0 };
		if (*at != '-')
			now[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n == 16 && !memcmp(now, recorded, sizeof now);
}

/* Start time and state of a pid here; false: no such process can be seen. */
static bool read_stat(uint32_t pid, uint64_t *ticks, char *state)
{
	char name[64], text[1024] = "", *at;
	FILE *f;

	snprintf(name, sizeof name, "/proc/%u/stat", pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	/* the name can have any characters; field 3 is the state, 22 the start time */
	at = strrchr(text, ')');
	return at && sscanf(at + 1,
			    " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s"
			    " %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
			    state, ticks) == 2;
}

static bool is_our_namespace(const struct cuf_header *header)
{
	struct stat namespace;

	return header->pid_namespace && !stat("/proc/self/ns/pid", &namespace) &&
	       namespace.st_ino == header->pid_namespace;
}

/* By its pid. What was recorded in another namespace, or is hidden (hidepid), is unknown. */
static enum process_life life_by_pid(const struct cuf_header *header)
{
	uint64_t ticks = 0, started = header->process_start_ticks;
	char state = 'Z';

	if (!header->pid || header->pid > INT32_MAX || !started || started == CUF_UNKNOWN)
		return LIFE_UNKNOWN;
	if (read_stat(header->pid, &ticks, &state) && ticks == started)
		return state == 'Z' || state == 'X' ? LIFE_GONE : LIFE_RUNS;
	if (!is_our_namespace(header))
		return LIFE_UNKNOWN;
	if (ticks || (kill((pid_t)header->pid, 0) && errno == ESRCH))
		return LIFE_GONE;
	return LIFE_UNKNOWN;
}

bool process_is_here(const struct cuf_header *header)
{
	return is_this_boot(header) && is_our_namespace(header) &&
	       life_by_pid(header) == LIFE_RUNS;
}

/* The file was made after its recording began: the recorder has another one mapped. A trimmed one
 * is new as well, and its process has ended. */
static bool is_copy(const struct reader *reader)
{
	const struct cuf_header *header = &reader->header;

	return !header->reserved_bytes &&
	       reader->birth_ns > reader_realtime(reader, header->created_ns);
}

/* The pid of the process in its own namespace, which is the last one named. */
static bool is_called(unsigned long pid, uint32_t own_pid)
{
	char name[64], line[256];
	const char *last = NULL;
	FILE *f;

	snprintf(name, sizeof name, "/proc/%lu/status", pid);
	f = fopen(name, "re");
	while (f && !last && fgets(line, sizeof line, f))
		if (!strncmp(line, "NSpid:", 6))
			last = strrchr(line, '\t');
	if (f)
		fclose(f);
	return last && strtoul(last, NULL, 10) == own_pid;
}

/* By its start time, which is the same in namespaces above its own. Only the first one of the
 * machine has all processes, unless /proc hides some. */
static enum process_life life_below(const struct cuf_header *header)
{
	enum { FIRST_NAMESPACE = 0xEFFFFFFC };
	enum process_life life = LIFE_UNKNOWN;
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	struct stat namespace;
	uint64_t ticks;
	char state;

	if (processes && !access("/proc/1/stat", R_OK) && !stat("/proc/self/ns/pid", &namespace) &&
	    namespace.st_ino == FIRST_NAMESPACE)
		life = LIFE_GONE;
	while (processes && (entry = readdir(processes))) {
		unsigned long pid = strtoul(entry->d_name, NULL, 10);

		if (pid && read_stat((uint32_t)pid, &ticks, &state) && state != 'Z' &&
		    ticks == header->process_start_ticks && is_called(pid, header->pid))
			life = LIFE_RUNS;
	}
	if (processes)
		closedir(processes);
	return life;
}

/* What was written since the header was copied. */
static bool has_ended_since(const struct reader *reader)
{
	const struct cuf_header *now = (const void *)reader->data;

	return __atomic_load_n(&now->end_kind, __ATOMIC_ACQUIRE) != CUF_END_NONE;
}

enum process_life process_life(const struct reader *reader)
{
	const struct cuf_header *header = &reader->header;
	enum process_life life;

	if (!is_this_boot(header))
		return LIFE_GONE;
	life = life_by_pid(header);
	if (life == LIFE_UNKNOWN && is_copy(reader))
		life = life_below(header);
	else if (life == LIFE_UNKNOWN && reader->writers == FILE_HAS_NO_WRITER)
		life = LIFE_GONE;
	/* of an older recorder this may be a child's, whose parent cannot be looked up */
	else if (life == LIFE_UNKNOWN && reader->writers == FILE_HAS_WRITER &&
		 header->pid_namespace)
		life = LIFE_RUNS;
	if (life == LIFE_GONE && has_ended_since(reader))
		return LIFE_RUNS; /* when it was read */
	return life;
}
