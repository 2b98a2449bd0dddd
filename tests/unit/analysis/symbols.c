/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols of real files: this very program, and small libraries compiled here, then stripped, split, moved, damaged.
 * Each test works in a folder of its own.
 */
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <libiberty/libiberty.h>
#include <limits.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "analysis/model/symbols.h"

#define ID_BYTES 64

static char folder[PATH_MAX];

/* ---- the tools ---- */

static void sh(const char *format, ...)
{
	char command[4096];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof command, format, args);
	va_end(args);
	if (system(command) != 0)
		fail_msg("command failed: %s", command);
}

static const char *in_folder(const char *name)
{
	static char paths[16][PATH_MAX + 64];
	static unsigned turn;
	char *path = paths[turn++ % 16];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
	assert_int_equal(fclose(file), 0);
}

/* Compiles FOLDER/NAME.c to a shared library FOLDER/NAME.so. */
static void compile(const char *name, const char *source, const char *flags)
{
	char file[64];

	snprintf(file, sizeof file, "%s.c", name);
	write_file(file, source);
	sh("cd '%s' && cc -shared -fPIC -Wl,--build-id %s %s.c -o %s.so", folder, flags, name, name);
}

static size_t build_id_of(const char *path, uint8_t id[ID_BYTES])
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

static uint64_t address_of(const char *path, const char *symbol)
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

static struct symbols_module *module_of(struct symbols *symbols, const char *path)
{
	uint8_t id[ID_BYTES];
	size_t bytes = build_id_of(path, id);

	return symbols_module(symbols, path, id, bytes);
}

static const char *function_at(struct symbols_module *module, uint64_t address)
{
	const struct symbols_frame *frames;
	size_t count = symbols_resolve(module, address, &frames);

	assert_true(count >= 1);
	return frames[count - 1].function;
}

static void assert_function(struct symbols_module *module, uint64_t address, const char *name)
{
	const char *found = function_at(module, address);

	if (name)
		assert_string_equal(found ? found : "(unknown)", name);
	else
		assert_null(found);
}

static int folder_new(void **state)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/symbols.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
	sh("rm -rf '%s'", folder);
	return 0;
}

/* ---- this program ---- */

static __attribute__((noinline)) uint64_t return_address(void)
{
	return (uint64_t)(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0));
}

enum { INNER_LINE = __LINE__ + 4, MIDDLE_LINE = __LINE__ + 11, OUTER_LINE = __LINE__ + 18 };

static inline __attribute__((always_inline)) uint64_t inner_function(volatile uint64_t *out)
{
	*out = return_address();
	*out += 0;
	return *out;
}

static inline __attribute__((always_inline)) uint64_t middle_function(volatile uint64_t *out)
{
	uint64_t address = inner_function(out);
	*out += 1;
	return address;
}

static __attribute__((noinline)) uint64_t outer_function(volatile uint64_t *out)
{
	uint64_t address = middle_function(out);
	*out += 2;
	return address;
}

static int base_of_program(struct dl_phdr_info *info, size_t size, void *base)
{
	*(uint64_t *)base = info->dlpi_addr;
	return 1; /* the program is the first */
}

