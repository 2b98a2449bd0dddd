/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text without allocation or stdio: a bounded builder, and lines on stderr. Contract: never
 * overflows (a text that is too long is cut), never fails, keeps errno. The buffer is the
 * caller's. Writes are raw system calls, so a closed stderr is silent. Any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct cuf_text {
	char *at; /* buffer, always NUL-terminated */
	size_t used, room;
};

/* Declares an empty text of this name, with its buffer. */
#define CUF_TEXT(name, room_bytes)                                             \
	char name##_buffer[room_bytes];                                        \
	struct cuf_text name = { name##_buffer, 0, sizeof name##_buffer };     \
	name##_buffer[0] = 0

/* NULL adds nothing. */
void cuf_text_add(struct cuf_text *text, const char *string);
void cuf_text_bytes(struct cuf_text *text, const char *bytes, size_t count);
/* Of foreign origin: what a terminal or a reader of lines would act on becomes '?'. */
void cuf_text_printable(struct cuf_text *text, const char *bytes, size_t count);
void cuf_text_number(struct cuf_text *text, uint64_t number);

/* Three digits, as in the report: "1.50 GiB"; "unknown" for CUF_UNKNOWN. */
void cuf_text_size(struct cuf_text *text, uint64_t bytes);

/* Remembers which file the standard error is. Comes first, in the constructor. */
void cuf_say_start(void);

/*
 * Writes "cuflight: TEXT\n" to the standard error that the program started with, as one printable
 * line: a path may hold anything. Writes nothing when descriptor 2 is another file by
 * now, and when the write would have to wait.
 */
void cuf_say(const struct cuf_text *text);
void cuf_say_line(const char *line);

/* Appends the same line to a file, such as the container's termination log. Silent on failure. */
void cuf_say_to_file(const char *path, const struct cuf_text *text);
