/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder's copies of libc's memory and string functions, hidden inside the library.
 *
 * Why not libc's. A call of libc's strcmp goes through the PLT to whichever object defines strcmp
 * first. In a program built with a sanitizer that is an interceptor, and it is called before the
 * sanitizer is ready: the sanitizer looks up symbols while it starts, and dlsym is a hook of ours.
 * The compiler emits calls of memcpy, memmove, memset and memcmp too, so only definitions with
 * libc's names keep every call inside.
 *
 * Contract. Each function does what ISO C promises. strtoull reads decimal digits only, which is
 * all that the recorder parses. Any thread, any time, also before the loader has finished.
 */
#include <stdint.h>
#include <string.h>
#include "interpose/platform/laws.h"

/* Newer headers of glibc define these as macros that choose by type, as C23 has them. */
#undef memchr
#undef strchr
#undef strrchr
#undef strstr

/* Otherwise the compiler turns the loops below into calls of the functions they define. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")

#define INSIDE __attribute__((visibility("hidden")))

typedef uint64_t __attribute__((may_alias, aligned(1))) word;

/* From here on the processor's own string instructions are faster than a loop. */
enum { LARGE_BYTES = 512 };

INSIDE void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
	unsigned char *out = to;
	const unsigned char *in = from;

#ifdef __x86_64__
	if (bytes >= LARGE_BYTES) {
		__asm__ volatile("rep movsb" : "+D"(out), "+S"(in), "+c"(bytes) : : "memory");
		return to;
	}
#endif
	for (; bytes >= sizeof(word); bytes -= sizeof(word)) {
		*(word *)out = *(const word *)in;
		out += sizeof(word);
		in += sizeof(word);
	}
	while (bytes--)
		*out++ = *in++;
	return to;
}

INSIDE void *memmove(void *to, const void *from, size_t bytes)
{
	unsigned char *out = to;
	const unsigned char *in = from;

	if ((uintptr_t)out - (uintptr_t)in >= bytes)
		return memcpy(to, from, bytes);
	while (bytes--) /* to lies inside from: copy from the end */
		out[bytes] = in[bytes];
	return to;
}

INSIDE void *memset(void *to, int value, size_t bytes)
{
	unsigned char *out = to;
	word pattern = (unsigned char)value * 0x0101010101010101u;

#ifdef __x86_64__
	if (bytes >= LARGE_BYTES) {
		__asm__ volatile("rep stosb" : "+D"(out), "+c"(bytes) : "a"(value) : "memory");
		return to;
	}
#endif
	for (; bytes >= sizeof pattern; bytes -= sizeof pattern) {
		*(word *)out = pattern;
		out += sizeof pattern;
	}
	while (bytes--)
		*out++ = (unsigned char)value;
	return to;
}

INSIDE int memcmp(const void *left, const void *right, size_t bytes)
{
	const unsigned char *a = left, *b = right;

	for (; bytes; bytes--, a++, b++)
		if (*a != *b)
			return *a - *b;
	return 0;
}

INSIDE void *memchr(const void *in, int wanted, size_t bytes)
{
	const unsigned char *at = in;

	for (; bytes; bytes--, at++)
		if (*at == (unsigned char)wanted)
			return (void *)(uintptr_t)at;
	return NULL;
}

INSIDE size_t strnlen(const char *text, size_t most)
{
	size_t length = 0;

	while (length < most && text[length])
		length++;
	return length;
}

INSIDE size_t strlen(const char *text) { return strnlen(text, SIZE_MAX); }

INSIDE int strncmp(const char *left, const char *right, size_t most)
{
	for (; most; most--, left++, right++)
		if (*left != *right || !*left)
			return (unsigned char)*left - (unsigned char)*right;
	return 0;
}

INSIDE int strcmp(const char *left, const char *right) { return strncmp(left, right, SIZE_MAX); }

INSIDE char *strchr(const char *text, int wanted)
{
	for (; *text != (char)wanted; text++)
		if (!*text)
			return NULL;
	return (char *)(uintptr_t)text;
}

INSIDE char *strrchr(const char *text, int wanted)
{
	const char *at = text + strlen(text);

	for (;; at--) {
		if (*at == (char)wanted)
			return (char *)(uintptr_t)at;
		if (at == text)
			return NULL;
	}
}

INSIDE char *strstr(const char *text, const char *wanted)
{
	size_t length = strlen(wanted);

	for (; *text || !length; text++)
		if (!strncmp(text, wanted, length))
			return (char *)(uintptr_t)text;
	return NULL;
}

/* How many characters at the start of text are in the set, or are not. */
static size_t span(const char *text, const char *set, int inside)
{
	size_t length = 0;

	while (text[length] && (strchr(set, text[length]) != NULL) == inside)
		length++;
	return length;
}

INSIDE size_t strspn(const char *text, const char *set) { return span(text, set, 1); }
INSIDE size_t strcspn(const char *text, const char *set) { return span(text, set, 0); }

INSIDE char *strcpy(char *restrict to, const char *restrict from)
{
	return memcpy(to, from, strlen(from) + 1);
}

INSIDE char *strncpy(char *restrict to, const char *restrict from, size_t bytes)
{
	size_t length = strnlen(from, bytes);

	memcpy(to, from, length);
	memset(to + length, 0, bytes - length);
	return to;
}

INSIDE unsigned long long strtoull(const char *restrict text, char **restrict end, int base);
INSIDE unsigned long long strtoull(const char *restrict text, char **restrict end, int base)
{
	unsigned long long value = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (unsigned)(*text - '0');
	if (end)
		*end = (char *)(uintptr_t)text;
	return value;
}
