/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight run`: sets the environment, runs the command, passes its status on, and reports. */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clock.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/settings.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/run/conclusion.h"
#include "analysis/cmd/run/gpu_watch.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/run/run_check.h"
#include "analysis/cmd/run/supervise.h"
#include "analysis/cmd/target/checks.h"
#include "analysis/cmd/target/destination.h"
#include "analysis/cmd/target/library.h"

/*
 * Another malloc for the recorded command: where its library is installed. Contract: 0 and an
 * absolute path that LD_PRELOAD can hold, else -1 and a sentence in why with a hint.
 */
enum allocator_choice { ALLOCATOR_OWN, ALLOCATOR_JEMALLOC, ALLOCATOR_CHOICES };
#define ALLOCATOR_WORDS "own|jemalloc"

struct allocator_library {
	char path[PATH_MAX];
	char why[512];
};

static const struct {
	const char *file, *package;
} libraries[ALLOCATOR_CHOICES] = {
	[ALLOCATOR_JEMALLOC] = { "libjemalloc.so.2", "libjemalloc2" },
};

/* Fills library->path; true when the file is there and LD_PRELOAD can name it. */
static bool is_usable(struct allocator_library *library, const char *before,
		      const char *directory, const char *file)
{
	int length = snprintf(library->path, sizeof library->path, "%s%s/%s", before, directory,
			      file);

	if (length < 0 || (size_t)length >= sizeof library->path)
		return false;
	return !access(library->path, R_OK) && !strpbrk(library->path, " :\t\n");
}

/* The directory of this process's C library; "" when it is unknown. */
static void find_libc_directory(char *out, size_t bytes)
{
	Dl_info info;
	const char *slash;

	*out = 0;
	if (!dladdr((void *)(uintptr_t)getenv, &info) || !info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	if (slash)
		snprintf(out, bytes, "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
}

/* Looks next to the C library first, where distributions install it for this architecture. */
static int allocator_find(struct allocator_library *library, enum allocator_choice choice)
{
	static const char *const places[] = {
		"/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib",
	};
	const char *file = libraries[choice].file;
	char libc[PATH_MAX];

	find_libc_directory(libc, sizeof libc);
	/* /lib may be a link to /usr/lib: the longer path is the one that packages list */
	if (*libc && (is_usable(library, "/usr", libc, file) || is_usable(library, "", libc, file)))
		return 0;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++)
		if (is_usable(library, "", places[i], file))
			return 0;
	snprintf(library->why, sizeof library->why,
		 "cannot use --host-allocator=jemalloc: %s is not installed; "
		 "install the package %s",
		 file, libraries[choice].package);
	return -1;
}

enum { TICK_MS = 50 };

/* ---- before the command ---- */

/* A recording of the same name is refused, or removed with -f. */
static int prepare_file(const struct destination *destination, bool force)
{
	if (access(destination->value, F_OK))
		return 0;
	if (!force) {
		say_error("'%s' exists; -f overwrites it, -o chooses another name",
			  destination->value);
		return -1;
	}
	if (!unlink(destination->value))
		return 0;
	say_error("cannot remove '%s': %s", destination->value, strerror(errno));
	return -1;
}

/* With mode=0640 a directory is the group's to read, too, whatever the umask is. */
static bool group_reads(const struct opts *opts)
{
	const char *mode = opts_text(opts, "mode"), *settings = getenv("CUFLIGHT_OPTIONS");

	return mode ? !strcmp(mode, "0640") : settings && strstr(settings, "mode=0640");
}

/* Fails before the command starts, because nobody wants to run it twice. */
static int prepare_destination(struct destination *destination, const struct opts *opts)
{
	if (destination_set(destination, opts_text(opts, "output"))) {
		say_error("cannot use the output path: %s", strerror(errno ? errno : ENAMETOOLONG));
		return -1;
	}
	if (destination_prepare(destination, group_reads(opts))) {
		say_error("cannot create directory '%s': %s; choose another with -o",
			  destination->directory, strerror(errno));
		return -1;
	}
	if (destination->is_directory || destination->is_pattern)
		return 0;
	return prepare_file(destination, opts_has(opts, "force"));
}

/* A value that is cut off would preload another library, or none. */
static int fail_long_preload(void)
{
	say_error("cannot set LD_PRELOAD: too long");
	return -1;
}

/* What is preloaded after the recorder: a requested allocator, then what was there. */
static int compose_others(const struct opts *opts, char *out, size_t bytes)
{
	enum allocator_choice choice =
		(enum allocator_choice)opts_number(opts, "host-allocator", ALLOCATOR_OWN);
	const char *inherited = getenv("LD_PRELOAD");
	struct allocator_library allocator = { .path = "" };
	int length;

	if (choice != ALLOCATOR_OWN && allocator_find(&allocator, choice)) {
		say_error("%s", allocator.why);
		return -1;
	}
	if (!inherited)
		inherited = "";
	length = snprintf(out, bytes, "%s%s%s", allocator.path,
			  *allocator.path && *inherited ? ":" : "", inherited);
	if (length < 0 || (size_t)length >= bytes)
		return fail_long_preload();
	return 0;
}

/* Sets the variables in our own environment, which the command inherits. Only LD_PRELOAD, the two
 * variables of the recorder and NVTX's are changed. Everything else is the user's. */
static int prepare_environment(const struct opts *opts, const struct destination *destination)
{
	struct library library;
	char preload[4 * PATH_MAX], others[3 * PATH_MAX];
	char options[4 * PATH_MAX], error[PATH_MAX + 128], start[32];

	if (library_find(&library, opts_text(opts, "library"))) {
		say_error("%s", library.why);
		return -1;
	}
	if (compose_others(opts, others, sizeof others))
		return -1;
	/* our direct child records from its start; a shell's ls only when it uses much memory */
	snprintf(start, sizeof start, "start=%ld", (long)getpid());
	if (settings_compose(opts, getenv("CUFLIGHT_OPTIONS"), start, options, sizeof options,
			     error, sizeof error)) {
		say_error("%s", error);
		return -1;
	}
	if (library_compose_preload(library.path, others, preload, sizeof preload))
		return fail_long_preload();
	/* NVTX finds a tool by this variable. If another tool is set, the recorder calls it. */
	if (setenv("NVTX_INJECTION64_PATH", library.path, 0) || setenv("LD_PRELOAD", preload, 1) ||
	    setenv("CUFLIGHT_OPTIONS", options, 1) ||
	    setenv("CUFLIGHT_OUTPUT", destination->value, 1)) {
		say_error("cannot set the environment: %s", strerror(errno));
		return -1;
	}
	return 0;
}

/* Statuses and messages of a command that did not start, as a shell has them. */
static int fail_start(const char *command, int error)
{
	char here[PATH_MAX];

	if (error != ENOENT) {
		say_error("cannot run '%s': %s", command, strerror(error));
		return CMD_RUN_CANNOT;
	}
	snprintf(here, sizeof here, "./%s", command);
	if (!strchr(command, '/') && !access(here, X_OK))
		say_error("cannot run '%s': not found in PATH; did you mean '%s'?", command, here);
	else
		say_error("cannot run '%s': not found", command);
	return CMD_RUN_MISSING;
}

/* ---- after the command ---- */

/* No recording appeared: the checks about the command may know why. */
static void explain_missing(const struct opts *opts, const char *command)
{
	struct check_context context;
	struct check_result results[CHECKS_MAX];
	size_t count, problems = 0;

	checks_prepare(&context, opts_text(opts, "library"), opts_text(opts, "output"),
		       opts_number(opts, "size", 64 << 20), command);
	count = checks_run(&context, true, results);
	for (size_t i = 0; i < count; i++) {
		if (results[i].state != CHECK_PROBLEM)
			continue;
		say_error("nothing was recorded: %s", results[i].found);
		if (*results[i].todo)
			say_error("  %s", results[i].todo);
		problems++;
	}
	if (!problems)
		say_error("nothing was recorded; 'cuflight doctor -- %s' looks for the reason",
			  command);
}

/* Notes the end in the recordings, prints the last lines, and returns the exit status. Order:
 * the files are found and related first, then completed, and only then dropped or read for the
 * report. */
static int conclude(const struct opts *opts, const struct destination *destination,
		    const struct supervised *supervised, const struct oom_kills *kills,
		    struct gpu_watch *watch, uint64_t began_ns)
{
	struct recordings list = { 0 };
	int status = supervise_exit(supervised);
	size_t processes;

	recordings_scan(&list, destination->directory, destination->depth, began_ns);
	processes = recordings_mark_run(&list, (uint32_t)supervised->pid, (uint32_t)getpid());
	conclusion_print_kill(&list, supervised, kills);
	conclusion_note_end(&list, supervised, kills);
	gpu_watch_end(watch, &list);
	processes -= recordings_drop_replaced(&list);
	conclusion_trim(&list);
	if (processes)
		conclusion_print(&list, processes, destination, opts_has(opts, "output"), status);
	else
		explain_missing(opts, opts->operands[0]);
	if (!status)
		status = run_check_judge(opts, &list);
	recordings_free(&list);
	return status;
}

/* Order: everything that can fail comes before the command. The OOM counters are read right before
 * it and right after it, so their difference belongs to this run. */
static int run_run(const struct opts *opts, const struct cmd *const *commands)
{
	struct destination destination;
	struct supervised supervised;
	struct cgroup_memory before;
	struct oom_kills kills;
	struct supervise_tick tick = { .every_ms = TICK_MS, .tick = gpu_watch_tick };
	/* recordings have the wall clock of their start: those before this run are not ours */
	uint64_t began_ns = clock_ns(CLOCK_REALTIME);

	if (!opts->operand_count) {
		say_error("no command given: cuflight run [OPTIONS] -- COMMAND; "
			  "see 'cuflight run --help'");
		return CMD_RUN_FAILED;
	}
	if (run_check_prepare(opts) || prepare_destination(&destination, opts) ||
	    prepare_environment(opts, &destination))
		return CMD_RUN_FAILED;
	cgroup_read(&before);
	tick.context = gpu_watch_new(destination.directory, destination.depth, began_ns,
				     getenv("CUFLIGHT_OPTIONS"));
	supervise(&supervised, opts->operands, tick.context ? &tick : NULL);
	if (supervised.error)
		return fail_start(opts->operands[0], supervised.error);
	kills = oom_kills_since(&before);
	return conclude(opts, &destination, &supervised, &kills, tick.context, began_ns);
}

static const struct opt run_options[] = {
	{ "output", 'o', OPT_TEXT, "PATH", 0, 0, "CUFLIGHT_OUTPUT, else here",
	  "directory or file name of the recordings; %p pid, %h host, %e executable, "
	  "%n free number, %t time, %q{VAR}" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL,
	  "overwrite an existing recording of that name" },
	{ "library", 0, OPT_TEXT, "PATH", 0, 0, NULL,
	  "the libcuflight.so to preload, if cuflight does not find it" },
	{ "host-allocator", 0, OPT_CHOICE, ALLOCATOR_WORDS, 0, 0, "0",
	  "allocator for COMMAND: its own, or jemalloc (more detailed statistics)" },
};
static const struct opt_group option_group = {
	"Options", run_options, sizeof run_options / sizeof *run_options, { NULL },
};

const struct cmd cmd_run = {
	.name = "run",
	.summary = "record a command",
	.usage = "[OPTIONS] [--] COMMAND [ARGUMENT...]",
	.manual = "cuflight-run",
	.about = "Runs COMMAND with libcuflight.so preloaded, also into programs that it starts. "
		 "Exits with the status of COMMAND, or 128 + the number of the signal that ended "
		 "it; 125: cuflight failed, 126: COMMAND cannot be executed, 127: it was not "
		 "found. At the end, prints where the recording is, the likely cause if memory "
		 "ran out, or why nothing was recorded.",
	.examples = "cuflight run -- python3 server.py\trecord into the current directory\n"
		    "cuflight run -o rec/ --host=full -- ./server -n 4\tevery host allocation too\n"
		    "cuflight run --error-exitcode=9 -- ./test\tfail a test that leaks\n"
		    "cuflight run --host=full --limits='host.peak <= 2GiB' -- ./test\ta budget\n",
	.groups = { &option_group, &run_check_options, &settings_launched, &opts_common },
	.takes_command = true,
	.usage_exit = CMD_RUN_FAILED,
	.run = run_run,
};
