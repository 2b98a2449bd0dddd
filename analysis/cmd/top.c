/* SPDX-License-Identifier: Apache-2.0 */
/* `cuflight top`: what runs, frame by frame. */
#include "analysis/cmd/cmd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/reading/watching.h"
#include "analysis/cmd/live/screen.h"
#include "analysis/view/live/frame.h"

/* Until the time has come; the first frame waits for the first passes only. */
static void wait_for_frame(struct watch *watch, uint64_t until_ns, bool is_first)
{
	do {
		int wait_ms = watch_work(watch);
		uint64_t now_ns = watch_now_ns();
		struct pollfd worker = { watch->worker.socket, POLLIN, 0 };

		if (is_first ? watch_is_complete(watch) : now_ns >= until_ns)
			break;
		if (!is_first && until_ns - now_ns < (uint64_t)wait_ms * 1000000)
			wait_ms = (int)((until_ns - now_ns) / 1000000 + 1);
		poll(&worker, 1, wait_ms);
	} while (true);
	watch_refresh(watch);
}

static void print_frame(const struct watch *watch, const struct opts *opts)
{
	struct top_frame frame;

	top_take(&frame, watch);
	if (opts_has(opts, "json"))
		top_json(stdout, &frame);
	else
		top_text(stdout, &frame, (unsigned)opts_number(opts, "top", 8));
	top_fini(&frame);
}

static void print_frames(struct watch *watch, const struct opts *opts, uint64_t count)
{
	uint64_t every_ns = opts_number(opts, "every", 2) * 1000000000, next_ns = watch_now_ns();

	for (uint64_t frame = 0; !count || frame < count; frame++) {
		wait_for_frame(watch, next_ns, !frame);
		next_ns = watch_now_ns() + every_ns;
		print_frame(watch, opts);
		if (fflush(stdout) || ferror(stdout))
			return;
	}
}

static bool is_screen(const struct opts *opts)
{
	return !opts_has(opts, "once") && !opts_has(opts, "batch") && !opts_has(opts, "json") &&
	       !opts_has(opts, "count") && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* 0: without end. */
static uint64_t frame_count(const struct opts *opts)
{
	if (opts_has(opts, "once"))
		return 1;
	return opts_number(opts, "count", !opts_has(opts, "batch") && !opts_has(opts, "json"));
}

static void show(struct watch *watch, const struct opts *opts, const char *subject)
{
	struct screen_options screen = {
		.subject = subject, .every_ns = opts_number(opts, "every", 2) * 1000000000,
		.colour = (enum style_colour)opts_number(opts, "color", STYLE_AUTO),
	};

	if (!is_screen(opts) || screen_run(watch, &screen))
		print_frames(watch, opts, frame_count(opts));
}

static int run_top(const struct opts *opts, const struct cmd *const *commands)
{
	struct watch_options options = { .share = 0.01, .memory_bytes = (uint64_t)512 << 20,
					 .warm_up_s = (double)opts_number(opts, "warm-up", 0) };
	static char path[PATH_MAX];
	static struct watch watch;

	(void)commands;
	if (opts->operand_count > 1) {
		say_error("too many arguments: '%s'; top reads one directory, one recording or one "
			  "process", opts->operands[1]);
		return CMD_USAGE;
	}
	if (!is_screen(opts) && frame_count(opts) == 1)
		options.share = 1;
	if (watching_open(&watch, path, opts->operands[0], &options))
		return CMD_USAGE;
	show(&watch, opts, path);
	watch_close(&watch);
	return CMD_FINE;
}

static const struct opt options[] = {
	{ "once", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print one frame; so it does where there is no terminal" },
	{ "batch", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print frame after frame as text, instead of the screen" },
	{ "json", 0, OPT_FLAG, NULL, 0, 0, NULL,
	  "print each frame as a line of JSON (cuflight.live/1)" },
	{ "count", 'n', OPT_COUNT, "N", 1, 1000000000, NULL,
	  "print N frames; --batch and --json print without end" },
	{ "every", 'd', OPT_COUNT, "SECONDS", 1, 3600, "2", "time between two frames" },
	{ "top", 0, OPT_COUNT, "N", 1, 64, "8", "call sites of each process that is printed" },
	{ "warm-up", 0, OPT_COUNT, "SECONDS", 1, 86400, "300",
	  "before that nothing is called growth; what else takes time is in proportion to it" },
};
static const struct opt_group option_group = {
	"Options", options, sizeof options / sizeof *options, { NULL },
};

const struct cmd cmd_top = {
	.name = "top",
	.summary = "show what runs: who holds each GPU, what grows, how long it lasts",
	.usage = "[OPTIONS] [DIRECTORY|RECORDING|PID]",
	.manual = "cuflight-top",
	.about = "Shows the processes of a directory of recordings that run, or ended within "
		 "the last five minutes: who holds each GPU, a verdict, and the largest "
		 "call sites. On a terminal it is a screen with keys (h lists them): sort, "
		 "filter, pause, the stack of a row, a snapshot. Of a PID it shows what that "
		 "process records. It reads files only: the recorded processes notice nothing.",
	.examples = "cuflight top rec/\tthe screen\n"
		    "cuflight top 4321\twhat process 4321 records\n"
		    "cuflight top --once --json rec/\tfor a script\n"
		    "cuflight top --batch --every=60 rec/\tfor a log\n",
	.groups = { &option_group, &opts_common },
	.usage_exit = CMD_USAGE,
	.run = run_top,
};
