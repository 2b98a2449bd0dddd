/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight watch`: rules over what runs, and what is done when one holds. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "analysis/base/clock.h"
#include "analysis/base/xalloc.h"
#include "analysis/cmd/cli/opts.h"
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/live/actions.h"
#include "analysis/cmd/live/firing.h"
#include "analysis/cmd/live/keep.h"
#include "analysis/cmd/live/rule.h"
#include "analysis/cmd/reading/watching.h"

/* The rules of --rule and --rules. Contract: 0, or -1 after a message that shows what is wrong. */
struct rules { struct rule **rules; size_t count, room; };

enum { RULES_MAX = 256 };

/* where: "" or "FILE:3: " */
static int add_rule(struct rules *rules, const char *text, const char *where)
{
	struct rule *rule = xalloc_zeroed(1, sizeof *rule);
	struct rule_error error;

	if (rules->count == RULES_MAX) {
		say_error("%smore than %d rules", where, RULES_MAX);
	} else if (rule_parse(rule, text, &error)) {
		xalloc_grow(&rules->rules, rules->count, &rules->room, sizeof *rules->rules);
		rules->rules[rules->count++] = rule;
		return 0;
	} else {
		say_error("%scannot read the rule at column %zu, '%.60s': %s; for example: "
			  RULE_EXAMPLE, where, error.at + 1, rule->text + error.at, error.text);
	}
	free(rule);
	return -1;
}

static int read_lines(struct rules *rules, FILE *file, const char *path)
{
	char line[RULE_TEXT + 1], where[128];

	for (unsigned number = 1; fgets(line, sizeof line, file); number++) {
		const char *begin = line + strspn(line, " \t");

		snprintf(where, sizeof where, "%.100s:%u: ", path, number);
		if (!strchr(line, '\n') && !feof(file)) {
			say_error("%slonger than %d bytes, or no text", where, RULE_TEXT);
			return -1;
		}
		line[strcspn(line, "\n")] = 0;
		if (*begin && *begin != '#' && add_rule(rules, begin, where))
			return -1;
	}
	if (!ferror(file))
		return 0;
	say_error("cannot read '%s': %s", path, strerror(errno));
	return -1;
}

static int read_file(struct rules *rules, const char *path)
{
	FILE *file = fopen(path, "re");
	int status;

	if (!file) {
		say_error("cannot read '%s': %s", path, strerror(errno));
		return -1;
	}
	status = read_lines(rules, file, path);
	fclose(file);
	return status;
}

static int rules_of_options(struct rules *rules, const struct opts *opts)
{
	const char *path = opts_text(opts, "rules");
	const char *const *texts;
	size_t count;

	*rules = (struct rules){ 0 };
	texts = opts_list(opts, "rule", &count);
	for (size_t i = 0; i < count; i++)
		if (add_rule(rules, texts[i], ""))
			return -1;
	if (path && read_file(rules, path))
		return -1;
	if (rules->count)
		return 0;
	say_error("name a rule, for example: --rule '" RULE_EXAMPLE "'");
	return -1;
}

static void rules_fini(struct rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		free(rules->rules[i]);
	free(rules->rules);
}

struct watching {
	struct watch watch;
	struct rules rules;
	struct firings firings;
	struct actions actions;
	struct keep keep;
	int signals;
	uint64_t looked_ns;
	bool has_failed;    /* the state could not be written: stated once */
	char target[PATH_MAX];    /* a directory or a recording */
	char directory[PATH_MAX]; /* of state and snapshots */
};

/* ---- a rule fires ---- */

static const struct watch_process *process_of(const struct watch *watch, const char *name)
{
	for (size_t i = 0; *name && i < watch->count; i++)
		if (!watch->processes[i]->is_succeeded && !strcmp(watch->processes[i]->name, name))
			return watch->processes[i];
	return NULL;
}

static void fill_event(struct event *event, const struct watching *watching,
		       const struct rule *rule, const struct rule_sample *sample)
{
	const struct watch_process *process = process_of(&watching->watch, sample->process);

	*event = (struct event){ .rule = rule, .sample = *sample,
				 .time_ns = clock_ns(CLOCK_REALTIME) };
	snprintf(event->process, sizeof event->process, "%s", sample->process);
	snprintf(event->gpu, sizeof event->gpu, "%s", sample->gpu);
	event->sample.process = event->sample.gpu = NULL; /* of the watch, which goes on */
	if (!process)
		return;
	event->has_process = true;
	event->header = process->levels.header;
	snprintf(event->recording, sizeof event->recording, "%s", process->path);
	if (process->pass && *process->pass->cause)
		snprintf(event->cause, sizeof event->cause, "%s%s%s", process->pass->cause,
			 *process->pass->cause_site ? " at " : "", process->pass->cause_site);
}

/* The limit is noted before anything is done: a watcher that is killed in between has fired. */
static bool fire(void *state, const struct rule *rule, const struct rule_sample *sample)
{
	struct watching *watching = state;
	uint64_t now_s = clock_ns(CLOCK_REALTIME) / 1000000000;
	static struct event event;

	if (!keep_may(&watching->keep, rule->text, sample->process, now_s))
		return false;
	if (keep_note(&watching->keep, rule->text, sample->process, now_s)) {
		if (!watching->has_failed)
			say_error("cannot note in '%s/state' that a rule fired, so none does: %s",
				  watching->directory, strerror(errno));
		watching->has_failed = true;
		return false;
	}
	watching->has_failed = false;
	fill_event(&event, watching, rule, sample);
	if (!actions_add(&watching->actions, &event))
		say_error("%s: %s: left out, since %d others wait", rule->condition,
			  sample->series, ACTIONS_WAITING);
	return true;
}

static void look_for_rules(struct watching *watching)
{
	uint64_t now_ns = watch_now_ns();

	watching->looked_ns = now_ns;
	watch_refresh(&watching->watch);
	for (size_t i = 0; i < watching->rules.count; i++)
		firing_look(&watching->firings, watching->rules.rules[i], &watching->watch, now_ns,
			    fire, watching);
}

/* ---- the loop ---- */

/* Until SIGTERM or SIGINT. A look each second. */
static void work(struct watching *watching)
{
	struct pollfd fds[3];

	for (;;) {
		int wait_ms = sooner(watch_work(&watching->watch), 1000);

		if (watch_now_ns() - watching->looked_ns >= 1000000000)
			look_for_rules(watching);
		wait_ms = sooner(wait_ms, actions_work(&watching->actions));
		fds[0] = (struct pollfd){ watching->signals, POLLIN, 0 };
		fds[1] = (struct pollfd){ watching->watch.worker.socket, POLLIN, 0 };
		fds[2] = (struct pollfd){ watching->actions.fd, POLLIN, 0 };
		poll(fds, 3, wait_ms);
		if (fds[0].revents)
			return;
	}
}

/* ---- --dry-run ---- */

struct printed { const struct rule *rule; size_t count; };

static void print_sample(void *state, const struct rule_sample *sample)
{
	struct printed *printed = state;
	char text[64];

	rule_value_text(printed->rule, sample->value, sample->share, text, sizeof text);
	printf("  %-8s %s: %s\n",
	       rule_holds(printed->rule, sample->value, sample->share) ? "holds" : "",
	       sample->series, text);
	printed->count++;
}

static int print_rules(struct watching *watching)
{
	while (!watch_is_complete(&watching->watch)) {
		int wait_ms = watch_work(&watching->watch);
		struct pollfd worker = { watching->watch.worker.socket, POLLIN, 0 };

		if (!watch_is_complete(&watching->watch))
			poll(&worker, 1, wait_ms);
	}
	watch_refresh(&watching->watch);
	for (size_t i = 0; i < watching->rules.count; i++) {
		struct printed printed = { watching->rules.rules[i], 0 };

		printf("%s\n", printed.rule->text);
		rule_read(printed.rule, &watching->watch, print_sample, &printed);
		if (!printed.count)
			printf("  nothing to look at now\n");
	}
	return CMD_FINE;
}

/* ---- options ---- */

static int open_watch(struct watching *watching, const struct opts *opts)
{
	struct watch_options options = watching_options(opts);

	if (opts_has(opts, "dry-run"))
		options.share = 1;
	return watching_open(&watching->watch, watching->target,
			     opts->operand_count ? opts->operands[0] : NULL, &options);
}

/* Below the directory that is watched, or next to the recording. */
static void choose_directory(struct watching *watching, const struct opts *opts)
{
	const char *typed = opts_text(opts, "keep"), *slash = strrchr(watching->target, '/');
	int bytes = (int)strlen(watching->target);
	struct stat file;

	if (!stat(watching->target, &file) && !S_ISDIR(file.st_mode))
		bytes = slash ? (int)(slash - watching->target) : 0;
	if (typed)
		snprintf(watching->directory, sizeof watching->directory, "%s", typed);
	else
		snprintf(watching->directory, sizeof watching->directory, "%.*s%swatch", bytes,
			 watching->target, bytes ? "/" : "");
}

static int open_keep(struct watching *watching, const struct opts *opts)
{
	pid_t other;

	if (!keep_open(&watching->keep, watching->directory, opts_number(opts, "interval", 600),
		       &other))
		return 0;
	if (errno == EWOULDBLOCK)
		say_error("'%s' is watched already, by process %d; --keep=DIR is for another "
			  "watcher with other rules", watching->target, (int)other);
	else
		say_error("cannot keep its state in '%s': %s; --keep=DIR names another place",
			  watching->directory, strerror(errno));
	return -1;
}

static int watch_until_told(struct watching *watching, const struct opts *opts)
{
	choose_directory(watching, opts);
	if (open_keep(watching, opts))
		return CMD_USAGE;
	actions_init(&watching->actions);
	watching->actions.warm_up = opts_text(opts, "warm-up");
	watching->actions.snapshots = (struct snapshots){
		.directory = watching->directory,
		.most = opts_number(opts, "snapshots", 20),
		.most_bytes = opts_number(opts, "snapshot-bytes", (uint64_t)1 << 30),
	};
	watching->signals = watching_signals();
	say_info("watching '%s' with %zu rule%s; state and snapshots are in '%s'",
		 watching->target, watching->rules.count, watching->rules.count == 1 ? "" : "s",
		 watching->directory);
	watching->firings.begun_ns = clock_ns(CLOCK_REALTIME);
	work(watching);
	actions_end(&watching->actions);
	firing_fini(&watching->firings);
	keep_close(&watching->keep);
	close(watching->signals);
	return CMD_FINE;
}

static int run_watch(const struct opts *opts, const struct cmd *const *commands)
{
	static struct watching watching;
	int status = CMD_USAGE;

	(void)commands;
	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; watch reads one directory, recording or "
			  "process", opts->operands[1]);
		return CMD_USAGE;
	}
	if (rules_of_options(&watching.rules, opts))
		return CMD_USAGE;
	if (!open_watch(&watching, opts)) {
		status = opts_has(opts, "dry-run") ? print_rules(&watching) :
						     watch_until_told(&watching, opts);
		watch_close(&watching.watch);
	}
	rules_fini(&watching.rules);
	return status;
}

static const struct opt options[] = {
	{ "rule", 0, OPT_LIST, "RULE", 0, 0, NULL,
	  "NAME[(WORD)] < or > VALUE [for DURATION] -> ACTION, ...; any number of times" },
	{ "rules", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "read rules from FILE, one a line; # begins a comment" },
	{ "dry-run", 'n', OPT_FLAG, NULL, 0, 0, NULL,
	  "check the rules, print what each of them sees now, and end; nothing is done" },
	{ "interval", 0, OPT_COUNT, "SECONDS", 1, 31536000, "600",
	  "a rule fires for one process once in this time, however often the watcher starts anew" },
	{ "keep", 0, OPT_TEXT, "DIR", 0, 0, NULL,
	  "where state and snapshots are; without it, watch/ in the directory that is watched" },
	{ "snapshots", 0, OPT_COUNT, "N", 1, 1000000, "20",
	  "how many are kept; the second oldest is dropped, since the first shows what grew" },
	{ "snapshot-bytes", 0, OPT_BYTES, "BYTES", 1 << 10, (uint64_t)1 << 50, "1073741824",
	  "how much they take together" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_watch = {
	.name = "watch",
	.summary = "take a snapshot, run a command or tell somebody before memory is full",
	.usage = "[OPTIONS] --rule RULE [DIRECTORY|RECORDING|PID]",
	.manual = "cuflight-watch",
	.about = "Watches a directory of recordings, as serve does, and acts when a rule holds. A "
		 "rule compares a metric of serve, without cuflight_ and its unit, or one of "
		 "time_to_oom(gpu|cgroup|machine), headroom, free, used(gpu|cgroup), leak, growth "
		 "and failures. Actions: snapshot packs the recording as it is, with its report; "
		 "log prints a line; exec COMMAND starts a program, without a shell; webhook URL "
		 "posts JSON with curl; signal NAME is for the process. A rule fires once, and "
		 "again after it has been false. Ends with SIGTERM or SIGINT.",
	.examples = "cuflight watch --rule '" RULE_EXAMPLE "' rec/\ta snapshot before the crash\n"
		    "cuflight watch --rule 'headroom < 0 for 1m -> exec ./drain.sh' rec/\t"
		    "the next burst would fail: drain the server\n"
		    "cuflight watch -n --rule 'used(gpu) > 90% -> log' rec/\twhat it would see\n",
	.groups = { &option_group, &opts_watching, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_watch,
};
