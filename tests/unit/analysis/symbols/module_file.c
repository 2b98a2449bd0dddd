/* SPDX-License-Identifier: Apache-2.0 */
/* The file from which a module's names are read: the recorded one, wherever it is now, or none. */
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include "tests/unit/fixtures/built_library.h"

static void assert_state(struct symbols_module *module, enum symbols_state expected,
                         const char *word)
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

static void test_module_file__build_id_differs(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	uint8_t id[ID_BYTES], other[ID_BYTES] = { 0 };
	size_t bytes;

	compile("pair", pair_source, "-O1 -g");
	bytes = build_id_of(in_folder("pair.so"), id);
	assert_true(bytes == 20);
	assert_state(symbols_module(symbols, in_folder("pair.so"), other, bytes), SYMBOLS_DIFFERENT,
	             "recorded was 0000");
	assert_state(symbols_module(symbols, in_folder("pair.so"), id, bytes - 1),
	             SYMBOLS_DIFFERENT, "another build");
	assert_state(symbols_module(symbols, in_folder("pair.so"), NULL, 0), SYMBOLS_DIFFERENT,
	             "recorded was none");
	sh("cd '%s' && objcopy --remove-section .note.gnu.build-id pair.so bare.so", folder);
	assert_state(symbols_module(symbols, in_folder("bare.so"), id, bytes), SYMBOLS_DIFFERENT,
	             "has build-id none");
	assert_state(symbols_module(symbols, in_folder("bare.so"), NULL, 0), SYMBOLS_UNVERIFIED,
	             "by path only");
	assert_function(symbols_module(symbols, in_folder("bare.so"), NULL, 0),
	                address_of(in_folder("bare.so"), "hidden"), "hidden");
	symbols_free(symbols);
}

