/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's only voice: short lines on stderr. Used when it switches itself off and for a fatal incident. */
#include "interpose/core/say.h"

#include "interpose/abi/format.h"
#include "interpose/core/sys.h"
#include "interpose/core/laws.h"

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
	uint64_t whole = bytes, rest = 0;
	if (bytes == CUF_UNKNOWN) {
		cuf_text_add(text, "unknown");
		return;
	}
	while (whole >= 1024 && unit < 4) {
		rest = whole % 1024;
		whole /= 1024;
		unit++;
	}
	cuf_text_number(text, whole);
	if (unit) {
		uint64_t hundredths = rest * 100 / 1024;
		char fraction[3] = { '.', (char)('0' + hundredths / 10), (char)('0' + hundredths % 10) };
		cuf_text_bytes(text, fraction, 3);
	}
	cuf_text_add(text, units[unit]);
}

void cuf_say(const struct cuf_text *text)
{
	CUF_TEXT(line, 1024);
	cuf_text_add(&line, "cuflight: ");
	cuf_text_bytes(&line, text->at, text->used < 1000 ? text->used : 1000);
	cuf_text_add(&line, "\n");
	cuf_sys_write(2, line.at, line.used);
}

void cuf_say_line(const char *string)
{
	CUF_TEXT(text, 1024);
	cuf_text_add(&text, string);
	cuf_say(&text);
}

void cuf_say_to_file(const char *path, const struct cuf_text *text)
{
	int fd = (int)cuf_sys_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	cuf_sys_write(fd, text->at, text->used);
	cuf_sys_close(fd);
}
