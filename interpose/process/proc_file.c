/* SPDX-License-Identifier: Apache-2.0 */
/* /proc files have no size to ask for: they are read until a read returns nothing. */
#include "interpose/process/proc_file.h"

#include <string.h>
#include "interpose/abi/format.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

long cuf_proc_read(const char *path, char *to, size_t bytes)
{
	long fd = cuf_open(path, O_RDONLY, 0), used = 0;
	if (fd < 0)
		return fd;
	while ((size_t)used + 1 < bytes) {
		long got = cuf_sys_read((int)fd, to + used, bytes - 1 - (size_t)used);
		if (got <= 0)
			break;
		used += got;
	}
	cuf_close((int)fd);
	to[used] = 0;
	return used;
}

/* The number after the first `key`, or at the beginning of the text when key is NULL. CUF_UNKNOWN
 * when there is none. A value that does not fit 64 bits wraps. */
uint64_t cuf_proc_number(const char *text, const char *key)
{
	uint64_t value = 0;
	const char *digit = text;
	if (key) {
		digit = strstr(text, key);
		if (!digit)
			return CUF_UNKNOWN;
		digit += strlen(key);
	}
	while (*digit == ' ' || *digit == '\t')
		digit++;
	if (*digit < '0' || *digit > '9')
		return CUF_UNKNOWN;
	for (; *digit >= '0' && *digit <= '9'; digit++)
		value = value * 10 + (uint64_t)(*digit - '0');
	return value;
}
