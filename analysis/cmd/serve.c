/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight serve`: what runs, as metrics and pages, while it runs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/cmd.h"
#include "analysis/cmd/reading/watching.h"
#include "analysis/cmd/serve/ended.h"
#include "analysis/cmd/serve/http.h"
#include "analysis/view/live/metrics.h"

/*
 * The textfile of node_exporter's collector: replaced as a whole, readable for everybody, and
 * removed at the end, so that nobody reads the figures of yesterday.
 * Contract: 0, or -1 with errno; the file is unchanged then. A device or a pipe of that name
 * is never replaced or removed.
 */

/* A rename would put a file in the place of a device, or of a pipe that somebody reads. */
static bool is_other_than_a_file(const char *path)
{
	struct stat there;

	return !lstat(path, &there) && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode);
}

/* The collector reads only names that end in .prom: it never sees this one. */
static FILE *open_temporary(const char *path, char *temporary, size_t bytes)
{
	int fd;

	if (snprintf(temporary, bytes, "%s.%d", path, (int)getpid()) >= (int)bytes) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

static int metrics_file_write(const char *path, const struct watch *watch,
			      const struct metrics_options *options)
{
	char temporary[PATH_MAX];
	FILE *file = NULL;
	int error = 0;

	if (is_other_than_a_file(path))
		errno = ENOTSUP;
	else
		file = open_temporary(path, temporary, sizeof temporary);
	if (!file)
		return -1;
	metrics_write(file, watch, options, false);
	if (fflush(file) || ferror(file) || fchmod(fileno(file), 0644) || fsync(fileno(file)))
		error = errno ? errno : EIO;
	if (fclose(file) && !error)
		error = errno;
	if (!error && rename(temporary, path))
		error = errno;
	if (!error)
		return 0;
	unlink(temporary);
	errno = error;
	return -1;
}

static void metrics_file_remove(const char *path)
{
	if (!is_other_than_a_file(path))
		unlink(path);
}

struct serving {
	struct server server;
	struct http *http;         /* NULL: only the file */
	const char *metrics_file;  /* NULL: none */
	uint64_t every_ns, written_ns;
	int signals;
	bool has_failed;           /* the file could not be written: stated once */
	bool reports_ended;
	struct ended ended;
};

/* ---- the loop ---- */

static void write_file(struct serving *serving)
{
	uint64_t now_ns = watch_now_ns();

	if (serving->written_ns && now_ns - serving->written_ns < serving->every_ns)
		return;
	serving->written_ns = now_ns;
	server_refresh(&serving->server);
	if (!metrics_file_write(serving->metrics_file, &serving->server.watch,
				&serving->server.metrics)) {
		serving->has_failed = false;
	} else if (!serving->has_failed) {
		say_error("cannot write '%s': %s", serving->metrics_file, strerror(errno));
		serving->has_failed = true;
	}
}

/* What has levels only, and why; once. */
static void say_what_failed(struct watch *watch)
{
	for (size_t i = 0; i < watch->count; i++) {
		struct watch_process *process = watch->processes[i];

		if (!*process->pass_error || process->is_error_said)
			continue;
		say_info("%s has levels only: %s", watch_short_path(watch, process->path),
			 process->pass_error);
		process->is_error_said = true;
	}
}

/* Until SIGTERM or SIGINT. One second at most passes between two looks at the directory. */
static void serve(struct serving *serving)
{
	struct server *server = &serving->server;
	struct pollfd fds[4];

	for (;;) {
		int wait_ms = watch_work(&server->watch);

		say_what_failed(&server->watch);
		if (serving->reports_ended)
			wait_ms = sooner(wait_ms, ended_work(&serving->ended, &server->watch));
		if (serving->metrics_file)
			write_file(serving);
		if (serving->http)
			wait_ms = sooner(wait_ms, http_run(serving->http));
		fds[0] = (struct pollfd){ serving->signals, POLLIN, 0 };
		fds[1] = (struct pollfd){ server->watch.worker.socket, POLLIN, 0 };
		fds[2] = (struct pollfd){ serving->http ? http_fd(serving->http) : -1, POLLIN, 0 };
		fds[3] = (struct pollfd){ serving->http ? http_child_fd(serving->http) : -1,
					  POLLIN, 0 };
		poll(fds, 4, wait_ms);
		if (fds[0].revents)
			return;
		if (watch_now_ns() - server->refreshed_ns > 1000000000)
			server_refresh(server);
	}
}

/* ---- options ---- */

/* Whoever can reach the port can read names, paths and command lines. */
static int check_address(const struct opts *opts, struct listen_address *address)
{
	const char *typed = opts_text(opts, "listen");

	if (!typed)
		typed = "127.0.0.1:9741";
	if (!guard_parse_address(typed, address)) {
		say_error("invalid value '%s' for --listen: expected ADDRESS:PORT, as "
			  "127.0.0.1:9741", typed);
		return -1;
	}
	if (address->is_loopback || opts_has(opts, "token-file"))
		return 0;
	say_error("--listen=%s can be reached from other machines, and pages have names and "
		  "command lines: add --token-file=FILE, or listen on 127.0.0.1", typed);
	return -1;
}

static int open_directory(struct serving *serving, const struct opts *opts, char path[PATH_MAX])
{
	struct watch_options options = watching_options(opts);

	if (opts->operand_count < 2)
		return watching_open(&serving->server.watch, path,
				     opts->operand_count ? opts->operands[0] : NULL, &options);
	say_error("too many arguments: '%s'; serve reads one directory, recording or process",
		  opts->operands[1]);
	return -1;
}

static int open_places(struct serving *serving, const struct opts *opts, const char *directory)
{
	struct listen_address address;

	if (serving->metrics_file) {
		say_info("writing the metrics of '%s' to '%s'", directory, serving->metrics_file);
		if (!opts_has(opts, "listen"))
			return 0;
	}
	if (check_address(opts, &address))
		return -1;
	serving->http = http_open(&serving->server, &address);
	if (!serving->http)
		return -1;
	say_info("serving '%s' on http://%s%s%s:%u/metrics", directory,
		 address.is_ipv6 ? "[" : "", address.text, address.is_ipv6 ? "]" : "",
		 http_port(serving->http));
	return 0;
}

static int run_serve(const struct opts *opts, const struct cmd *const *commands)
{
	static struct serving serving;
	const char *token = opts_text(opts, "token-file");
	static char directory[PATH_MAX];
	struct listen_address address;
	const char *const *hosts;

	(void)commands;
	if (check_address(opts, &address) ||
	    (token && guard_read_token(token, serving.server.token, sizeof serving.server.token)))
		return CMD_USAGE;
	hosts = opts_list(opts, "allow-host", &serving.server.host_count);
	memcpy(serving.server.hosts, hosts, serving.server.host_count * sizeof *hosts);
	serving.server.metrics.no_sites = opts_has(opts, "no-sites");
	serving.server.memory_bytes = opts_number(opts, "memory", (uint64_t)512 << 20);
	if (opts_has(opts, "labels-from-path") &&
	    !metrics_name_folders(&serving.server.metrics, opts_text(opts, "labels-from-path"))) {
		say_error("--labels-from-path=%s: expected up to %d names of labels that no metric "
			  "has, as namespace/pod/container", opts_text(opts, "labels-from-path"),
			  PATH_LABELS);
		return CMD_USAGE;
	}
	if (opts_has(opts, "termination-log") && !opts_has(opts, "report-ended")) {
		say_error("--termination-log has what --report-ended prints: add it");
		return CMD_USAGE;
	}
	serving.metrics_file = opts_text(opts, "metrics-file");
	serving.every_ns = opts_number(opts, "every", 15) * 1000000000;
	if (open_directory(&serving, opts, directory))
		return CMD_USAGE;
	serving.signals = watching_signals();
	if (open_places(&serving, opts, directory)) {
		watch_close(&serving.server.watch);
		return CMD_USAGE;
	}
	serving.reports_ended = opts_has(opts, "report-ended");
	if (serving.reports_ended)
		ended_init(&serving.ended, &serving.server.watch, serving.server.memory_bytes,
			   opts_text(opts, "termination-log"));
	serve(&serving);
	if (serving.reports_ended)
		ended_fini(&serving.ended);
	if (serving.http)
		http_close(serving.http);
	if (serving.metrics_file)
		metrics_file_remove(serving.metrics_file);
	watch_close(&serving.server.watch);
	close(serving.signals);
	return CMD_FINE;
}

static const struct opt options[] = {
	{ "listen", 0, OPT_TEXT, "ADDRESS:PORT", 0, 0, "127.0.0.1:9741",
	  "where to listen; an address that other machines reach needs --token-file" },
	{ "token-file", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "ask for the token in the first line of FILE: Authorization: Bearer TOKEN; /healthz and "
	  "/-/ready need none" },
	{ "allow-host", 0, OPT_LIST, "NAME", 0, 0, NULL,
	  "a name that this machine goes by; addresses and localhost are known, other values of "
	  "the Host header are refused" },
	{ "metrics-file", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "write the metrics to FILE for node_exporter's textfile collector instead of listening; "
	  "it is removed at the end" },
	{ "every", 0, OPT_COUNT, "SECONDS", 1, 3600, "15", "how often that file is written" },
	{ "labels-from-path", 0, OPT_TEXT, "NAME/NAME...", 0, 0, NULL,
	  "labels with the names of the folders that a recording is in, as "
	  "namespace/pod/container" },
	{ "no-sites", 0, OPT_FLAG, NULL, 0, 0, NULL, "leave call sites out of the metrics" },
	{ "report-ended", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print the report of each run that ended, once, on stdout; at the start that of the run "
	  "that ended last: 'report --new'" },
	{ "termination-log", 0, OPT_TEXT, "FILE", 0, 0, NULL,
	  "with --report-ended: write the text into FILE, too" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_serve = {
	.name = "serve",
	.summary = "serve metrics and pages of processes that run",
	.usage = "[OPTIONS] [DIRECTORY|RECORDING|PID]",
	.manual = "cuflight-serve",
	.about = "Watches a directory of recordings and answers on a port: / shows what runs, "
		 "and shows it anew every two seconds; /metrics is for Prometheus; /report, "
		 "/report.json, /report.html, /debug/pprof/gpu and /debug/pprof/heap are of one "
		 "process (?process=NAME). It reads files only: the recorded processes notice "
		 "nothing. A scrape never analyses: levels are read, and everything else is of "
		 "the last pass over the recording, which a process of its own makes every ten "
		 "seconds, or when a hundred times the cost of the last one is over. Without an "
		 "argument, reads the directory of CUFLIGHT_OUTPUT, else the current one. Ends "
		 "with SIGTERM or SIGINT.",
	.examples = "cuflight serve rec/\ton http://127.0.0.1:9741/\n"
		    "cuflight serve --listen=:9741 --token-file=token rec/\tfor Prometheus "
		    "elsewhere\n"
		    "cuflight serve --metrics-file=/var/lib/node_exporter/cuflight.prom rec/\tfor "
		    "node_exporter\n",
	.groups = { &option_group, &opts_watching, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_serve,
};
