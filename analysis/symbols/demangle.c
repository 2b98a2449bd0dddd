/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded demangling over libiberty's callback interface: the one place that knows mangled names. */
#include "analysis/symbols/demangle.h"

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct output {
	char *text;
	size_t bytes, capacity;
	jmp_buf too_long;
};

/* libiberty's printer cannot be told to stop, and substitutions double its output at every step; so we jump out of it.
 * It holds no memory while it prints C++ (its parts lie on the stack). */
static void append(const char *piece, size_t bytes, void *opaque)
{
	struct output *out = opaque;

	if (out->bytes + bytes > DEMANGLED_BYTES_MAX)
		longjmp(out->too_long, 1);
	if (out->bytes + bytes + 1 > out->capacity) {
		out->capacity = 2 * (out->bytes + bytes + 1);
		out->text = xrealloc(out->text, out->capacity);
	}
	memcpy(out->text + out->bytes, piece, bytes);
	out->bytes += bytes;
	out->text[out->bytes] = 0;
}

static bool demangled(const char *name, struct output *out)
{
	if (setjmp(out->too_long))
		return false;
	/* Rust's older scheme looks like C++ with a hash at its end, so it is asked first */
	if (rust_demangle_callback(name, OPTIONS, append, out) && out->bytes)
		return true;
	out->bytes = 0;
	return cplus_demangle_v3_callback(name, OPTIONS, append, out) && out->bytes;
}

char *demangle(const char *name)
{
	struct output out = { 0 };
	char *plain = xstrdup(name);
	char *version = strchr(plain, '@');

	if (version && version > plain)
		*version = 0;
	/* Only these begin a mangled name; "i" alone would otherwise turn into "int" */
	if ((strncmp(plain, "_Z", 2) == 0 || strncmp(plain, "_R", 2) == 0) &&
	    demangled(plain, &out)) {
		char *clone = strstr(out.text, " [clone "); /* foo.cold, foo.isra.0: the same function to people */
		if (clone)
			*clone = 0;
		free(plain);
		return out.text;
	}
	free(out.text);
	return plain;
}
