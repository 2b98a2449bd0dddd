/* SPDX-License-Identifier: Apache-2.0 */
/* A queue, and one process at its head. */
#include "analysis/cmd/live/actions.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clean.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/replay/process_life.h"
#include "analysis/watch/watch.h"

void actions_init(struct actions *actions)
{
	actions->count = 0;
	actions->pid = 0;
	actions->fd = actions->wrote = -1;
}

bool actions_add(struct actions *actions, const struct event *event)
{
	struct event *copy;

	if (actions->count == ACTIONS_WAITING)
		return false;
	copy = xalloc_zeroed(1, sizeof *copy);
	*copy = *event;
	actions->waiting[actions->count++] = copy;
	return true;
}

/* ---- what an action learns ---- */

static void value_text(const struct event *event, char out[64])
{
	rule_value_text(event->rule, event->sample.value, event->sample.share, out, 64);
}

static void add_event_text(struct json_object *to, const char *key, const char *text)
{
	char clean[PATH_MAX];

	clean_utf8(clean, sizeof clean, text);
	json_object_object_add(to, key, *text ? json_object_new_string(clean) : NULL);
}

/* A file with the event as JSON, from its beginning. */
static int open_document(const struct event *event)
{
	struct json_object *top = json_object_new_object();
	double value = event->rule->is_share ? event->sample.share : event->sample.value;
	int fd = memfd_create("cuflight-event", MFD_CLOEXEC);
	char text[64];

	value_text(event, text);
	add_event_text(top, "schema", "cuflight.watch/1");
	add_event_text(top, "rule", event->rule->text);
	add_event_text(top, "series", event->sample.series);
	json_object_object_add(top, "value", isfinite(value) ? json_object_new_double(value) :
							       NULL);
	add_event_text(top, "value_text", text);
	json_object_object_add(top, "time_ns", json_object_new_uint64(event->time_ns));
	add_event_text(top, "process", event->process);
	json_object_object_add(top, "pid", event->has_process ?
			       json_object_new_uint64(event->header.pid) : NULL);
	add_event_text(top, "gpu", event->gpu);
	add_event_text(top, "cause", event->cause);
	add_event_text(top, "recording", event->recording);
	add_event_text(top, "snapshot", event->snapshot);
	if (fd >= 0) {
		dprintf(fd, "%s\n", json_object_to_json_string_ext(top,
								JSON_C_TO_STRING_NOSLASHESCAPE));
		lseek(fd, 0, SEEK_SET);
	}
	json_object_put(top);
	return fd;
}

static void set_environment(const struct event *event)
{
	char pid[16] = "", value[64], text[64];

	if (event->has_process)
		snprintf(pid, sizeof pid, "%u", event->header.pid);
	snprintf(value, sizeof value, "%.15g",
		 event->rule->is_share ? event->sample.share : event->sample.value);
	value_text(event, text);
	setenv("CUFLIGHT_RULE", event->rule->text, 1);
	setenv("CUFLIGHT_SERIES", event->sample.series, 1);
	setenv("CUFLIGHT_VALUE", value, 1);
	setenv("CUFLIGHT_VALUE_TEXT", text, 1);
	setenv("CUFLIGHT_PROCESS", event->process, 1);
	setenv("CUFLIGHT_PID", pid, 1);
	setenv("CUFLIGHT_GPU", event->gpu, 1);
	setenv("CUFLIGHT_CAUSE", event->cause, 1);
	setenv("CUFLIGHT_RECORDING", event->recording, 1);
	setenv("CUFLIGHT_SNAPSHOT", event->snapshot, 1);
}

static void say_event(const struct event *event)
{
	char text[64];

	value_text(event, text);
	say_error("%s: %s: %s%s%s%s%s", event->rule->condition, event->sample.series, text,
		  *event->cause ? "; " : "", event->cause, *event->snapshot ? "; " : "",
		  event->snapshot);
}

/* ---- processes ---- */

static void forget_process(struct actions *actions)
{
	if (actions->fd >= 0)
		close(actions->fd);
	if (actions->wrote >= 0)
		close(actions->wrote);
	actions->pid = 0;
	actions->fd = actions->wrote = -1;
}

/* Ends with us; its group is what a limit kills. */
static _Noreturn void be_a_process(const struct event *event, char *const *args, int wrote)
{
	int document = open_document(event);
	sigset_t none;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (document >= 0)
		dup2(document, 0);
	if (wrote >= 0)
		dup2(wrote, 2);
	dup2(2, 1);
	syscall(SYS_close_range, 3, ~0u, 0);
	set_environment(event);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	execvp(*args, args);
	dprintf(2, "cuflight: cannot execute '%s': %s\n", args[0], strerror(errno));
	_exit(127);
}

static void start_process(struct actions *actions, const struct event *event, char *const *args,
			  bool is_quiet)
{
	actions->wrote = is_quiet ? memfd_create("cuflight-wrote", MFD_CLOEXEC) : -1;
	actions->started_ns = watch_now_ns();
	fflush(NULL);
	actions->pid = fork();
	if (!actions->pid)
		be_a_process(event, args, actions->wrote);
	if (actions->pid < 0) {
		say_error("cannot start '%s': %s", args[0], strerror(errno));
		forget_process(actions);
		return;
	}
	setpgid(actions->pid, actions->pid);
	actions->fd = (int)syscall(SYS_pidfd_open, actions->pid, 0);
}

