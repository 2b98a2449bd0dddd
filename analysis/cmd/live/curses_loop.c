/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal, its signals, and the loop. Signals are blocked and read: without handlers there are
 * no races. */
#include "analysis/cmd/live/screen.h"

#include <limits.h>
#include <ncursesw/curses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <wchar.h>
#include "analysis/cmd/cli/say.h"
#include "analysis/cmd/live/curses_draw.h"
#include "analysis/cmd/live/curses_terminal.h"
#include "analysis/cmd/live/snapshots.h"

struct shown {
	struct watch *watch;
	const struct screen_options *options;
	struct state state;
	struct drawing drawing;
	struct snapshot snapshot;
	int signals;
	uint64_t next_ns;     /* the next frame is due */
	bool is_due;          /* it is now */
};

/* ---- signals ---- */

static const int taken[] = { SIGWINCH, SIGTSTP, SIGCONT, SIGINT, SIGTERM, SIGHUP };

static int take_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Everything is sent again: the terminal has another size, or was somebody else's. */
static void renew(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

/* Gives the terminal to the shell and stops; a shell that is not there cannot continue us, and the
 * kernel then does not stop us. */
static void stop(void)
{
	sigset_t set;

	endwin();
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	signal(SIGTSTP, SIG_DFL); /* curses has a handler of its own */
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	renew();
}

static void answer_signals(struct shown *screen)
{
	struct signalfd_siginfo info;

	while (read(screen->signals, &info, sizeof info) == sizeof info)
		switch (info.ssi_signo) {
		case SIGTSTP: stop(); break;
		case SIGCONT: case SIGWINCH: renew(); break;
		default: screen->state.is_over = true;
		}
}

/* ---- keys ---- */

static int other_key(wint_t key)
{
	static const struct { wint_t curses; int key; } keys[] = {
		{ KEY_UP, KEY_OF_UP }, { KEY_DOWN, KEY_OF_DOWN },
		{ KEY_PPAGE, KEY_OF_PAGE_UP }, { KEY_NPAGE, KEY_OF_PAGE_DOWN },
		{ KEY_HOME, KEY_OF_HOME }, { KEY_END, KEY_OF_END },
		{ KEY_ENTER, KEY_OF_ENTER }, { KEY_BACKSPACE, KEY_OF_BACKSPACE },
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (keys[i].curses == key)
			return keys[i].key;
	return 0;
}

/* Control characters that are keys; 0: it is none. */
static int control_key(wint_t key)
{
	enum { ESCAPE = 27, BACKSPACE = 8, DELETE = 127, CONTROL_L = 12 };

	switch (key) {
	case '\r': case '\n': return KEY_OF_ENTER;
	case ESCAPE: return KEY_OF_ESCAPE;
	case BACKSPACE: case DELETE: return KEY_OF_BACKSPACE;
	case CONTROL_L: renew(); return 0;
	default: return 0;
	}
}

static void answer_key(struct state *state, wint_t key)
{
	char text[MB_LEN_MAX + 1];
	mbstate_t none = { 0 };
	size_t length;

	if (control_key(key)) {
		state_key(state, NULL, control_key(key));
		return;
	}
	length = wcrtomb(text, (wchar_t)key, &none);
	if (wcwidth((wchar_t)key) <= 0 || length > MB_LEN_MAX)
		return;
	text[length] = 0;
	state_key(state, text, 0);
}

static void answer_keys(struct state *state)
{
	wint_t key;
	int kind;

	while ((kind = get_wch(&key)) != ERR && !state->is_over)
		if (kind == KEY_CODE_YES)
			state_key(state, NULL, other_key(key));
		else
			answer_key(state, key);
}

/* ---- the loop ---- */

static void begin_snapshot(struct shown *screen)
{
	const struct site_row *row = state_selected(&screen->state);
	const struct top_process *process = row ? row->process : NULL;

	screen->state.wants_snapshot = false;
	if (!process && screen->state.process_count)
		process = screen->state.processes[0].process;
	if (!process)
		snprintf(screen->state.message, sizeof screen->state.message,
			 "nothing is recorded now");
	else if (snapshot_start(&screen->snapshot, process->path, process->pid))
		snprintf(screen->state.message, sizeof screen->state.message,
			 "snapshot of %s (pid %u) is being written", process->name, process->pid);
	else
		snprintf(screen->state.message, sizeof screen->state.message,
			 "another snapshot is being written, or it cannot be begun");
}

static void take_frame(struct shown *screen)
{
	struct top_frame frame;

	watch_refresh(screen->watch);
	top_take(&frame, screen->watch);
	state_set_frame(&screen->state, &frame);
	screen->is_due = false;
	screen->next_ns = watch_now_ns() + screen->options->every_ns;
}

static void draw(struct shown *screen)
{
	draw_screen(&screen->drawing, &screen->state);
	refresh();
}

static int milliseconds_until(uint64_t then_ns, int most)
{
	uint64_t now_ns = watch_now_ns();

	if (then_ns <= now_ns)
		return 0;
	return (then_ns - now_ns) / 1000000 < (uint64_t)most ?
		       (int)((then_ns - now_ns) / 1000000 + 1) : most;
}

static void answer(struct shown *screen, const struct pollfd *fds)
{
	struct state *state = &screen->state;

	if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL)) {
		state->is_over = true; /* the terminal is gone */
		return;
	}
	if (fds[1].revents)
		answer_signals(screen);
	if (fds[0].revents & POLLIN)
		answer_keys(state);
	screen->is_due |= fds[2].revents != 0; /* a pass is done */
	snapshot_take(&screen->snapshot, state->message, sizeof state->message);
	if (state->wants_snapshot)
		begin_snapshot(screen);
}

static void loop(struct shown *screen)
{
	struct watch *watch = screen->watch;

	screen->is_due = true;
	while (!screen->state.is_over) {
		int wait_ms = watch_work(watch);
		struct pollfd fds[] = {
			{ STDIN_FILENO, POLLIN, 0 },
			{ screen->signals, POLLIN, 0 },
			/* a worker that is not asked may have ended */
			{ watch->worker.is_busy ? watch->worker.socket : -1, POLLIN, 0 },
			{ screen->snapshot.fd, POLLIN, 0 },
		};

		if (screen->is_due || watch_now_ns() >= screen->next_ns)
			take_frame(screen);
		draw(screen);
		poll(fds, sizeof fds / sizeof *fds, milliseconds_until(screen->next_ns, wait_ms));
		answer(screen, fds);
	}
}

int screen_run(struct watch *watch, const struct screen_options *options)
{
	static struct shown screen;
	struct style style;

	if (!terminal_open())
		return -1;
	style_init(&style, stdout, options->colour);
	screen = (struct shown){ .watch = watch, .options = options, .signals = take_signals() };
	screen.drawing = (struct drawing){ .subject = options->subject,
					   .has_colour = style.colour && terminal_colours(),
					   .is_ascii = !style.utf8 };
	snapshot_init(&screen.snapshot);
	state_init(&screen.state);
	loop(&screen);
	terminal_close();
	state_fini(&screen.state);
	close(screen.signals);
	return 0;
}