/* The recorder keeps 20 bytes of an id. */
static void test_module_file__long_build_id(void **state)
{
	struct symbols *symbols = symbols_new(NULL);
	uint8_t id[ID_BYTES];

	compile("pair", pair_source,
	        "-Wl,--build-id=0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
	assert_int_equal(build_id_of(in_folder("pair.so"), id), 32);
	assert_int_equal(symbols_module_state(
				 symbols_module(symbols, in_folder("pair.so"), id, 20)),
	                 SYMBOLS_VERIFIED);
	id[19] ^= 1;
	assert_int_equal(symbols_module_state(
				 symbols_module(symbols, in_folder("pair.so"), id, 20)),
	                 SYMBOLS_DIFFERENT);
	symbols_free(symbols);
}

static void test_module_file__no_usable_file(void **state)
{
	static const uint8_t id[20] = { 1, 2, 3 };
	struct symbols *symbols = symbols_new(NULL);
	struct symbols_module *module = symbols_module(symbols, in_folder("gone.so"), id,
	                                               sizeof id);

	assert_state(module, SYMBOLS_MISSING, "no such file");
	assert_string_equal(symbols_module_name(module), "gone.so");
	assert_state(symbols_module(symbols, "[vdso]", id, sizeof id), SYMBOLS_MISSING, "[vdso]");
	assert_state(symbols_module(symbols, "", NULL, 0), SYMBOLS_MISSING, "no path");
	assert_state(symbols_module(symbols, NULL, NULL, 0), SYMBOLS_MISSING, "no path");
	write_file("text", "not ELF at all\n");
	assert_state(symbols_module(symbols, in_folder("text"), id, sizeof id), SYMBOLS_UNREADABLE,
	             "not an ELF file");
	assert_state(symbols_module(symbols, folder, id, sizeof id), SYMBOLS_UNREADABLE,
	             "not a regular file");
	assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
	assert_state(symbols_module(symbols, in_folder("pipe"), id, sizeof id), SYMBOLS_UNREADABLE,
	             "not a regular file");
	symbols_free(symbols);
}

/* A library that the recorded process closed again is as good as any: the file is still there. */
static void test_module_file__closed_library(void **state)
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

static void test_module_file__replaced_between(void **state)
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

static void test_module_file__sysroot_and_search(void **state)
{
	struct symbols_options sysroot = { .sysroot = in_folder("root") };
	struct symbols_options search = { .search_dirs =
		                                  (const char *const[]){ in_folder("elsewhere") },
		                          .search_dir_count = 1 };
	const struct symbols_options *both[] = { &sysroot, &search };
	uint8_t id[ID_BYTES];
	size_t bytes;
	uint64_t shown;

	compile("pair", pair_source, "-O1 -g");
	bytes = build_id_of(in_folder("pair.so"), id);
	shown = address_of(in_folder("pair.so"), "shown");
	sh("cd '%s' && mkdir -p root/opt/app elsewhere root/usr/lib/debug/opt/app && objcopy --only-keep-debug pair.so root/usr/lib/debug/opt/app/pair.debug"
	   " && cp pair.so elsewhere && cp root/usr/lib/debug/opt/app/pair.debug . && objcopy -S --add-gnu-debuglink=pair.debug pair.so root/opt/app/pair.so && rm pair.*",
	   folder);
	for (size_t i = 0; i < 2; i++) {
		struct symbols *symbols = symbols_new(both[i]);
		struct symbols_module *module = symbols_module(symbols, "/opt/app/pair.so", id,
		                                               bytes);
		assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
		assert_pair_lines(module, shown);
		symbols_free(symbols);
	}
}

/* The same file at the same path of this machine is not the recorded machine's. */
static void test_module_file__sysroot_hides_this_machine(void **state)
{
	struct symbols *symbols =
		symbols_new(&(struct symbols_options){ .sysroot = in_folder("root") });
	struct symbols_module *module;

	compile("pair", pair_source, "-O1 -g");
	module = module_of(symbols, in_folder("pair.so"));
	assert_state(module, SYMBOLS_MISSING, "no such file");
	assert_function(module, address_of(in_folder("pair.so"), "shown"), NULL);
	symbols_free(symbols);
}

/* .build-id/ab/cdef.debug below a search directory: next to a stripped file, and in place of a
 * missing one. */
static void test_module_file__debug_file_by_build_id(void **state)
{
	struct symbols_options options = {
		.search_dirs = (const char *const[]){ in_folder("debug") }, .search_dir_count = 1,
	};
	uint64_t shown, hidden;

	compile("pair", pair_source, "-O1 -g");
	shown = address_of(in_folder("pair.so"), "shown");
	hidden = address_of(in_folder("pair.so"), "hidden");
	sh("cd '%s' && id=$(readelf -n pair.so | sed -n 's/.*Build ID: //p') && d=debug/.build-id/$(echo $id | cut -c1-2) && mkdir -p $d"
	   " && objcopy --only-keep-debug pair.so $d/$(echo $id | cut -c3-).debug && strip pair.so",
	   folder);
	for (unsigned gone = 0; gone < 2; gone++) {
		struct symbols *symbols = symbols_new(&options);
		uint8_t id[ID_BYTES];
		size_t bytes = build_id_of(in_folder("pair.so"), id);
		struct symbols_module *module = symbols_module(symbols,
		                                               gone ? "/no/such/folder/pair.so"
		                                                    : in_folder("pair.so"),
		                                               id, bytes);
		assert_int_equal(symbols_module_state(module), SYMBOLS_VERIFIED);
		assert_pair_lines(module, shown);
		assert_function(module, hidden, "hidden");
		symbols_free(symbols);
	}
}

static void test_module_file__debuginfod_is_opt_in(void **state)
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
	sh("cd '%s' && id=$(readelf -n pair.so | sed -n 's/.*Build ID: //p') && mkdir -p server/buildid/$id && mv pair.so server/buildid/$id/executable",
	   folder);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_module_file__build_id_differs),
		IN_FOLDER(test_module_file__long_build_id),
		IN_FOLDER(test_module_file__no_usable_file),
		IN_FOLDER(test_module_file__closed_library),
		IN_FOLDER(test_module_file__replaced_between),
		IN_FOLDER(test_module_file__sysroot_and_search),
		IN_FOLDER(test_module_file__sysroot_hides_this_machine),
		IN_FOLDER(test_module_file__debug_file_by_build_id),
		IN_FOLDER(test_module_file__debuginfod_is_opt_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
