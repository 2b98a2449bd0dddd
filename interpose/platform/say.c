/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text building, and the only place where the recorder writes to stderr. It does so when it turns
 * itself off and for a fatal incident.
 */
#include "interpose/platform/say.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include "interpose/abi/format.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* ---- building ---- */

void cuf_text_bytes(struct cuf_text *text, const char *bytes, size_t count)
{
	while (count-- && text->used + 1 < text->room)
		text->at[text->used++] = *bytes++;
	if (text->room)
		text->at[text->used] = 0;
}

void cuf_text_add(struct cuf_text *text, const char *string)
{
	size_t count = 0;

	while (string && string[count])
		count++;
	cuf_text_bytes(text, string, count);
}

void cuf_text_number(struct cuf_text *text, uint64_t number)
{
	char digits[20];
	unsigned first = sizeof digits;

	do
		digits[--first] = (char)('0' + number % 10);
	while (number /= 10);
	cuf_text_bytes(text, digits + first, sizeof digits - first);
}

/*
 * number / 2^shift, rounded to the nearest integer and to the even one in the middle, as printf
 * does.
 */
static uint64_t shift_and_round(unsigned __int128 number, unsigned shift)
{
	uint64_t rounded = (uint64_t)(number >> shift);
	unsigned __int128 one = (unsigned __int128)1 << shift, rest = number & (one - 1);

	if (rest > one / 2 || (rest == one / 2 && rounded & 1 && shift))
		rounded++;
	return rounded;
}

void cuf_text_printable(struct cuf_text *text, const char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint8_t now = (uint8_t)bytes[i], before = i ? (uint8_t)bytes[i - 1] : 0;
		/* C1 controls are two bytes in UTF-8 */
		bool acts = now < ' ' || now == 127 || (before == 0xc2 && now < 0xa0);

		cuf_text_bytes(text, acts ? "?" : bytes + i, 1);
	}
}

void cuf_text_size(struct cuf_text *text, uint64_t bytes)
{
	static const char *const units[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB" };
	unsigned unit = 0, decimals = 0, power = 1;
	uint64_t figure;

	if (bytes == CUF_UNKNOWN) {
		cuf_text_add(text, "unknown");
		return;
	}
	/* never 1024 of a unit, also after rounding */
	while (unit < 6 && shift_and_round(bytes, 10 * unit) >= 1024)
		unit++;
	if (unit) {
		decimals = 2;
		power = 100;
	}
	for (;; decimals--, power /= 10) {
		figure = shift_and_round((unsigned __int128)bytes * power, 10 * unit);
		if (figure < 1000 || !decimals)
			break;
	}
	cuf_text_number(text, figure / power);
	if (decimals) {
		cuf_text_add(text, ".");
		if (decimals == 2)
			cuf_text_number(text, figure / 10 % 10);
		cuf_text_number(text, figure % 10);
	}
	cuf_text_add(text, units[unit]);
}

/* ---- writing ---- */

/* The file that descriptor 2 was when the program started. */
static struct { uint64_t device, inode, special; bool known; } standard_error;

/* Which file a descriptor is. False: it is closed. */
static bool identify(int fd, struct stat *file)
{
	return !cuf_sys(SYS_fstat, fd, (long)file, 0, 0, 0, 0);
}

void cuf_say_start(void)
{
	struct stat file;

	standard_error.known = identify(2, &file);
	if (!standard_error.known)
		return;
	standard_error.device = file.st_dev;
	standard_error.inode = file.st_ino;
	standard_error.special = file.st_rdev;
}

/*
 * A daemon closes its standard error and opens a data file, which gets number 2. A line of ours
 * would land in its data.
 */
static bool is_still_standard_error(void)
{
	struct stat file;

	return standard_error.known && identify(2, &file) &&
	       file.st_dev == standard_error.device && file.st_ino == standard_error.inode &&
	       file.st_rdev == standard_error.special;
}

/*
 * A full pipe or a stopped terminal would make the program wait for whoever reads it. A pipe that
 * is ready takes PIPE_BUF bytes at once, which is more than we write.
 */
static bool takes_bytes_now(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	struct timespec at_once = { 0 };

	return cuf_sys(SYS_ppoll, (long)&ready, 1, (long)&at_once, 0, 0, 0) == 1 &&
	       ready.revents & POLLOUT;
}

/*
 * A reader that went away (SIGPIPE) or a file at its size limit (SIGXFSZ) must not end the
 * program because of our line. So both signals are blocked during the write, and one that we
 * caused is discarded.
 */
static void write_quietly(int fd, const struct cuf_text *text)
{
	uint64_t deadly = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1), before, pending = 0;
	struct timespec at_once = { 0 };
	long blocked, result;

	if (!takes_bytes_now(fd))
		return;
	blocked = cuf_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&deadly, (long)&before,
			  sizeof before, 0, 0);
	cuf_sys(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
	result = cuf_sys_write(fd, text->at, text->used);
	if (blocked)
		return;
	/* a signal that was pending before is the program's: it stays */
	if ((result == -EPIPE || result == -EFBIG) && !(pending & deadly))
		cuf_sys(SYS_rt_sigtimedwait, (long)&deadly, 0, (long)&at_once, sizeof deadly, 0, 0);
	cuf_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
}

enum { LINE_BYTES = 1024 };

static void add_line(struct cuf_text *line, const struct cuf_text *text)
{
	cuf_text_add(line, "cuflight: ");
	cuf_text_printable(line, text->at, text->used);
	if (line->used + 1 == line->room) /* cut: the end of the line stays */
		line->used--;
	cuf_text_add(line, "\n");
}

void cuf_say(const struct cuf_text *text)
{
	CUF_TEXT(line, LINE_BYTES);

	add_line(&line, text);
	if (is_still_standard_error())
		write_quietly(2, &line);
}

void cuf_say_line(const char *string)
{
	CUF_TEXT(text, 1024);

	cuf_text_add(&text, string);
	cuf_say(&text);
}

void cuf_say_to_file(const char *path, const struct cuf_text *text)
{
	/* O_NONBLOCK: opening a FIFO would wait for its reader */
	int fd = (int)cuf_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0600);
	CUF_TEXT(line, LINE_BYTES);

	if (fd < 0)
		return;
	add_line(&line, text);
	write_quietly(fd, &line);
	cuf_close(fd);
}