static void test_symbols__own_inline_chain(void **state)
{
	static const struct { const char *function; unsigned line; bool inlined; } expected[] = {
		{ "inner_function", INNER_LINE, true }, { "middle_function", MIDDLE_LINE, true }, { "outer_function", OUTER_LINE, false },
	};
	struct symbols *symbols = symbols_new(NULL);
	char exe[PATH_MAX] = "";
	const struct symbols_frame *frames, *again;
	volatile uint64_t out;
	uint64_t base = 0, address = outer_function(&out);
	struct symbols_module *module;

	assert_true(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
	dl_iterate_phdr(base_of_program, &base);
	module = module_of(symbols, exe);
	assert_ptr_equal(module, module_of(symbols, exe));
	assert_int_equal(symbols_resolve(module, address - base - 1, &frames), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(frames[i].function, expected[i].function);
		assert_int_equal(frames[i].line, expected[i].line);
		assert_int_equal(frames[i].inlined, expected[i].inlined);
		assert_string_equal(lbasename(frames[i].file), "symbols.c");
		assert_string_equal(frames[i].module, lbasename(exe));
		assert_string_equal(frames[i].language, "native");
		assert_false(frames[i].hinted);
	}
	assert_int_equal(symbols_resolve(module, address - base - 1, &again), 3);
	assert_ptr_equal(frames, again);
	symbols_free(symbols);
}

/* ---- names ---- */

static void test_symbols__mangled_names(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module;

	compile("names",
	        "void cpp(void) __asm__(\"_ZN2ns1S4growIiEEPvT_\"); void cpp(void) {}\n"
	        "void rust(void) __asm__(\"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE\"); void rust(void) {}\n"
	        "void rust_v0(void) __asm__(\"_RNvC6_123foo3bar\"); void rust_v0(void) {}\n", "-g");
	module = module_of(symbols, in_folder("names.so"));
	assert_function(module, address_of(in_folder("names.so"), "_ZN2ns1S4growIiEEPvT_"), "void* ns::S::grow<int>(int)");
	assert_function(module, address_of(in_folder("names.so"), "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"), "core::fmt::Write::write_fmt");
	assert_function(module, address_of(in_folder("names.so"), "_RNvC6_123foo3bar"), "123foo::bar");
	symbols_free(symbols);
}

/* Aliases, sizes, assembly: what a linear search by nearest address gets wrong. */
static void test_symbols__table(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module;
	uint64_t grow, gap;

	compile("table",
	        "__asm__(\".text\\n.globl grow, __grow\\n.type grow,@function\\n.type __grow,@function\\n.type _l_grow,@function\\n\"\n"
	        "\"_l_grow: __grow: grow: $x: nop\\nlabel_inside: nop\\nret\\n.size grow,.-grow\\n.size __grow,.-__grow\\n.size _l_grow,.-_l_grow\\n\"\n"
	        "\"gap_marker = .\\n .skip 32, 0x90\\n\"\n"
	        "\"unsized_function: nop\\nnop\\nret\\n\"\n"
	        "\"next_function: ret\\n.type next_function,@function\\n.size next_function,.-next_function\\n\");\n"
	        "int some_data = 1;\n", "-nostdlib");
	module = module_of(symbols, in_folder("table.so"));
	grow = address_of(in_folder("table.so"), "grow");
	gap = address_of(in_folder("table.so"), "gap_marker");
	assert_function(module, grow, "grow");
	assert_function(module, grow + 1, "grow");
	assert_function(module, grow + 2, "grow");
	assert_function(module, gap - 1, "grow");
	assert_function(module, address_of(in_folder("table.so"), "unsized_function") + 2, "unsized_function");
	assert_function(module, address_of(in_folder("table.so"), "next_function"), "next_function");
	assert_function(module, address_of(in_folder("table.so"), "next_function") + 1, NULL);
	assert_function(module, address_of(in_folder("table.so"), "some_data"), NULL);
	assert_function(module, 0, NULL);
	assert_function(module, UINT64_MAX, NULL);
	symbols_free(symbols);
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

static void test_symbols__stripped(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module;
	uint64_t hidden, shown;

	compile("pair", pair_source, "-O1 -g");
	hidden = address_of(in_folder("pair.so"), "hidden");
	shown = address_of(in_folder("pair.so"), "shown");
	sh("cd '%s' && strip pair.so", folder);
	module = module_of(symbols, in_folder("pair.so"));
	assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
	assert_null(symbols_module_reason(module));
	assert_function(module, shown + 1, "shown");
	assert_function(module, hidden + 1, NULL);
	symbols_free(symbols);
}

/* ---- lines, wherever they are kept ---- */

/* The call in shown() of pair.so is in folded(), line 4, called from line 8. */
static void assert_pair_lines(struct symbols_module *module, uint64_t shown)
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

static void test_symbols__lines_in_every_place(void **state)
{
	static const struct { const char *flags, *then; } cases[] = {
		{ "-gdwarf-4", "true" },
		{ "-gdwarf-5", "true" },
		{ "-g", "objcopy --remove-section .debug_aranges pair.so" }, /* as clang and rustc leave it */
		{ "-g -gsplit-dwarf -dumpbase pair", "true" },
		{ "-g", "objcopy --only-keep-debug pair.so pair.debug && objcopy -S --add-gnu-debuglink=pair.debug pair.so" },
		{ "-g", "mkdir -p .debug && objcopy --only-keep-debug pair.so .debug/pair.debug && objcopy -S --add-gnu-debuglink=.debug/pair.debug pair.so" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct symbols *symbols = symbols_new(NULL);
		char flags[128];
		uint64_t shown;
		snprintf(flags, sizeof flags, "-O1 %s", cases[i].flags);
		compile("pair", pair_source, flags);
		shown = address_of(in_folder("pair.so"), "shown");
		sh("cd '%s' && %s", folder, cases[i].then);
		assert_pair_lines(module_of(symbols, in_folder("pair.so")), shown);
		symbols_free(symbols);
	}
}

/* .build-id/ab/cdef.debug below a search directory: beside a stripped file, and in place of one that is gone. */
static void test_symbols__debug_file_by_build_id(void **state)
{
	struct symbols_options options = { .search_dirs = (const char *const[]){ in_folder("debug") }, .search_dir_count = 1 };
	uint64_t shown, hidden;

	compile("pair", pair_source, "-O1 -g");
	shown = address_of(in_folder("pair.so"), "shown");
	hidden = address_of(in_folder("pair.so"), "hidden");
	sh("cd '%s' && id=$(readelf -n pair.so | sed -n 's/.*Build ID: //p') && d=debug/.build-id/$(echo $id | cut -c1-2) && mkdir -p $d"
	   " && objcopy --only-keep-debug pair.so $d/$(echo $id | cut -c3-).debug && strip pair.so", folder);
	for (unsigned gone = 0; gone < 2; gone++) {
		struct symbols *symbols = symbols_new(&options);
		uint8_t id[ID_BYTES];
		size_t bytes = build_id_of(in_folder("pair.so"), id);
		struct symbols_module *module = symbols_module(symbols, gone ? "/no/such/folder/pair.so" : in_folder("pair.so"), id, bytes);
		assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
		assert_pair_lines(module, shown);
		assert_function(module, hidden, "hidden");
		symbols_free(symbols);
	}
}

/* Fedora's way: .gnu_debugdata, a compressed file with a .symtab of its own. */
static void test_symbols__mini_debug_information(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module;
	uint64_t hidden;

	if (system("command -v xz >/dev/null") != 0)
		skip();
	compile("pair", pair_source, "-O1");
	hidden = address_of(in_folder("pair.so"), "hidden");
	sh("cd '%s' && objcopy --only-keep-debug pair.so mini && xz -f mini && strip pair.so && objcopy --add-section .gnu_debugdata=mini.xz pair.so", folder);
	module = module_of(symbols, in_folder("pair.so"));
	assert_function(module, hidden, "hidden");
	assert_function(module, hidden + 0x10000, NULL);
	symbols_free(symbols);
}

/* ---- the right file, or none ---- */

static void assert_state(struct symbols_module *module, enum symbols_state expected, const char *word)
{
	const struct symbols_frame *frames;

	assert_int_equal(symbols_module_state(module), expected);
	assert_non_null(symbols_module_reason(module));
	if (!strstr(symbols_module_reason(module), word))
		fail_msg("\"%s\" does not say \"%s\"", symbols_module_reason(module), word);
	if (expected == SYMBOLS_UNVERIFIED)
		return;
	assert_int_equal(symbols_resolve(module, 0x1000, &frames), 1);
	assert_null(frames[0].function);
	assert_null(frames[0].file);
	assert_int_equal(frames[0].line, 0);
	assert_string_equal(frames[0].module, symbols_module_name(module));
}

static void test_symbols__build_id_differs(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	uint8_t id[ID_BYTES], other[ID_BYTES] = { 0 };
	size_t bytes;

	compile("pair", pair_source, "-O1 -g");
	bytes = build_id_of(in_folder("pair.so"), id);
	assert_true(bytes == 20);
	assert_state(symbols_module(symbols, in_folder("pair.so"), other, bytes), SYMBOLS_DIFFERENT, "recorded was 0000");
	assert_state(symbols_module(symbols, in_folder("pair.so"), id, bytes - 1), SYMBOLS_DIFFERENT, "another build");
	assert_state(symbols_module(symbols, in_folder("pair.so"), NULL, 0), SYMBOLS_DIFFERENT, "recorded was none");
	sh("cd '%s' && objcopy --remove-section .note.gnu.build-id pair.so bare.so", folder);
	assert_state(symbols_module(symbols, in_folder("bare.so"), id, bytes), SYMBOLS_DIFFERENT, "has build-id none");
	assert_state(symbols_module(symbols, in_folder("bare.so"), NULL, 0), SYMBOLS_UNVERIFIED, "by path alone");
	assert_function(symbols_module(symbols, in_folder("bare.so"), NULL, 0), address_of(in_folder("bare.so"), "hidden"), "hidden");
	symbols_free(symbols);
}

/* The recorder keeps 20 bytes of an id. */
static void test_symbols__long_build_id(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	uint8_t id[ID_BYTES];

	compile("pair", pair_source, "-Wl,--build-id=0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
	assert_int_equal(build_id_of(in_folder("pair.so"), id), 32);
	assert_int_equal(symbols_module_state(symbols_module(symbols, in_folder("pair.so"), id, 20)), SYMBOLS_VERIFIED);
	id[19] ^= 1;
	assert_int_equal(symbols_module_state(symbols_module(symbols, in_folder("pair.so"), id, 20)), SYMBOLS_DIFFERENT);
	symbols_free(symbols);
}

static void test_symbols__no_usable_file(void **state)
{
	static const uint8_t id[20] = { 1, 2, 3 };
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module = symbols_module(symbols, in_folder("gone.so"), id, sizeof id);

	assert_state(module, SYMBOLS_MISSING, "no such file");
	assert_string_equal(symbols_module_name(module), "gone.so");
	assert_state(symbols_module(symbols, "[vdso]", id, sizeof id), SYMBOLS_MISSING, "[vdso]");
	assert_state(symbols_module(symbols, "", NULL, 0), SYMBOLS_MISSING, "no path");
	assert_state(symbols_module(symbols, NULL, NULL, 0), SYMBOLS_MISSING, "no path");
	write_file("text", "not ELF at all\n");
	assert_state(symbols_module(symbols, in_folder("text"), id, sizeof id), SYMBOLS_UNREADABLE, "not an ELF file");
	assert_state(symbols_module(symbols, folder, id, sizeof id), SYMBOLS_UNREADABLE, "not a regular file");
	assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
	assert_state(symbols_module(symbols, in_folder("pipe"), id, sizeof id), SYMBOLS_UNREADABLE, "not a regular file");
	symbols_free(symbols);
}

/* A library that the recorded process closed again is as good as any: the file is still there. */
static void test_symbols__closed_library(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	uint64_t base, address;
	struct link_map *map;
	void *handle;

	compile("pair", pair_source, "-O1 -g");
	handle = dlopen(in_folder("pair.so"), RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handle);
	address = (uint64_t)(uintptr_t)dlsym(handle, "shown");
	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	base = map->l_addr;
	dlclose(handle);
	assert_function(module_of(symbols, in_folder("pair.so")), address - base, "shown");
	symbols_free(symbols);
}

static void test_symbols__replaced_between(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module;

	compile("pair", pair_source, "-O1 -g");
	module = module_of(symbols, in_folder("pair.so"));
	assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
	sh("rm '%s'", in_folder("pair.so"));
	compile("pair", "int other(void) { return 1; }\n", "-O2 -g");
	assert_function(module, 0x1000, NULL);
	assert_state(module, SYMBOLS_DIFFERENT, "another build");
	symbols_free(symbols);
}

static void test_symbols__sysroot_and_search(void **state)
{
	struct symbols_options sysroot = { .sysroot = in_folder("root") };
	struct symbols_options search = { .search_dirs = (const char *const[]){ in_folder("elsewhere") }, .search_dir_count = 1 };
	const struct symbols_options *both[] = { &sysroot, &search };
	uint8_t id[ID_BYTES];
	size_t bytes;
	uint64_t shown;

	compile("pair", pair_source, "-O1 -g");
	bytes = build_id_of(in_folder("pair.so"), id);
	shown = address_of(in_folder("pair.so"), "shown");
	sh("cd '%s' && mkdir -p root/opt/app elsewhere root/usr/lib/debug/opt/app && objcopy --only-keep-debug pair.so root/usr/lib/debug/opt/app/pair.debug"
	   " && cp pair.so elsewhere && cp root/usr/lib/debug/opt/app/pair.debug . && objcopy -S --add-gnu-debuglink=pair.debug pair.so root/opt/app/pair.so && rm pair.*", folder);
	for (size_t i = 0; i < 2; i++) {
		struct symbols *symbols = symbols_new(both[i]);
		struct symbols_module *module = symbols_module(symbols, "/opt/app/pair.so", id, bytes);
		assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
		assert_pair_lines(module, shown);
		symbols_free(symbols);
	}
}

/* ---- what the recording says ---- */

static void test_symbols__hints(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *gone = symbols_module(symbols, "/no/such/module.so", NULL, 0), *here;
	const struct symbols_frame *frames;
	uint64_t shown;

	symbols_hint(gone, 0x100, "_ZN2ns1S4growIiEEPvT_+0x1f and more", 26);
	symbols_hint(gone, 0x100, "second_is_ignored", 17);
	symbols_hint(gone, 0x200, "", 0);
	symbols_hint(gone, 0x300, "+0x10", 5);
	symbols_hint(gone, 0x400, "cut\0off", 7);
	assert_int_equal(symbols_resolve(gone, 0x100, &frames), 1);
	assert_string_equal(frames[0].function, "void* ns::S::grow<int>(int)");
	assert_true(frames[0].hinted);
	assert_function(gone, 0x101, NULL);
	assert_function(gone, 0x200, NULL);
	assert_function(gone, 0x300, NULL);
	assert_function(gone, 0x400, "cut");

	compile("pair", pair_source, "-O1");
	shown = address_of(in_folder("pair.so"), "shown");
	here = module_of(symbols, in_folder("pair.so"));
	symbols_hint(here, shown, "nearest_exported_name", 21);
	symbols_resolve(here, shown, &frames);
	assert_string_equal(frames[0].function, "shown");
	assert_false(frames[0].hinted);
	symbols_free(symbols);
}

/* ---- debuginfod ---- */

static void test_symbols__debuginfod_is_opt_in(void **state)
{
	struct symbols_options options = { .debuginfod = true };
	struct symbols *symbols;
	struct symbols_module *module;
	uint8_t id[ID_BYTES];
	size_t bytes;
	uint64_t shown;

	if (!dlopen("libdebuginfod.so.1", RTLD_NOW))
		skip();
	compile("pair", pair_source, "-O1 -g");
	bytes = build_id_of(in_folder("pair.so"), id);
	shown = address_of(in_folder("pair.so"), "shown");
	sh("cd '%s' && id=$(readelf -n pair.so | sed -n 's/.*Build ID: //p') && mkdir -p server/buildid/$id && mv pair.so server/buildid/$id/executable", folder);
	setenv("DEBUGINFOD_CACHE_PATH", in_folder("cache"), 1);
	for (unsigned allowed = 0; allowed < 2; allowed++) {
		char url[PATH_MAX + 64];
		snprintf(url, sizeof url, "file://%s/server", folder);
		setenv("DEBUGINFOD_URLS", url, 1);
		symbols = symbols_new(allowed ? &options : NULL);
		module = symbols_module(symbols, "/no/such/pair.so", id, bytes);
		if (allowed) {
			assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
			assert_pair_lines(module, shown);
		} else {
			assert_int_equal(symbols_module_state(module), SYMBOLS_MISSING);
			assert_null(getenv("DEBUGINFOD_URLS"));
		}
		symbols_free(symbols);
	}
	unsetenv("DEBUGINFOD_URLS");
	unsetenv("DEBUGINFOD_CACHE_PATH");
}

/* ---- damage ---- */

static char *file_read(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "r");
	char *data;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	*bytes = (size_t)ftell(file);
	rewind(file);
	data = xmalloc(*bytes);
	assert_int_equal(fread(data, 1, *bytes, file), *bytes);
	fclose(file);
	return data;
}

/* Whatever build-id the damaged file claims is taken as recorded, so that reading goes on as far as it can. */
static void read_damaged(const char *data, size_t bytes, uint64_t around)
{
	FILE *file = fopen(in_folder("damaged.so"), "w");
	struct symbols *symbols = symbols_new(NULL);
	const struct symbols_frame *frames;
	struct symbols_module *module;

	assert_non_null(file);
	fwrite(data, 1, bytes, file);
	fclose(file);
	module = module_of(symbols, in_folder("damaged.so"));
	for (uint64_t address = around - 64; address < around + 64; address++)
		assert_true(symbols_resolve(module, address, &frames) >= 1);
	symbols_free(symbols);
}

static void test_symbols__damaged_files(void **state)
{
	size_t bytes;
	char *data, *copy;
	uint64_t shown;

	compile("pair", pair_source, "-O1 -g");
	shown = address_of(in_folder("pair.so"), "shown");
	data = file_read(in_folder("pair.so"), &bytes);
	copy = xmalloc(bytes);
	for (size_t cut = 0; cut < bytes; cut += bytes / 100)
		read_damaged(data, cut, shown);
	srand(5);
	for (unsigned round = 0; round < 600; round++) {
		memcpy(copy, data, bytes);
		for (unsigned i = 0; i < 1 + round % 40; i++) {
			/* half of the hits where most of the structure is: behind the code */
			size_t at = round & 1 ? (size_t)rand() % bytes : bytes / 2 + (size_t)rand() % (bytes / 2);
			copy[at] = (char)rand();
		}
		read_damaged(copy, bytes, shown);
	}
	free(copy);
	free(data);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_new, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols__own_inline_chain),
		IN_FOLDER(test_symbols__mangled_names),
		IN_FOLDER(test_symbols__table),
		IN_FOLDER(test_symbols__stripped),
		IN_FOLDER(test_symbols__lines_in_every_place),
		IN_FOLDER(test_symbols__debug_file_by_build_id),
		IN_FOLDER(test_symbols__mini_debug_information),
		IN_FOLDER(test_symbols__build_id_differs),
		IN_FOLDER(test_symbols__long_build_id),
		IN_FOLDER(test_symbols__no_usable_file),
		IN_FOLDER(test_symbols__closed_library),
		IN_FOLDER(test_symbols__replaced_between),
		IN_FOLDER(test_symbols__sysroot_and_search),
		IN_FOLDER(test_symbols__hints),
		IN_FOLDER(test_symbols__debuginfod_is_opt_in),
		IN_FOLDER(test_symbols__damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
