/* SPDX-License-Identifier: Apache-2.0 */
/* Reading other objects' symbol tables agrees with the loader. */
#include "tests/unit/fixtures/recorder.h"
#include <dlfcn.h>
#include <sys/auxv.h>
#include "interpose/objects/elf_symbol.h"

#if defined __aarch64__
#define VDSO_NAME "__kernel_clock_gettime"
#else
#define VDSO_NAME "__vdso_clock_gettime"
#endif

static const struct link_map *map_of(const void *addr)
{
	Dl_info info;
	struct link_map *map = NULL;
	assert_int_not_equal(dladdr1(addr, &info, (void **)&map, RTLD_DL_LINKMAP), 0);
	assert_non_null(map);
	return map;
}

/* A handle of glibc is the object's link_map. It is opened, so that dlsym works on it. */
static struct link_map *libc_map(void)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	assert_non_null(handle);
	return handle;
}

static void test_elf_symbol__agrees_with_the_loader(void **state)
{
	static const char *const names[] = { "malloc", "dlsym",          "dlvsym",
		                             "dlopen", "quick_exit",     "__libc_start_main",
		                             "execve", "posix_memalign", "mmap64" };
	struct link_map *libc = libc_map();
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		assert_ptr_equal(cuf_elf_symbol(libc->l_addr, libc->l_ld, names[i]),
		                 dlsym(libc, names[i]));
}

/*
 * Names with an old and a new body must not be confused: programs built today get the default
 * version.
 */
static void test_elf_symbol__takes_the_default_version(void **state)
{
	struct link_map *libc = libc_map();
	void *new = dlvsym(libc, "memcpy", "GLIBC_2.14"),
	     *old = dlvsym(libc, "realpath", "GLIBC_2.2.5");
	if (new)
		assert_ptr_equal(cuf_elf_symbol(libc->l_addr, libc->l_ld, "memcpy"), new);
	if (old)
		assert_ptr_not_equal(cuf_elf_symbol(libc->l_addr, libc->l_ld, "realpath"), old);
	assert_ptr_equal(cuf_elf_symbol(libc->l_addr, libc->l_ld, "realpath"),
	                 dlsym(libc, "realpath"));
}

static void test_elf_symbol__finds_a_name_that_has_only_an_old_version(void **state)
{
	struct link_map *libc = libc_map();
#if defined __aarch64__
	void *cfree = dlvsym(libc, "cfree", "GLIBC_2.17");
#else
	void *cfree = dlvsym(libc, "cfree", "GLIBC_2.2.5");
#endif
	assert_ptr_equal(cuf_elf_symbol(libc->l_addr, libc->l_ld, "cfree"), cfree);
}

static void test_elf_symbol__is_null_for_what_the_object_does_not_define(void **state)
{
	struct link_map *libc = libc_map();
	assert_null(cuf_elf_symbol(libc->l_addr, libc->l_ld, "cuf_no_such_symbol"));
	assert_null(cuf_elf_symbol(libc->l_addr, libc->l_ld, ""));
	/* needed by the loader's side of libc, defined elsewhere */
	assert_null(cuf_elf_symbol(libc->l_addr, libc->l_ld, "__tls_get_addr"));
	assert_null(cuf_elf_symbol(0, NULL, "malloc"));
}

/* Every object of this process, including the vdso with its unrelocated table. */
static int see(struct dl_phdr_info *info, size_t bytes, void *vdso_seen)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		const ElfW(Dyn) *dynamic = (const ElfW(Dyn) *)(info->dlpi_addr +
		                                               info->dlpi_phdr[i].p_vaddr);
		const char *soname = cuf_elf_soname(info->dlpi_addr, dynamic);
		assert_null(cuf_elf_symbol(info->dlpi_addr, dynamic, "cuf_no_such_symbol"));
		if (soname && !strncmp(soname, "linux-vdso", 10)) {
			uintptr_t at = (uintptr_t)cuf_elf_symbol(info->dlpi_addr, dynamic,
			                                         VDSO_NAME);
			assert_true(at > info->dlpi_addr && at < info->dlpi_addr + 0x10000);
			*(int *)vdso_seen = 1;
		}
	}
	return 0;
}

