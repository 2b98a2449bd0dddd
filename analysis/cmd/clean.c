/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight clean`: removes recordings of old runs, or makes recordings small. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/reading/new_run.h"
#include "analysis/cmd/run/recording_trim.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/target/destination.h"
#include "analysis/explain/facts_build.h"
#include "analysis/replay/run.h"
#include "analysis/watch/finder.h"
#include "interpose/abi/format.h"

#define NS_PER_DAY 86400000000000ull

/* A recording's file, as it was when its run was read. */
struct victim {
	char *path;
	dev_t device;
	ino_t inode;
	uint64_t bytes;
};

/* What is asked for; 0 in keep and days: not limited by it. */
struct limits {
	bool by_count, by_age, by_size;
	uint64_t keep, days, total_bytes;
};

struct plan {
	struct victim *files;
	size_t count, room, runs;
	uint64_t bytes;
	size_t running; /* runs that are left alone because they go on */
	uint64_t kept_bytes;
};

/* ---- what to remove ---- */

/* Of another host or container nobody here can tell whether it still runs: without an end record it
 * is given a day. */
static bool may_run_elsewhere(const struct fact_process *process)
{
	uint64_t now_ns = (uint64_t)time(NULL) * 1000000000u;
	char here[256] = "";

	gethostname(here, sizeof here - 1);
	return (process->end == END_KILLED || process->end == END_OOM_KILLED) &&
	       strcmp(process->hostname, here) != 0 && process->end_ns + NS_PER_DAY > now_ns;
}

static bool is_running(const struct facts *facts)
{
	for (size_t i = 0; i < facts->process_count; i++)
		if (end_may_run(facts->processes[i].end) ||
		    may_run_elsewhere(&facts->processes[i]))
			return true;
	return false;
}

static uint64_t run_end(const struct facts *facts)
{
	uint64_t end = 0;

	for (size_t i = 0; i < facts->process_count; i++)
		if (facts->processes[i].end_ns != CUF_UNKNOWN &&
		    facts->processes[i].end_ns > end)
			end = facts->processes[i].end_ns;
	return end;
}

/* Space on disk: a recording may have holes. Only regular files of a name of its own count. */
static uint64_t run_bytes(const struct facts *facts)
{
	uint64_t bytes = 0;
	struct stat st;

	for (size_t i = 0; i < facts->process_count; i++)
		if (!lstat(facts->processes[i].path, &st) && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_blocks * 512;
	return bytes;
}

static void add_files(struct plan *plan, const struct facts *facts)
{
	struct stat st;

	for (size_t i = 0; i < facts->process_count; i++) {
		const char *path = facts->processes[i].path;

		if (lstat(path, &st) || !S_ISREG(st.st_mode))
			continue;
		xalloc_grow(&plan->files, plan->count, &plan->room, sizeof *plan->files);
		plan->files[plan->count++] = (struct victim){
			xalloc_string(path), st.st_dev, st.st_ino, (uint64_t)st.st_blocks * 512
		};
		plan->bytes += (uint64_t)st.st_blocks * 512;
	}
	plan->runs++;
}

static bool is_beyond(const struct limits *limits, const struct facts *facts, uint64_t bytes,
		      const struct plan *plan)
{
	uint64_t now_ns = (uint64_t)time(NULL) * 1000000000u;
	size_t newer = facts->run_count - facts->run_number;

	if (limits->by_count && newer >= limits->keep)
		return true;
	if (limits->by_age && run_end(facts) + limits->days * NS_PER_DAY < now_ns)
		return true;
	return limits->by_size && plan->kept_bytes + bytes > limits->total_bytes;
}

/* The newest run first, so that a total is filled by the newest ones. 0, or -1 after an error. */
static int make_plan(struct plan *plan, const char *directory, const struct limits *limits,
		     const struct run_catalog *catalog)
{
	struct facts_options options = { .catalog = catalog->run_count ? catalog : NULL,
					 .run = catalog->run_count };
	size_t runs;

	do {
		struct reader_error error = { 0 };
		struct facts *facts = NULL;
		uint64_t bytes;

		if (facts_build(directory, &options, &facts, &error)) {
			say_error("cannot clean '%s': %s", *error.path ? error.path : directory,
				  error.system ? strerror(error.system)
					       : reader_error_sentence(error.code));
			return -1;
		}
		bytes = run_bytes(facts);
		runs = facts->run_number;
		if (is_running(facts))
			plan->running++;
		else if (is_beyond(limits, facts, bytes, plan))
			add_files(plan, facts);
		else
			plan->kept_bytes += bytes;
		facts_free(facts);
		options.run = runs - 1;
	} while (runs > 1);
	return 0;
}

/* ---- removing ---- */

/* Again right before: the file is the one that was read, and begins as a recording does. */
static bool is_still_ours(const struct victim *victim)
{
	char magic[sizeof CUF_MAGIC - 1];
	int fd = open(victim->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	struct stat st;
	bool same;

	if (fd < 0)
		return false;
	same = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_dev == victim->device &&
	       st.st_ino == victim->inode && read(fd, magic, sizeof magic) == sizeof magic &&
	       !memcmp(magic, CUF_MAGIC, sizeof magic);
	close(fd);
	return same;
}

static int remove_files(const struct plan *plan)
{
	uint64_t bytes = 0;
	size_t removed = 0;

	for (size_t i = 0; i < plan->count; i++) {
		if (!is_still_ours(&plan->files[i])) {
			say_info("'%s' has changed meanwhile and stays", plan->files[i].path);
			continue;
		}
		if (unlink(plan->files[i].path)) {
			say_error("cannot remove '%s': %s", plan->files[i].path, strerror(errno));
			return CMD_USAGE;
		}
		removed++;
		bytes += plan->files[i].bytes;
	}
	say_info("removed %zu recording%s, %s", removed, removed == 1 ? "" : "s",
		 units_bytes(bytes).s);
	return CMD_FINE;
}

/* Only at a terminal; anywhere else nobody would answer. */
static bool is_agreed(const struct plan *plan)
{
	char answer[8] = "";

	fprintf(stderr, "cuflight: remove %zu recordings of %zu runs, %s? [y/N] ", plan->count,
		plan->runs, units_bytes(plan->bytes).s);
	return fgets(answer, sizeof answer, stdin) && (*answer == 'y' || *answer == 'Y');
}

/* The name of a file may hold whatever a terminal acts on. */
static void print_path(const char *path)
{
	char shown[PATH_MAX];

	clean_terminal(shown, sizeof shown, path, !say_in_utf8());
	printf("%s\n", shown);
}

static int carry_out(const struct plan *plan, const struct opts *opts)
{
	for (size_t i = 0; i < plan->count; i++)
		print_path(plan->files[i].path);
	fflush(stdout);
	if (!plan->count) {
		say_info("nothing to remove");
		return CMD_FINE;
	}
	if (opts_has(opts, "dry-run"))
		return CMD_FINE;
	if (opts_has(opts, "yes"))
		return remove_files(plan);
	if (!isatty(STDIN_FILENO)) {
		say_error("nothing was removed; pass --yes to remove these without a question");
		return CMD_USAGE;
	}
	if (is_agreed(plan))
		return remove_files(plan);
	say_info("nothing was removed");
	return CMD_FINE;
}

/* ---- trimming ---- */

/* Nothing that a report reads is lost, so there is no question. */
static int trim_directory(const char *directory, bool only_print)
{
	struct recordings list = { 0 };
	uint64_t total = 0, saved;
	size_t trimmed = 0, in_use = 0;
	int status = CMD_FINE;

	recordings_scan(&list, directory, 0, 0);
	for (size_t i = 0; i < list.count; i++) {
		const char *path = list.files[i].path;
		int result = recording_trim(path, only_print, &saved);

		if (result < 0 && errno == EINVAL) {
			say_info("'%s' is cut or damaged, and stays as it is", path);
		} else if (result < 0) {
			say_error("cannot trim '%s': %s", path, strerror(errno));
			status = CMD_USAGE;
		}
		in_use += result == RECORDING_IN_USE;
		if (result != RECORDING_TRIMMED)
			continue;
		print_path(path);
		total += saved;
		trimmed++;
	}
	recordings_free(&list);
	fflush(stdout);
	if (in_use)
		say_info("left alone because somebody may still write to them: %zu", in_use);
	say_info(only_print ? "%zu recording%s can be trimmed by %s"
			    : "trimmed %zu recording%s by %s",
		 trimmed, trimmed == 1 ? "" : "s", units_bytes(total).s);
	return status;
}

/* ---- the command ---- */

static int clean_directory(const char *directory, const struct limits *limits,
			   const struct opts *opts)
{
	struct plan plan = { 0 };
	struct run_catalog catalog;
	int status = CMD_USAGE;

	run_catalog_read(&catalog, directory);
	if (!make_plan(&plan, directory, limits, &catalog)) {
		if (plan.running)
			say_info("left alone because they go on, or may: %zu", plan.running);
		status = carry_out(&plan, opts);
	}
	for (size_t i = 0; i < plan.count; i++)
		free(plan.files[i].path);
	free(plan.files);
	run_catalog_fini(&catalog);
	return status;
}

static int clean_or_trim(const char *directory, const struct limits *limits,
			 const struct opts *opts)
{
	if (opts_has(opts, "trim"))
		return trim_directory(directory, opts_has(opts, "dry-run"));
	return clean_directory(directory, limits, opts);
}

/* ---- folders below it ---- */

struct folders { char **paths; size_t count, room; };

static void add_folder(void *state, const char *path, ino_t inode)
{
	struct folders *folders = state;
	const char *slash = strrchr(path, '/');
	char *folder = strndup(path, slash ? (size_t)(slash - path) : 0);

	(void)inode;
	for (size_t i = 0; folder && i < folders->count; i++)
		if (!strcmp(folders->paths[i], folder)) {
			free(folder);
			return;
		}
	if (!folder)
		return;
	xalloc_grow(&folders->paths, folders->count, &folders->room, sizeof *folders->paths);
	folders->paths[folders->count++] = folder;
}

static void remove_folder(const char *path)
{
	if (rmdir(path) && errno == ENOTEMPTY && new_run_forget(path))
		rmdir(path);
}

/* Those of pods that are gone: nothing was made or removed in them for that many days. The deepest
 * goes first; what is not empty stays. */
static void remove_empty(const struct finder *finder, const struct limits *limits)
{
	time_t before = time(NULL) - (time_t)(limits->days * (NS_PER_DAY / 1000000000u));

	for (size_t i = finder->count; i-- > 1; )
		if (finder->directories[i].changed.tv_sec < before)
			remove_folder(finder->directories[i].path);
}

static int clean_folders(const char *root, const struct limits *limits, const struct opts *opts)
{
	struct finder finder = { .root = root };
	struct folders folders = { 0 };
	int status = CMD_FINE;

	if (finder_scan(&finder, add_folder, &folders)) {
		say_error("cannot read '%s': %s", root, strerror(errno));
		return CMD_USAGE;
	}
	for (size_t i = 0; i < folders.count; i++) {
		if (clean_or_trim(folders.paths[i], limits, opts) != CMD_FINE)
			status = CMD_USAGE;
		free(folders.paths[i]);
	}
	free(folders.paths);
	if (limits->by_age && opts_has(opts, "yes") && !opts_has(opts, "dry-run"))
		remove_empty(&finder, limits);
	finder_fini(&finder);
	return status;
}

/* Until a signal ends it: nothing is left half done by that. */
static int clean_always(const char *directory, const struct limits *limits,
			const struct opts *opts)
{
	uint64_t every_s = opts_number(opts, "every", 0);
	int status;

	do {
		status = opts_has(opts, "recursive") ? clean_folders(directory, limits, opts) :
						       clean_or_trim(directory, limits, opts);
	} while (every_s && !sleep((unsigned)every_s));
	return status;
}

static int run_clean(const struct opts *opts, const struct cmd *const *commands)
{
	struct limits limits = {
		.by_count = opts_has(opts, "keep"),
		.by_age = opts_has(opts, "days"),
		.by_size = opts_has(opts, "total"),
		.keep = opts_number(opts, "keep", 0),
		.days = opts_number(opts, "days", 0),
		.total_bytes = opts_number(opts, "total", 0),
	};
	struct destination destination;
	bool removes;

	(void)commands;
	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; clean takes one directory",
			  opts->operands[1]);
		return CMD_USAGE;
	}
	removes = limits.by_count || limits.by_age || limits.by_size;
	if (removes && opts_has(opts, "trim")) {
		say_error("--trim removes no recording, so it takes no --keep, --days or --total; "
			  "run clean twice");
		return CMD_USAGE;
	}
	if (!removes && !opts_has(opts, "trim")) {
		say_error("what may go? --keep=N newest runs stay, --days=N: older ones go, "
			  "--total=SIZE stays at most; --trim: only space that holds nothing");
		return CMD_USAGE;
	}
	if (opts->operand_count)
		return clean_always(opts->operands[0], &limits, opts);
	if (destination_set(&destination, NULL)) {
		say_error("cannot read the current directory: %s", strerror(errno));
		return CMD_USAGE;
	}
	return clean_always(destination.directory, &limits, opts);
}

static const struct opt options[] = {
	{ "keep", 0, OPT_COUNT, "N", 0, 1000000, NULL, "keep the N newest runs" },
	{ "days", 0, OPT_COUNT, "N", 0, 100000, NULL,
	  "remove runs that ended more than N days ago" },
	{ "total", 0, OPT_BYTES, "SIZE", 0, UINT64_MAX, NULL,
	  "keep the newest runs that take no more than SIZE on disk" },
	{ "trim", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "remove nothing, but make each recording as small as what it holds; `run` does so "
	  "at its end" },
	{ "recursive", 'r', OPT_FLAG, NULL, 0, 0, NULL,
	  "clean each folder, three levels deep, by the same limits; with --days and --yes, "
	  "folders that have been empty for so long go, too" },
	{ "every", 0, OPT_COUNT, "SECONDS", 1, 31536000, NULL,
	  "again and again, until it is ended" },
	{ "yes", 'y', OPT_FLAG, NULL, 0, 0, NULL, "do not ask" },
	{ "dry-run", 'n', OPT_FLAG, NULL, 0, 0, NULL,
	  "only print what would be removed or trimmed" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_clean = {
	.name = "clean",
	.summary = "remove recordings of old runs, or make them small",
	.usage = "--keep=N|--days=N|--total=SIZE|--trim [OPTIONS] [DIR]",
	.manual = "cuflight-clean",
	.about = "Prints the recordings of a directory that are beyond any of the limits, asks, "
		 "and removes them. Only complete runs go. A run that goes on, a damaged "
		 "recording, a symbolic link and any other file stay. Without a terminal it "
		 "removes nothing unless --yes is given.",
	.examples = "cuflight clean --keep=10 rec/\tthe ten newest runs stay\n"
		    "cuflight clean --days=7 --yes rec/\tfor a scheduled job\n"
		    "cuflight clean --total=1GiB --dry-run rec/\twhat would go\n"
		    "cuflight clean --trim rec/\tafter a plain preload\n"
		    "cuflight clean -r --days=7 --every=3600 --yes /var/lib/cuflight\ton a node\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_clean,
};