static void start_snapshot(struct actions *actions, struct event *event)
{
	struct snapshots *snapshots = &actions->snapshots;
	uint64_t free_bytes, needed_bytes;
	char warm_up[64];
	char *args[] = { (char *)"/proc/self/exe", (char *)"pack", (char *)"-q", (char *)"-o",
			 event->snapshot, warm_up, (char *)"--", event->recording, NULL };

	if (!event->has_process) {
		say_error("no snapshot: '%s' is of no single process", event->rule->condition);
		return;
	}
	if (!snapshots_fit(snapshots, event->recording, &free_bytes, &needed_bytes)) {
		if (!snapshots->is_full)
			say_error("no snapshot: '%s' has %s left, and one of '%s' may need %s",
				  snapshots->directory, units_bytes(free_bytes).s,
				  event->recording, units_bytes(needed_bytes).s);
		snapshots->is_full = true;
		return;
	}
	snapshots->is_full = false;
	snprintf(warm_up, sizeof warm_up, "--warm-up=%s",
		 actions->warm_up ? actions->warm_up : "300");
	if (snapshots_name(snapshots, event->recording, event->snapshot, sizeof event->snapshot))
		start_process(actions, event, args, true);
}

/* curl follows no redirection of its own accord. */
static void start_webhook(struct actions *actions, const struct event *event, char *address)
{
	char *args[] = { (char *)"curl", (char *)"--silent", (char *)"--show-error",
			 (char *)"--fail", (char *)"--output", (char *)"/dev/null",
			 (char *)"--proto", (char *)"=http,https", (char *)"--header",
			 (char *)"Content-Type: application/json", (char *)"--data-binary",
			 (char *)"@-", (char *)"--url", address, NULL };

	start_process(actions, event, args, true);
}

int signal_recorded(const struct cuf_header *header, int signal)
{
	int fd, result = -1, error = ESRCH;

	if (!header->pid || header->pid > INT32_MAX)
		fd = -1;
	else
		fd = (int)syscall(SYS_pidfd_open, (pid_t)header->pid, 0);
	/* looked up after the descriptor is there: nobody else can have its pid then */
	if (fd >= 0 && process_is_here(header)) {
		result = (int)syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0);
		error = errno;
	}
	if (fd >= 0)
		close(fd);
	errno = error;
	return result;
}

static void send_signal(const struct event *event, int signal)
{
	if (!event->has_process)
		say_error("no signal: '%s' is of no single process", event->rule->condition);
	else if (signal_recorded(&event->header, signal))
		say_error("cannot send signal %d to %s (pid %u): %s", signal, event->process,
			  event->header.pid, errno != ESRCH ? strerror(errno) :
			  "it has ended, or its pid is of another pid namespace");
}

static void start_action(struct actions *actions, struct event *event,
			 const struct rule_action *action)
{
	switch (action->kind) {
	case ACTION_SNAPSHOT:
		start_snapshot(actions, event);
		return;
	case ACTION_EXEC:
		start_process(actions, event, action->args, false);
		return;
	case ACTION_WEBHOOK:
		start_webhook(actions, event, *action->args);
		return;
	case ACTION_SIGNAL:
		send_signal(event, action->signal);
		return;
	default:
		say_event(event);
	}
}

/* ---- how it went ---- */

static void say_how_it_ended(struct actions *actions, struct event *event, int status)
{
	const struct rule_action *action = &event->rule->actions[event->next - 1];
	static const char *const what[ACTION_KINDS] = {
		[ACTION_SNAPSHOT] = "the snapshot", [ACTION_EXEC] = "the command",
		[ACTION_WEBHOOK] = "the webhook",
	};
	char words[900];

	if (action->kind == ACTION_SNAPSHOT && !status)
		snapshots_trim(&actions->snapshots);
	if (action->kind == ACTION_SNAPSHOT && access(event->snapshot, F_OK)) {
		if (!status)
			say_error("the snapshot is dropped: it is above --snapshot-bytes");
		*event->snapshot = 0;
	}
	if (!status)
		return;
	say_last_line(actions->wrote, words, sizeof words);
	say_error("%s of '%s' %s %d%s%s", what[action->kind], event->rule->condition,
		  WIFSIGNALED(status) ? "was ended by signal" : "failed with status",
		  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
		  *words ? ": " : "", words);
}

/* True: it goes on, in time. */
static bool still_runs(struct actions *actions)
{
	struct event *event = actions->waiting[0];
	bool is_snapshot = event->rule->actions[event->next - 1].kind == ACTION_SNAPSHOT;
	uint64_t limit_s = is_snapshot ? SNAPSHOT_SECONDS : ACTION_SECONDS;
	int status = 0;

	if (watch_now_ns() - actions->started_ns > limit_s * 1000000000)
		kill(-actions->pid, SIGKILL);
	if (waitpid(actions->pid, &status, WNOHANG) == 0)
		return true;
	say_how_it_ended(actions, event, status);
	forget_process(actions);
	return false;
}

int actions_work(struct actions *actions)
{
	while (actions->count) {
		struct event *event = actions->waiting[0];

		if (actions->pid && still_runs(actions))
			return 1000;
		if (event->next < event->rule->action_count) {
			start_action(actions, event, &event->rule->actions[event->next++]);
			continue;
		}
		free(event);
		memmove(actions->waiting, actions->waiting + 1,
			--actions->count * sizeof *actions->waiting);
	}
	return 60000;
}

void actions_end(struct actions *actions)
{
	struct timespec tick = { 0, 10000000 };

	for (int i = 0; actions->pid; i++) {
		kill(-actions->pid, i < 100 ? SIGTERM : SIGKILL);
		if (waitpid(actions->pid, NULL, WNOHANG))
			forget_process(actions);
		else
			nanosleep(&tick, NULL);
	}
	while (actions->count)
		free(actions->waiting[--actions->count]);
}