static void test_elf_symbol__reads_every_loaded_object(void **state)
{
	int vdso_seen = 0;
	dl_iterate_phdr(see, &vdso_seen);
	assert_int_equal(vdso_seen, getauxval(AT_SYSINFO_EHDR) != 0); /* valgrind hides it */
}

/*
 * The vdso as it is when linked at the top of the address space: the same bytes, a bias that wraps
 * around. Symbols' values are link-time addresses, too, so what is found lies as much lower as the
 * bias does.
 */
static int see_moved(struct dl_phdr_info *info, size_t bytes, void *vdso_seen)
{
	static const ElfW(Sxword)
		pointers[] = { DT_SYMTAB, DT_STRTAB, DT_HASH, DT_GNU_HASH, DT_VERSYM };
	const uintptr_t top = 0xffffffffff700000;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		static ElfW(Dyn) moved[64];
		const ElfW(Dyn) *dynamic = (const ElfW(Dyn) *)(info->dlpi_addr +
		                                               info->dlpi_phdr[i].p_vaddr);
		unsigned count = 0;
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC ||
		    info->dlpi_addr != getauxval(AT_SYSINFO_EHDR))
			continue;
		do {
			assert_true(count < sizeof moved / sizeof *moved);
			moved[count] = dynamic[count];
			for (unsigned tag = 0; tag < sizeof pointers / sizeof *pointers; tag++)
				if (moved[count].d_tag == pointers[tag])
					moved[count].d_un.d_ptr += top;
		} while (dynamic[count++].d_tag != DT_NULL);
		assert_null(cuf_elf_symbol(info->dlpi_addr - top, moved, "cuf_no_such_symbol"));
		assert_ptr_equal((char *)cuf_elf_symbol(info->dlpi_addr - top, moved, VDSO_NAME) +
		                         top,
		                 cuf_elf_symbol(info->dlpi_addr, dynamic, VDSO_NAME));
		assert_string_equal(cuf_elf_soname(info->dlpi_addr - top, moved),
		                    cuf_elf_soname(info->dlpi_addr, dynamic));
		*(int *)vdso_seen = 1;
	}
	return 0;
}

static void test_elf_symbol__reads_a_vdso_linked_at_the_top(void **state)
{
	int vdso_seen = 0;
	dl_iterate_phdr(see_moved, &vdso_seen);
	assert_int_equal(vdso_seen, getauxval(AT_SYSINFO_EHDR) != 0);
}

static void test_elf_symbol__tells_what_an_object_needs(void **state)
{
	const struct link_map *self = map_of((void *)map_of);
	unsigned libc_seen = 0;
	const char *needed;
	for (unsigned i = 0; (needed = cuf_elf_needed(self->l_addr, self->l_ld, i)); i++)
		libc_seen += !strcmp(needed, "libc.so.6");
	assert_int_equal(libc_seen, 1);
	assert_null(cuf_elf_soname(self->l_addr, self->l_ld));
	struct link_map *libc = libc_map();
	assert_string_equal(cuf_elf_soname(libc->l_addr, libc->l_ld), "libc.so.6");
}

static void test_elf_symbol__walks_what_was_loaded_at_the_start(void **state)
{
	const struct link_map *map = cuf_elf_first_at_start(), *late;
	unsigned count = 0;
	assert_null(map->l_prev);
	for (; map; map = cuf_elf_next_at_start(map))
		count++;
	assert_null(dlopen("libresolv.so.2", RTLD_NOW | RTLD_NOLOAD));
	late = dlopen("libresolv.so.2", RTLD_NOW);
	assert_non_null(late);
	for (map = cuf_elf_first_at_start(); map; map = cuf_elf_next_at_start(map), count--)
		assert_ptr_not_equal(map, late);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_elf_symbol__agrees_with_the_loader),
		cmocka_unit_test(test_elf_symbol__takes_the_default_version),
		cmocka_unit_test(test_elf_symbol__finds_a_name_that_has_only_an_old_version),
		cmocka_unit_test(test_elf_symbol__is_null_for_what_the_object_does_not_define),
		cmocka_unit_test(test_elf_symbol__reads_every_loaded_object),
		cmocka_unit_test(test_elf_symbol__reads_a_vdso_linked_at_the_top),
		cmocka_unit_test(test_elf_symbol__tells_what_an_object_needs),
		cmocka_unit_test(test_elf_symbol__walks_what_was_loaded_at_the_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
