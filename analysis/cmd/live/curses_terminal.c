/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that knows terminfo, whose header takes many plain words for itself. */
#include "analysis/cmd/live/curses_terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <ncursesw/curses.h>
#include <ncursesw/term.h>

enum { ESCAPE_MS = 25 };

static bool can_move_cursor(void)
{
	int error;

	return setupterm(NULL, STDOUT_FILENO, &error) == OK && cursor_address;
}

void terminal_close(void)
{
	if (stdscr && !isendwin())
		endwin();
}

bool terminal_open(void)
{
	if (!can_move_cursor() || !newterm(NULL, stdout, stdin))
		return false;
	signal(SIGTSTP, SIG_DFL); /* curses' handler would run in the process that analyses, too */
	atexit(terminal_close);
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	return true;
}

bool terminal_colours(void)
{
	if (!has_colors() || start_color() == ERR || use_default_colors() == ERR)
		return false;
	for (short colour = 1; colour < 8 && colour < COLOR_PAIRS; colour++)
		init_pair(colour, colour, -1);
	return true;
}
