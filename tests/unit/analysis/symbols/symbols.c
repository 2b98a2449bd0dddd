/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names, lines and inlined functions: of this program, and of libraries compiled here, then
 * stripped, split and damaged.
 */
#include <link.h>
#include "tests/unit/fixtures/built_library.h"

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
	static const struct {
		const char *function;
		unsigned line;
		bool inlined;
	} expected[] = {
		{ "inner_function", INNER_LINE, true },
		{ "middle_function", MIDDLE_LINE, true },
		{ "outer_function", OUTER_LINE, false },
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
	        "void rust_v0(void) __asm__(\"_RNvC6_123foo3bar\"); void rust_v0(void) {}\n"
	        "void alias(void) __asm__(\"__GI_alias\"); void alias(void) {}\n",
	        "-g");
	module = module_of(symbols, in_folder("names.so"));
	assert_function(module, address_of(in_folder("names.so"), "_ZN2ns1S4growIiEEPvT_"),
	                "void* ns::S::grow<int>(int)");
	assert_function(module,
	                address_of(in_folder("names.so"),
	                           "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
	                "core::fmt::Write::write_fmt");
	assert_function(module, address_of(in_folder("names.so"), "_RNvC6_123foo3bar"),
	                "123foo::bar");
	assert_function(module, address_of(in_folder("names.so"), "__GI_alias"), "alias");
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
	        "int some_data = 1;\n",
	        "-nostdlib");
	module = module_of(symbols, in_folder("table.so"));
	grow = address_of(in_folder("table.so"), "grow");
	gap = address_of(in_folder("table.so"), "gap_marker");
	assert_function(module, grow, "grow");
	assert_function(module, grow + 1, "grow");
	assert_function(module, grow + 2, "grow");
	assert_function(module, gap - 1, "grow");
	assert_function(module, address_of(in_folder("table.so"), "unsized_function") + 2,
	                "unsized_function");
	assert_function(module, address_of(in_folder("table.so"), "next_function"),
	                "next_function");
	assert_function(module, address_of(in_folder("table.so"), "next_function") + 1, NULL);
	assert_function(module, address_of(in_folder("table.so"), "some_data"), NULL);
	assert_function(module, 0, NULL);
	assert_function(module, UINT64_MAX, NULL);
	symbols_free(symbols);
}

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

static void test_symbols__lines_in_every_place(void **state)
{
	static const struct {
		const char *flags, *then;
	} cases[] = {
		{ "-gdwarf-4", "true" },
		{ "-gdwarf-5", "true" },
		{ "-g", "objcopy --remove-section .debug_aranges pair.so" }, /* as clang and rustc
		                                                                leave it */
		{ "-g -gsplit-dwarf -dumpbase pair", "true" },
		{ "-g",
		  "objcopy --only-keep-debug pair.so pair.debug && objcopy -S --add-gnu-debuglink=pair.debug pair.so" },
		{ "-g",
		  "mkdir -p .debug && objcopy --only-keep-debug pair.so .debug/pair.debug && objcopy -S --add-gnu-debuglink=.debug/pair.debug pair.so" },
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
	sh("cd '%s' && objcopy --only-keep-debug pair.so mini && xz -f mini && strip pair.so && objcopy --add-section .gnu_debugdata=mini.xz pair.so",
	   folder);
	module = module_of(symbols, in_folder("pair.so"));
	assert_function(module, hidden, "hidden");
	assert_function(module, hidden + 0x10000, NULL);
	symbols_free(symbols);
}

/* ---- what the recording contains ---- */

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

/* Whatever build-id the damaged file claims is taken as recorded, so that reading goes on as far as
 * it can. */
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
			size_t at = round & 1 ? (size_t)rand() % bytes
			                      : bytes / 2 + (size_t)rand() % (bytes / 2);
			copy[at] = (char)rand();
		}
		read_damaged(copy, bytes, shown);
	}
	free(copy);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_symbols__own_inline_chain),
		IN_FOLDER(test_symbols__mangled_names),
		IN_FOLDER(test_symbols__table),
		IN_FOLDER(test_symbols__stripped),
		IN_FOLDER(test_symbols__lines_in_every_place),
		IN_FOLDER(test_symbols__mini_debug_information),
		IN_FOLDER(test_symbols__hints),
		IN_FOLDER(test_symbols__damaged_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
