/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small shared libraries, compiled when a test runs and taken apart again. Every test has a folder of its own (setup
 * folder_new, teardown folder_remove); what fails here fails the test.
 */
#ifndef BUILT_LIBRARY_H
#define BUILT_LIBRARY_H

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libiberty/libiberty.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "analysis/symbols/symbols.h"

#define ID_BYTES 64

static char folder[PATH_MAX];

/* ---- the tools ---- */

static inline void sh(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("command failed: %s", command);
}

static inline const char *in_folder(const char *name)
{
	static char paths[16][PATH_MAX + 64];
	static unsigned turn;
	char *path = paths[turn++ % 16];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static inline void write_file(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

/* Compiles FOLDER/NAME.c to a shared library FOLDER/NAME.so. */
static inline void compile(const char *name, const char *source, const char *flags)
{
	char file[64];

	snprintf(file, sizeof file, "%s.c", name);
	write_file(file, source);
	sh("cd '%s' && cc -shared -fPIC -Wl,--build-id %s %s.c -o %s.so", folder, flags, name, name);
}

static inline size_t build_id_of(const char *path, uint8_t id[ID_BYTES])
{
	int fd = open(path, O_RDONLY);
	Elf *elf;
	const void *found;
	ssize_t bytes;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	bytes = dwelf_elf_gnu_build_id(elf, &found);
	if (bytes > 0)
		memcpy(id, found, (size_t)bytes);
	elf_end(elf);
	close(fd);
	return bytes > 0 ? (size_t)bytes : 0;
}

static inline uint64_t address_of(const char *path, const char *symbol)
{
	char command[PATH_MAX + 128];
	unsigned long address = 0;
	FILE *pipe;

	snprintf(command, sizeof command, "nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, symbol);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_int_equal(fscanf(pipe, "%lx", &address), 1);
	pclose(pipe);
	return address;
}

static inline struct symbols_module *module_of(struct symbols *symbols, const char *path)
{
	uint8_t id[ID_BYTES];
	size_t bytes = build_id_of(path, id);

	return symbols_module(symbols, path, id, bytes);
}

static inline const char *function_at(struct symbols_module *module, uint64_t address)
{
	const struct symbols_frame *frames;
	size_t count = symbols_resolve(module, address, &frames);

	assert_true(count >= 1);
	return frames[count - 1].function;
}

static inline void assert_function(struct symbols_module *module, uint64_t address, const char *name)
{
	const char *found = function_at(module, address);

	if (name)
		assert_string_equal(found ? found : "(unknown)", name);
	else
		assert_null(found);
}

static inline int folder_new(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/symbols.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove(void **state)
{
	sh("rm -rf '%s'", folder);
	return 0;
}

static const char pair_source[] =
	"static __attribute__((noinline)) int hidden(int x) { return x * 3; }\n"
	"static inline __attribute__((always_inline)) int folded(int x)\n"
	"{\n"
	"	return hidden(x) + 1;\n"
	"}\n"
	"int shown(int x)\n"
	"{\n"
	"	return folded(x) + 2;\n"
	"}\n";

/* The call in shown() of pair.so is in folded(), line 4, called from line 8. */
static inline void assert_pair_lines(struct symbols_module *module, uint64_t shown)
{
	const struct symbols_frame *frames;
	bool seen = false;

	for (uint64_t address = shown; address < shown + 24 && !seen; address++) {
		if (symbols_resolve(module, address, &frames) != 2)
			continue;
		seen = true;
		assert_string_equal(frames[0].function, "folded");
		assert_true(frames[0].inlined);
		assert_int_equal(frames[0].line, 4);
		assert_string_equal(frames[1].function, "shown");
		assert_int_equal(frames[1].line, 8);
		assert_string_equal(lbasename(frames[1].file), "pair.c");
	}
	assert_true(seen);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_remove)

#endif
