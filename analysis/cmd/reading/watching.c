/* SPDX-License-Identifier: Apache-2.0 */
/* A process is found by the recording that it has mapped. */
#include "analysis/cmd/reading/watching.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include "analysis/base/units.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/target/destination.h"

/* ---- a process ---- */

/* A mapping of a whole file, for writing, that others see. */
static bool parse_mapping(char *line, uint64_t *inode, const char **path)
{
	unsigned long long number;
	char access[8];
	int at = 0;

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%*x-%*x %7s %*x %*s %llu %n", access, &number, &at) < 2 || !at ||
	    line[at] != '/')
		return false;
	*inode = number;
	*path = line + at;
	return true;
}

/* Its name here, or below its root, where that is another one. */
static bool is_mapped(const char *root, const char *name, uint64_t inode, char path[PATH_MAX])
{
	struct identity identity;
	struct stat file;

	return snprintf(path, PATH_MAX, "%s%s", root, name) < PATH_MAX && !stat(path, &file) &&
	       S_ISREG(file.st_mode) && file.st_ino == inode &&
	       !identity_read(&identity, path, NULL);
}

static bool find_mapped(FILE *maps, const char *pid, char path[PATH_MAX], bool *has_recorder)
{
	char line[PATH_MAX + 128], root[64];
	uint64_t inode, last = 0;
	const char *name;

	snprintf(root, sizeof root, "/proc/%s/root", pid);
	while (fgets(line, sizeof line, maps)) {
		if (!parse_mapping(line, &inode, &name) || inode == last)
			continue;
		last = inode;
		*has_recorder |= strstr(name, "libcuflight") != NULL;
		if (strstr(name, ".so") || strstr(name, "/dev/"))
			continue;
		if (is_mapped("", name, inode, path) || is_mapped(root, name, inode, path))
			return true;
	}
	return false;
}

static int find_process(const char *pid, char path[PATH_MAX])
{
	bool has_recorder = false, found;
	char name[64];
	FILE *maps;

	snprintf(name, sizeof name, "/proc/%.20s/maps", pid);
	maps = fopen(name, "re");
	if (!maps) {
		if (errno == ENOENT)
			say_error("there is no process %s; 'cuflight list' has what was recorded",
				  pid);
		else
			say_error("cannot look at process %s: %s", pid, strerror(errno));
		return -1;
	}
	found = find_mapped(maps, pid, path, &has_recorder);
	if (!found && ferror(maps))
		say_error("cannot look at process %s: %s", pid, strerror(errno));
	else if (!found)
		say_error(has_recorder ? "process %s has recorded nothing yet" :
				 "process %s is not recorded; 'cuflight run -- COMMAND' records a "
				 "new one", pid);
	fclose(maps);
	return found ? 0 : -1;
}

/* ---- the operand ---- */

static int find_path(const char *operand, char path[PATH_MAX])
{
	struct destination destination;
	struct stat file;

	if (!operand) {
		if (destination_set(&destination, NULL)) {
			say_error("cannot read the current directory: %s", strerror(errno));
			return -1;
		}
		snprintf(path, PATH_MAX, "%s", destination.directory);
		return 0;
	}
	if (*operand && strspn(operand, "0123456789") == strlen(operand) && stat(operand, &file))
		return find_process(operand, path);
	if (snprintf(path, PATH_MAX, "%s", operand) < PATH_MAX)
		return 0;
	say_error("cannot read '%s': %s", operand, strerror(ENAMETOOLONG));
	return -1;
}

/* A directory may be empty today; a file is what it is. */
static int check_file(const struct watch *watch, const char *path)
{
	struct stat file;

	if (watch->count || stat(path, &file) || S_ISDIR(file.st_mode))
		return 0;
	if (watch->unreadable_count)
		say_error("cannot read '%s': %s", path, watch->unreadable[0].why);
	else if (watch->is_pending)
		say_error("cannot read '%s': %s", path,
			  reader_error_sentence(file.st_size ? READER_E_UNBEGUN : READER_E_EMPTY));
	else if (watch->past_count)
		say_error("'%s' is of a process that has ended: cuflight report %s", path, path);
	else
		say_error("'%s' is no recording of a process that runs", path);
	return -1;
}

int watching_open(struct watch *watch, char path[PATH_MAX], const char *operand,
		  const struct watch_options *options)
{
	if (find_path(operand, path))
		return -1;
	if (watch_open(watch, path, options)) {
		say_error("cannot read '%s': %s", path,
			  errno == ENOTDIR ? "neither a directory nor a file" : strerror(errno));
		return -1;
	}
	if (!check_file(watch, path))
		return 0;
	watch_close(watch);
	return -1;
}

/* ---- options, signals ---- */

static const struct opt options[] = {
	{ "memory", 0, OPT_BYTES, "BYTES", 32 << 20, (uint64_t)1 << 40, "536870912",
	  "what the process that analyses may use; a recording that needs more has levels only" },
	{ "warm-up", 0, OPT_COUNT, "SECONDS", 1, 86400, "300",
	  "before that nothing is called growth; what else takes time is in proportion to it" },
	{ "processor", 0, OPT_COUNT, "PERCENT", 1, 100, "1",
	  "share of one processor that analysing may use" },
};
const struct opt_group opts_watching = {
	"Analysing", options, sizeof options / sizeof *options, { NULL },
};

struct watch_options watching_options(const struct opts *opts)
{
	return (struct watch_options){
		.share = (double)opts_number(opts, "processor", 1) / 100,
		.memory_bytes = opts_number(opts, "memory", (uint64_t)512 << 20),
		.warm_up_s = (double)opts_number(opts, "warm-up", 0),
	};
}

int watching_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}
