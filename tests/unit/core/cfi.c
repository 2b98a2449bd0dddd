/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables as an enemy would write them: a library is loaded again and again with its .eh_frame and .eh_frame_hdr
 * damaged at random, and a rule is asked for every address. Whatever comes back has a shape that the walker knows, and
 * nothing was read outside the segment (a fault, or a sanitizer's report, fails the test).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "interpose/core/cfi.h"
#include "interpose/core/modules.h"

enum { ROUNDS = 40, RULE_STEP = 5 };

static char directory[] = "/tmp/cuflight-cfi-XXXXXX";
static unsigned char *library; /* an undamaged file in memory */
static size_t library_bytes;
static uint64_t random_state = 88172645463325252ull;

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static const ElfW(Shdr) * section(const unsigned char *file, const char *name)
{
	const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file;
	const ElfW(Shdr) *sections = (const ElfW(Shdr) *)(file + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++)
		if (!strcmp((const char *)file + sections[head->e_shstrndx].sh_offset + sections[i].sh_name, name))
			return &sections[i];
	return NULL;
}

/* Few bytes or many; values that lengths, offsets and opcodes trip over are frequent. */
static void damage(unsigned char *file, const char *name, unsigned times)
{
	static const unsigned char nasty[] = {0x00, 0x01, 0x7f, 0x80, 0xff, 0x0a, 0x0b, 0x0f, 0x10, 0x16, 0x3f, 0xc0};
	const ElfW(Shdr) *where = section(file, name);
	assert_non_null(where);
	for (unsigned i = 0; i < times; i++) {
		uint64_t r = random_number();
		file[where->sh_offset + (r >> 8) % where->sh_size] =
			r & 1 ? nasty[(r >> 1) % sizeof nasty] : (unsigned char)(r >> 40);
	}
}

static struct link_map *load(const unsigned char *file, unsigned round)
{
	char path[300];
	void *handle;
	int fd;
	snprintf(path, sizeof path, "%s/damaged-%u.so", directory, round);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0700);
	assert_int_equal(write(fd, file, library_bytes), library_bytes);
	close(fd);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	unlink(path);
	assert_non_null(handle);
	return handle;
}

/* Every rule of the object; returns how many of them the walker could follow. */
static unsigned try_all(uintptr_t inside)
{
	struct cuf_object object;
	unsigned followed = 0;
	assert_true(cuf_object_find(inside, &object));
	for (uintptr_t at = object.start; at < object.end; at += RULE_STEP) {
		struct cuf_rule rule = cuf_rule_compile(at);
		assert_int_equal(rule.ip, at);
		assert_in_range(rule.kind, CUF_RULE_SP, CUF_RULE_UNSUPPORTED);
		if (rule.kind == CUF_RULE_SP || rule.kind == CUF_RULE_FP) {
			assert_true(rule.fp_offset == 0 || (rule.fp_offset <= -16 && rule.fp_offset % 8 == 0));
			followed++;
		}
	}
	return followed;
}

static void damaged_tables_give_known_shapes_or_nothing(void **state)
{
	unsigned whole, least = UINT32_MAX;
	unsigned char *file = malloc(library_bytes);
	struct link_map *map;
	assert_non_null(file);
	map = load(library, ROUNDS);
	whole = try_all((uintptr_t)map->l_ld);
	assert_true(whole > 1000);
	dlclose(map);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned followed;
		memcpy(file, library, library_bytes);
		damage(file, ".eh_frame", 1u << round % 10);
		damage(file, ".eh_frame_hdr", round % 4 ? round % 4 * 8 : 0);
		map = load(file, round);
		followed = try_all((uintptr_t)map->l_ld);
		least = followed < least ? followed : least;
		dlclose(map);
	}
	assert_true(least < whole); /* damage was done, and was met */
	free(file);
}

/* Each byte of the header of the search table in turn, at its extremes. */
static void a_damaged_search_table(void **state)
{
	static const unsigned char values[] = {0x00, 0x7f, 0x80, 0xff};
	unsigned char *file = malloc(library_bytes);
	assert_non_null(file);
	for (unsigned byte = 0; byte < 12; byte++)
		for (unsigned v = 0; v < sizeof values; v++) {
			struct link_map *map;
			memcpy(file, library, library_bytes);
			file[section(file, ".eh_frame_hdr")->sh_offset + byte] = values[v];
			map = load(file, byte * 4 + v);
			try_all((uintptr_t)map->l_ld);
			dlclose(map);
		}
	free(file);
}

static int set_up(void **state)
{
	struct link_map *map = dlopen("libresolv.so.2", RTLD_NOW);
	struct stat file;
	int fd;
	if (!map || (fd = open(map->l_name, O_RDONLY)) < 0 || fstat(fd, &file))
		return -1;
	library_bytes = (size_t)file.st_size;
	library = mmap(NULL, library_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	dlclose(map);
	cuf_modules_init();
	return library == MAP_FAILED || !mkdtemp(directory) ? -1 : 0;
}

static int tear_down(void **state)
{
	munmap(library, library_bytes);
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_tables_give_known_shapes_or_nothing),
		cmocka_unit_test(a_damaged_search_table),
	};
	return cmocka_run_group_tests_name("cfi", tests, set_up, tear_down);
}
