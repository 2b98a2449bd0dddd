/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight run`: the preload and the settings, the command, its status passed on, and a look whether it was recorded. */
#include "analysis/cmd/cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/cmd/target/allocator.h"
#include "analysis/cmd/target/cgroup.h"
#include "analysis/cmd/doctor/checks.h"
#include "analysis/cmd/target/destination.h"
#include "analysis/cmd/target/library.h"
#include "analysis/cmd/run/recordings.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cli/settings.h"
#include "analysis/cmd/run/supervise.h"
#include "analysis/cmd/run/tenants_watch.h"
#include "analysis/explain/facts_build.h"
#include "analysis/recording/recording_append.h"
#include "analysis/view/units.h"

enum { RUN_PATTERN_DEPTH = 3 /* directories that a pattern may add */, TICK_MS = 50 };

static uint64_t wall_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Makes the directory; a file that is there already is refused, or with -f removed. */
static int prepare_destination(struct destination *destination, const struct opts *opts)
{
	if (destination_set(destination, opts_text(opts, "output"))) {
		say_error("cannot use the output path: %s", strerror(errno ? errno : ENAMETOOLONG));
		return -1;
	}
	if (destination_prepare(destination)) {
		say_error("cannot make directory '%s': %s; choose another with -o", destination->directory, strerror(errno));
		return -1;
	}
	if (destination->is_directory || destination->is_pattern || access(destination->value, F_OK))
		return 0;
	if (!opts_has(opts, "force")) {
		say_error("'%s' exists; -f overwrites it, -o names another", destination->value);
		return -1;
	}
	if (!unlink(destination->value))
		return 0;
	say_error("cannot remove '%s': %s", destination->value, strerror(errno));
	return -1;
}

/* What is preloaded behind the recorder: another malloc when asked for, then what was there. */
static int compose_others(const struct opts *opts, char *out, size_t bytes)
{
	enum allocator_choice choice = (enum allocator_choice)opts_number(opts, "host-allocator", ALLOCATOR_OWN);
	const char *inherited = getenv("LD_PRELOAD");
	struct allocator_library allocator = { .path = "" };
	int length;
	if (choice != ALLOCATOR_OWN && allocator_find(&allocator, choice)) {
		say_error("%s", allocator.why);
		return -1;
	}
	length = snprintf(out, bytes, "%s%s%s", allocator.path, *allocator.path && inherited ? ":" : "", inherited ? inherited : "");
	if (length >= 0 && (size_t)length < bytes)
		return 0;
	say_error("LD_PRELOAD is too long");
	return -1;
}

/* Our own process has no further use for these variables, so they are set here and inherited. */
static int prepare_environment(const struct opts *opts, const struct destination *destination)
{
	struct library library;
	char preload[4 * PATH_MAX], others[3 * PATH_MAX], options[4 * PATH_MAX], error[PATH_MAX + 128], start[32];
	if (library_find(&library, opts_text(opts, "library"))) {
		say_error("%s", library.why);
		return -1;
	}
	if (compose_others(opts, others, sizeof others))
		return -1;
	/* the command itself records from its start; what it starts in turn (a shell's ls) only when it is worth a file */
	snprintf(start, sizeof start, "start=%ld", (long)getpid());
	if (settings_compose(opts, getenv("CUFLIGHT_OPTIONS"), start, options, sizeof options, error, sizeof error)) {
		say_error("%s", error);
		return -1;
	}
	if (library_compose_preload(library.path, others, preload, sizeof preload)) {
		say_error("LD_PRELOAD is too long");
		return -1;
	}
	/* NVTX's own way to find a tool. Another tool that is named there stays: the recorder calls it */
	if (setenv("NVTX_INJECTION64_PATH", library.path, 0) || setenv("LD_PRELOAD", preload, 1) || setenv("CUFLIGHT_OPTIONS", options, 1) || setenv("CUFLIGHT_OUTPUT", destination->value, 1)) {
		say_error("cannot set the environment: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static int start_failure(const char *command, int error)
{
	char here[PATH_MAX];
	snprintf(here, sizeof here, "./%s", command);
	if (error != ENOENT) {
		say_error("cannot run '%s': %s", command, strerror(error));
		return CMD_RUN_CANNOT;
	}
	if (!strchr(command, '/') && !access(here, X_OK))
		say_error("cannot run '%s': not found in PATH; did you mean '%s'?", command, here);
	else
		say_error("cannot run '%s': not found", command);
	return CMD_RUN_MISSING;
}

/* The kernel's counters of kills for want of memory: how much they rose while the command ran. */
struct kills { uint64_t in_cgroup, on_machine, limit_bytes; }; /* CUF_UNKNOWN */

static uint64_t rise(uint64_t before, uint64_t now)
{
	return before == CUF_UNKNOWN || now == CUF_UNKNOWN ? CUF_UNKNOWN : now > before ? now - before : 0;
}

static struct kills kills_since(const struct cgroup_memory *before)
{
	struct cgroup_memory now;
	cgroup_read(&now);
	return (struct kills){ rise(before->oom_kills, now.oom_kills), rise(before->system_oom_kills, now.system_oom_kills), now.limit_bytes };
}

static bool any_kill(uint64_t rose) { return rose && rose != CUF_UNKNOWN; }

/* SIGKILL has no sender on record; the kernel's own counters tell whether it was for want of memory. */
static void tell_kill(const struct supervised *supervised, const struct kills *kills)
{
	if (!WIFSIGNALED(supervised->wait_status) || WTERMSIG(supervised->wait_status) != SIGKILL)
		return;
	if (any_kill(kills->in_cgroup))
		say_info("killed for want of host memory: the cgroup's oom_kill count rose by %s (limit %s)", units_count(kills->in_cgroup).s,
			 units_bytes(kills->limit_bytes).s);
	else if (any_kill(kills->on_machine))
		say_info("killed by SIGKILL while the machine's oom_kill count rose by %s: probably for want of host memory",
			 units_count(kills->on_machine).s);
	else
		say_info("killed by SIGKILL; no oom_kill count rose, so somebody sent it");
}

static int add_number(char *out, size_t bytes, const char *key, uint64_t value)
{
	return value == CUF_UNKNOWN ? 0 : snprintf(out, bytes, "%s=%" PRIu64 "\n", key, value);
}

/* What a later report cannot know: how the command ended when it could not say so itself, and of the processes that it
 * started, whether somebody was killed for want of memory meanwhile. */
static void note_end(const struct recordings *list, const struct supervised *supervised, const struct kills *kills)
{
	int status = supervised->wait_status;
	for (size_t i = 0; i < list->count; i++) {
		const struct recording_file *file = &list->files[i];
		bool own = file->pid == (uint32_t)supervised->pid;
		char text[256] = "";
		int used = 0;
		if (!file->of_run || (!own && (!any_kill(kills->in_cgroup) || !kill((pid_t)file->pid, 0) || errno != ESRCH)))
			continue;
		if (own)
			used += add_number(text, sizeof text, WIFSIGNALED(status) ? "signal" : "exit_status",
					   (uint64_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)));
		used += add_number(text + used, sizeof text - (size_t)used, "oom_kill", kills->in_cgroup);
		used += add_number(text + used, sizeof text - (size_t)used, "system_oom_kill", kills->on_machine);
		add_number(text + used, sizeof text - (size_t)used, "limit_bytes", kills->limit_bytes);
		if (recording_append_wait(file->path, text) < 0)
			say_error("cannot note the end in '%s': %s", file->path, strerror(errno));
	}
}

static void tell_missing(const struct opts *opts, const char *command)
{
	struct check_context context;
	struct check_result results[CHECKS_MAX];
	size_t count, problems = 0;
	checks_prepare(&context, opts_text(opts, "library"), opts_text(opts, "output"), opts_number(opts, "size", 64 << 20), command);
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
		say_error("nothing was recorded, and the command itself shows no reason; 'cuflight doctor -- %s' looks further", command);
}

static void tell_recorded(const struct recordings *list, size_t processes, const struct destination *destination)
{
	const struct recording_file *best = recordings_best(list);
	char shown[PATH_MAX], next[PATH_MAX];
	uint64_t bytes = 0, incidents = 0;
	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].of_run) {
			bytes += list->files[i].bytes;
			incidents += list->files[i].incident_count;
		}
	/* a directory is one run to report, when nothing else lies in it */
	bool whole = processes > 1 && destination->is_directory && processes == list->count + list->older;
	recordings_show_path(best->path, shown, sizeof shown);
	recordings_show_path(whole ? destination->directory : best->path, next, sizeof next);
	if (processes > 1)
		say_info("recorded %zu processes (%s)%s%s%s", processes, units_bytes(bytes).s, incidents ? ", " : "",
			 incidents ? units_count(incidents).s : "", incidents ? " failed requests" : "");
	else
		say_info("recorded %s (%s)%s%s%s", shown, units_bytes(bytes).s, incidents ? ", " : "",
			 incidents ? units_count(incidents).s : "", incidents == 1 ? " failed request" : incidents ? " failed requests" : "");
	say_info("next: cuflight report %s", next);
}

/* A fatal incident or a leak in any of the run's processes. */
static bool has_finding(const struct recordings *list)
{
	bool found = false;
	for (size_t i = 0; i < list->count && !found; i++) {
		struct facts *facts;
		if (!list->files[i].of_run || facts_build(list->files[i].path, NULL, &facts, NULL))
			continue;
		found = facts->fatal_incident != 0;
		for (size_t leak = 0; leak < facts->leak_count; leak++)
			found |= facts->leaks[leak].class == CLASS_LEAK;
		facts_free(facts);
	}
	return found;
}

static int conclude(const struct opts *opts, const struct destination *destination, const struct supervised *supervised, const struct kills *kills,
		    struct tenants_watch *watch, uint64_t began_ns)
{
	struct recordings list = { 0 };
	int status = supervise_exit(supervised), findings_status = (int)opts_number(opts, "error-exitcode", 0);
	size_t processes;
	recordings_scan(&list, destination->directory, destination->is_pattern ? RUN_PATTERN_DEPTH : 0, began_ns);
	processes = recordings_mark_run(&list, (uint32_t)supervised->pid, (uint32_t)getpid());
	note_end(&list, supervised, kills);
	tenants_watch_end(watch, &list);
	processes -= recordings_drop_replaced(&list);
	if (processes)
		tell_recorded(&list, processes, destination);
	else
		tell_missing(opts, opts->operands[0]);
	if (!status && findings_status && has_finding(&list)) {
		say_info("there are findings: exit status %d in place of 0", findings_status);
		status = findings_status;
	}
	recordings_free(&list);
	return status;
}

static int run_run(const struct opts *opts)
{
	struct destination destination;
	struct supervised supervised;
	struct cgroup_memory before;
	struct kills kills;
	struct tenants_watch *watch;
	uint64_t began_ns = wall_ns();
	if (!opts->operand_count) {
		say_error("no command given: cuflight run [OPTIONS] -- COMMAND; see 'cuflight run --help'");
		return CMD_RUN_FAILED;
	}
	if (prepare_destination(&destination, opts) || prepare_environment(opts, &destination))
		return CMD_RUN_FAILED;
	cgroup_read(&before);
	watch = tenants_watch_new(destination.directory, destination.is_pattern ? RUN_PATTERN_DEPTH : 0, began_ns, getenv("CUFLIGHT_OPTIONS"));
	supervise(&supervised, opts->operands, watch ? &(struct supervise_tick){ TICK_MS, tenants_watch_tick, watch } : NULL);
	if (supervised.error)
		return start_failure(opts->operands[0], supervised.error);
	kills = kills_since(&before);
	tell_kill(&supervised, &kills);
	return conclude(opts, &destination, &supervised, &kills, watch, began_ns);
}

static const struct opt own[] = {
	{ "output", 'o', OPT_TEXT, "PATH", 0, 0, "CUFLIGHT_OUTPUT, else here",
	  "directory for the recordings, or file name; %p pid, %h host, %e executable, %n free number, %t time, %q{VAR}" },
	{ "force", 'f', OPT_FLAG, NULL, 0, 0, NULL, "overwrite an existing recording of that name" },
	{ "library", 0, OPT_TEXT, "PATH", 0, 0, NULL, "the libcuflight.so to preload, when it is not beside cuflight or installed" },
	{ "host-allocator", 0, OPT_CHOICE, ALLOCATOR_WORDS, 0, 0, "0",
	  "malloc of the command: its own, or jemalloc, which keeps fuller books and fragments otherwise" },
	{ "error-exitcode", 0, OPT_COUNT, "N", 0, 255, "0", "exit with N instead of 0 when a request failed fatally or memory leaked; 0: never" },
};
static const struct opt_group own_group = { "Options", own, sizeof own / sizeof *own, { NULL } };

const struct cmd cmd_run = {
	.name = "run",
	.summary = "record a command",
	.usage = "[OPTIONS] [--] COMMAND [ARGUMENT...]",
	.about = "Runs the command with libcuflight.so preloaded, in it and in all it starts, and passes its exit status on (128 + number "
		 "after a signal). 125: cuflight itself failed; 126: the command cannot be executed; 127: it was not found. At the end it says "
		 "where the recording is, or why there is none.",
	.examples = "cuflight run -- python3 server.py\trecord into the current directory\n"
		    "cuflight run -o rec/ --host=full -- ./server -n 4\tevery host allocation as well\n"
		    "cuflight run --error-exitcode=9 -- ./test\tfail a test that leaks\n",
	.groups = { &own_group, &settings_launched, &opts_common },
	.takes_command = true,
	.usage_exit = CMD_RUN_FAILED,
	.run = run_run,
};
