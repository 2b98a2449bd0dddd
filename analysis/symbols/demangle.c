/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded demangling through the callback interface of libiberty. */
#include "analysis/symbols/function_name.h"

#include <libiberty/demangle.h>
#include <libiberty/libiberty.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS (DMGL_PARAMS | DMGL_ANSI)

struct demangled {
	char *text;
	size_t bytes, capacity;
	jmp_buf too_long;
};

/* The printer of libiberty cannot be stopped, and substitutions can double its output at every
 * step. So append leaves it by longjmp. The printer holds no heap memory: its state is on the
 * stack. */
static void append_text(const char *piece, size_t bytes, void *opaque)
{
	struct demangled *out = opaque;

	if (!bytes)
		return; /* piece may be NULL */
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

static bool demangled(const char *name, struct demangled *out)
{
	if (setjmp(out->too_long))
		return false;
	/* Rust's older scheme looks like C++ with a hash at the end, so Rust is tried first */
	if (rust_demangle_callback(name, OPTIONS, append_text, out) && out->bytes)
		return true;
	out->bytes = 0;
	return cplus_demangle_v3_callback(name, OPTIONS, append_text, out) && out->bytes;
}

char *demangle(const char *name)
{
	struct demangled out = { 0 };
	char *plain = xstrdup(name);
	char *version = strchr(plain, '@');

	if (version && version > plain)
		*version = 0;
	/* Only these prefixes mark a mangled name; the demangler would turn the name "i" into
	 * "int" */
	if ((strncmp(plain, "_Z", 2) == 0 || strncmp(plain, "_R", 2) == 0) &&
	    demangled(plain, &out)) {
		/* foo.cold and foo.isra.0 are parts of foo */
		char *clone = strstr(out.text, " [clone ");
		if (clone)
			*clone = 0;
		free(plain);
		return out.text;
	}
	free(out.text);
	return plain;
}
