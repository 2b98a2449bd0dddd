/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's only voice: short lines on stderr. Used when it switches itself off and for a fatal incident. */
#include "interpose/platform/say.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include "interpose/abi/format.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

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
	unsigned n = sizeof digits;
	do
		digits[--n] = (char)('0' + number % 10);
	while (number /= 10);
	cuf_text_bytes(text, digits + n, sizeof digits - n);
}

void cuf_text_hex(struct cuf_text *text, uint64_t number)
{
	char digits[16];
	unsigned n = sizeof digits;
	do
		digits[--n] = "0123456789abcdef"[number & 15];
	while (number >>= 4);
	cuf_text_add(text, "0x");
	cuf_text_bytes(text, digits + n, sizeof digits - n);
}

void cuf_text_size(struct cuf_text *text, uint64_t bytes)
{
	static const char *const units[] = { " B", " KiB", " MiB", " GiB", " TiB" };
	unsigned unit = 0;
	uint64_t hundredths;
	if (bytes == CUF_UNKNOWN) {
		cuf_text_add(text, "unknown");
		return;
	}
	while (unit < 4 && bytes >> 10 * (unit + 1))
		unit++;
	/* rounded to hundredths, as the report does; 2^64 hundredths of a TiB do not overflow */
	hundredths = (bytes >> 10 * unit) * 100 + (((bytes & ((1ull << 10 * unit) - 1)) * 100 + (1ull << 10 * unit) / 2) >> 10 * unit);
	cuf_text_number(text, hundredths / 100);
	if (unit) {
		char fraction[3] = { '.', (char)('0' + hundredths / 10 % 10), (char)('0' + hundredths % 10) };
		cuf_text_bytes(text, fraction, 3);
	}
	cuf_text_add(text, units[unit]);
}

/* A reader that went away (SIGPIPE) or a file at its limit (SIGXFSZ) must not end the program over a word of ours: the
 * signal is held back, and taken away again unless the program had one of its own waiting. */
static void write_quietly(int fd, const struct cuf_text *text)
{
	uint64_t deadly = 1ull << (SIGPIPE - 1) | 1ull << (SIGXFSZ - 1), before, waiting = 0;
	struct timespec at_once = { 0 };
	long held = cuf_sys(SYS_rt_sigprocmask, SIG_BLOCK, (long)&deadly, (long)&before, sizeof before, 0, 0), result;
	cuf_sys(SYS_rt_sigpending, (long)&waiting, sizeof waiting, 0, 0, 0, 0);
	result = cuf_sys_write(fd, text->at, text->used);
	if (held)
		return;
	if ((result == -EPIPE || result == -EFBIG) && !(waiting & deadly))
		cuf_sys(SYS_rt_sigtimedwait, (long)&deadly, 0, (long)&at_once, sizeof deadly, 0, 0);
	cuf_sys(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
}

void cuf_say(const struct cuf_text *text)
{
	CUF_TEXT(line, 1024);
	cuf_text_add(&line, "cuflight: ");
	cuf_text_bytes(&line, text->at, text->used < 1000 ? text->used : 1000);
	cuf_text_add(&line, "\n");
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
	int fd = (int)cuf_open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	write_quietly(fd, text);
	cuf_sys_close(fd);
}
