/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's own list of objects, judged by the loader: by dl_iterate_phdr, and by
 * _dl_find_object where glibc has it. */
#include "tests/unit/fixtures/recorder.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include "interpose/objects/loaded.h"

/* Libraries that come with glibc, and that no test loads otherwise. */
static const char *const spare[] = { "libresolv.so.2", "libanl.so.1", "libBrokenLocale.so.1",
				     "libthread_db.so.1", "libutil.so.1" };
enum { SPARE = sizeof spare / sizeof *spare };

/* ---- the judge ---- */

static unsigned judged;

/* Addresses in all of its segments lead to this object. */
static int judge_object(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	uintptr_t eh_frame_hdr = 0, dynamic = 0;
	struct cuf_loaded found, again;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			eh_frame_hdr = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			dynamic = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
	}
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || !segment->p_memsz)
			continue;
		for (unsigned part = 0; part < 5; part++) {
			uintptr_t at = start + (segment->p_memsz - 1) * part / 4;

			assert_true(cuf_loaded_listed_at(at, &found));
			assert_int_equal((uintptr_t)found.map->l_ld, dynamic);
			assert_int_equal(found.map->l_addr, info->dlpi_addr);
			assert_int_equal(found.eh_frame_hdr, eh_frame_hdr);
			assert_true(cuf_loaded_at(at, &again));
			assert_ptr_equal(again.map, found.map);
			if (!*info->dlpi_name) /* the program may be mapped in pieces */
				continue;
			assert_int_equal(again.start, found.start);
			assert_int_equal(again.end, found.end);
		}
	}
	judged++;
	return 0;
}

static unsigned judge(void)
{
	judged = 0;
	dl_iterate_phdr(judge_object, NULL);
	return judged;
}

/* ---- tests ---- */

static int find_gap(struct dl_phdr_info *info, size_t bytes, void *middle)
{
	uintptr_t end = 0, largest = 0;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (end && start > end && start - end > largest) {
			largest = start - end;
			*(uintptr_t *)middle = end + largest / 2;
		}
		end = start + info->dlpi_phdr[i].p_memsz;
	}
	return 1; /* the program is the first one */
}

/* The kernel maps others there. This program is linked with a gap of megabytes. */
static void test_loaded__leaves_out_the_gap_between_segments(void **state)
{
	struct cuf_loaded found;
	uintptr_t middle = 0;

	dl_iterate_phdr(find_gap, &middle);
	assert_int_not_equal(middle, 0);
	assert_false(cuf_loaded_listed_at(middle, &found));
}

static void test_loaded__lists_what_was_loaded_at_start(void **state)
{
	assert_true(judge() >= 3); /* the program, libc, ld.so */
}

static void test_loaded__finds_no_object_elsewhere(void **state)
{
	struct cuf_loaded found;
	void *map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *block = malloc(100);

	assert_false(cuf_loaded_listed_at((uintptr_t)map, &found));
	assert_false(cuf_loaded_listed_at((uintptr_t)block, &found));
	assert_false(cuf_loaded_listed_at((uintptr_t)&found, &found));
	assert_false(cuf_loaded_listed_at(0, &found));
	assert_false(cuf_loaded_listed_at(UINTPTR_MAX, &found));
	free(block);
	munmap(map, 4096);
}

/* Nobody tells the list that an object was opened or closed. */
static void test_loaded__follows_what_is_opened_and_closed(void **state)
{
	struct link_map *maps[SPARE];
	uintptr_t inside[SPARE];
	struct cuf_loaded found;
	unsigned count = judge();

	for (unsigned i = 0; i < SPARE; i++) {
		maps[i] = dlopen(spare[i], RTLD_NOW | RTLD_LOCAL);
		if (!maps[i])
			continue;
		inside[i] = (uintptr_t)maps[i]->l_ld;
		assert_true(cuf_loaded_listed_at(inside[i], &found));
		assert_ptr_equal(found.map, maps[i]);
	}
	assert_true(judge() > count + 2);
	for (unsigned i = 0; i < SPARE; i += 2) { /* every second one, so the list has gaps */
		if (!maps[i])
			continue;
		assert_int_equal(dlclose(maps[i]), 0);
		assert_false(cuf_loaded_listed_at(inside[i], &found));
		judge();
	}
	for (unsigned i = 1; i < SPARE; i += 2)
		if (maps[i])
			assert_int_equal(dlclose(maps[i]), 0);
	assert_int_equal(judge(), count);
}

/* One is closed without a question about it, and others come to its place. */
static void test_loaded__does_not_answer_for_an_object_that_was_there(void **state)
{
	for (unsigned i = 0; i + 1 < SPARE; i++) {
		struct link_map *before = dlopen(spare[i], RTLD_NOW | RTLD_LOCAL), *after;
		struct cuf_loaded found;

		if (!before)
			continue;
		assert_true(cuf_loaded_listed_at((uintptr_t)before->l_ld, &found));
		dlclose(before);
		after = dlopen(spare[i + 1], RTLD_NOW | RTLD_LOCAL);
		judge();
		if (after)
			dlclose(after);
	}
}

/* More openings than the list has places. */
static void test_loaded__uses_places_again(void **state)
{
	for (unsigned i = 0; i < 3000; i++) {
		struct link_map *map = dlopen(spare[0], RTLD_NOW | RTLD_LOCAL);
		struct cuf_loaded found;

		assert_non_null(map);
		assert_true(cuf_loaded_listed_at((uintptr_t)map->l_ld, &found));
		assert_ptr_equal(found.map, map);
		dlclose(map);
	}
	judge();
}

static bool is_over;

static void *open_and_close(void *unused)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		void *handle = dlopen(spare[0], RTLD_NOW | RTLD_LOCAL);
		struct cuf_loaded found;

		cuf_loaded_listed_at((uintptr_t)((struct link_map *)handle)->l_ld, &found);
		dlclose(handle);
	}
	return NULL;
}

/* What stays is found at every moment, also what was opened late. */
static void test_loaded__knows_what_stays_while_others_come_and_go(void **state)
{
	struct link_map *stays = dlopen(spare[1], RTLD_NOW | RTLD_LOCAL);
	struct cuf_loaded found;
	pthread_t threads[2];

	assert_non_null(stays);
	assert_true(cuf_loaded_listed_at((uintptr_t)stays->l_ld, &found));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, NULL), 0);
	for (unsigned i = 0; i < 20000; i++) {
		assert_true(cuf_loaded_listed_at((uintptr_t)&dlopen, &found));
		if (cuf_loaded_listed_at((uintptr_t)stays->l_ld, &found))
			assert_ptr_equal(found.map, stays);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_true(cuf_loaded_listed_at((uintptr_t)stays->l_ld, &found));
	dlclose(stays);
	judge();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loaded__lists_what_was_loaded_at_start),
		cmocka_unit_test(test_loaded__finds_no_object_elsewhere),
		cmocka_unit_test(test_loaded__leaves_out_the_gap_between_segments),
		cmocka_unit_test(test_loaded__follows_what_is_opened_and_closed),
		cmocka_unit_test(test_loaded__does_not_answer_for_an_object_that_was_there),
		cmocka_unit_test(test_loaded__uses_places_again),
		cmocka_unit_test(test_loaded__knows_what_stays_while_others_come_and_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
