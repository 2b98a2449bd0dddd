/* SPDX-License-Identifier: Apache-2.0 */
/* The whole symbol table of an object: libc's, and tables that end or disappear in the middle. */
#include "interpose/code/module_symbols.h"

#include <dlfcn.h>
#include <search.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

enum { SYMBOLS = 3000 };

static struct cuf_symbol_pieces pieces;

struct wanted {
	uintptr_t bias, address;
	const char *name;
	unsigned visits;
	bool is_found;
};

static void compare(const ElfW(Sym) *symbol, uintptr_t names, void *context)
{
	struct wanted *wanted = context;

	wanted->visits++;
	if (symbol->st_value && wanted->bias + symbol->st_value == wanted->address)
		wanted->is_found |= !strcmp((const char *)names + symbol->st_name, wanted->name);
}

static void a_function_of_libc(void **state)
{
	struct wanted wanted = { .address = (uintptr_t)dlsym(RTLD_DEFAULT, "lfind"),
				 .name = "lfind" };
	struct link_map *map;
	uint64_t count;
	Dl_info info;

	(void)state;
	assert_true(dladdr1((void *)wanted.address, &info, (void **)&map, RTLD_DL_LINKMAP));
	wanted.bias = map->l_addr;
	count = cuf_module_symbols(&pieces, map->l_addr, (uintptr_t)map->l_ld, 1000000, compare,
				   &wanted);
	assert_int_equal(count, wanted.visits);
	assert_true(count > 1000);
	assert_true(wanted.is_found);
	wanted.visits = 0;
	assert_int_equal(cuf_module_symbols(&pieces, map->l_addr, (uintptr_t)map->l_ld, 10, compare,
					    &wanted),
			 10);
}

/* DT_HASH states more symbols than are readable. */
static void a_table_that_is_gone(void **state)
{
	static uint32_t hash[2] = { 1, SYMBOLS };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *symbols = mmap(NULL, 32 * page, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const ElfW(Dyn) dynamic[] = {
		{ DT_SYMTAB, { .d_ptr = (uintptr_t)symbols } },
		{ DT_STRTAB, { .d_ptr = (uintptr_t)symbols } },
		{ DT_HASH, { .d_ptr = (uintptr_t)hash } },
		{ DT_NULL, { 0 } },
	};
	struct wanted wanted = { 0 };

	(void)state;
	assert_int_equal(cuf_module_symbols(&pieces, 0, (uintptr_t)dynamic, 1000000, compare,
					    &wanted),
			 SYMBOLS);
	munmap(symbols + page, 31 * page);
	assert_int_equal(cuf_module_symbols(&pieces, 0, (uintptr_t)dynamic, 1000000, compare,
					    &wanted),
			 page / sizeof(ElfW(Sym)));
	munmap(symbols, page);
	assert_int_equal(cuf_module_symbols(&pieces, 0, (uintptr_t)dynamic, 1000000, compare,
					    &wanted),
			 0);
	assert_int_equal(cuf_module_symbols(&pieces, 0, (uintptr_t)symbols, 1000000, compare,
					    &wanted),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_of_libc),
		cmocka_unit_test(a_table_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
