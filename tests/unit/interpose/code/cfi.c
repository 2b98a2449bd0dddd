/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables as an attacker would write them: .eh_frame_hdr and .eh_frame of a loaded library
 * are damaged at random, in place, and a rule is requested for every address. Each result has a
 * shape that the walker supports, and nothing was read outside the segment: a fault, or a report of
 * a sanitizer, fails the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "interpose/code/cfi.h"
#include "interpose/code/modules.h"

enum { ROUNDS = 40, RULE_STEP = 5, TABLE_HEAD_BYTES = 12 };
#if defined __aarch64__
enum { FP_HIGHEST = -8 };
#else
enum { FP_HIGHEST = -16 }; /* below the return address */
#endif

static struct link_map *library; /* nothing in it is called */
static struct cuf_object object;
static unsigned char *tables, *whole;     /* in place, and as they were */
static size_t tables_bytes, search_bytes; /* the search table is their first part */
static uint64_t random_state = 88172645463325252ull;

static uint64_t random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Few bytes or many; values that lengths, offsets and opcodes trip over are frequent. */
static void damage(unsigned char *where, size_t bytes, unsigned times)
{
	static const unsigned char nasty[] = { 0x00, 0x01, 0x7f, 0x80, 0xff, 0x0a,
		                               0x0b, 0x0f, 0x10, 0x16, 0x3f, 0xc0 };
	for (unsigned i = 0; i < times; i++) {
		uint64_t r = random_number();
		where[(r >> 8) % bytes] = r & 1 ? nasty[(r >> 1) % sizeof nasty]
		                                : (unsigned char)(r >> 40);
	}
}

/* Every rule of the object; returns how many of them the walker could follow. */
static unsigned try_all(void)
{
	unsigned followed = 0;
	for (uintptr_t at = object.start; at < object.end; at += RULE_STEP) {
		struct cuf_rule rule = cuf_rule_compile(at);
		assert_int_equal(rule.ip, at);
		assert_in_range(rule.kind, CUF_RULE_SP, CUF_RULE_SP_LOW);
		if (rule.kind == CUF_RULE_SP || rule.kind == CUF_RULE_FP) {
			assert_true(rule.fp_offset == 0 ||
			            (cuf_rule_fp_offset(&rule) <= FP_HIGHEST &&
			             cuf_rule_fp_offset(&rule) % 8 == 0));
			followed++;
		}
	}
	return followed;
}

static void damaged_tables_give_known_shapes_or_nothing(void **state)
{
	unsigned undamaged = try_all(), least = undamaged;
	assert_true(undamaged > 1000);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned followed;
		damage(tables + search_bytes, tables_bytes - search_bytes, 1u << round % 10);
		damage(tables, search_bytes, round % 4 * 8);
		followed = try_all();
		least = followed < least ? followed : least;
		memcpy(tables, whole, tables_bytes);
	}
	assert_true(least < undamaged); /* damage was done, and was met */
	assert_int_equal(try_all(), undamaged);
}

/* Each byte of the search table's head in turn, at its extremes. */
static void a_damaged_search_table(void **state)
{
	static const unsigned char values[] = {0x00, 0x7f, 0x80, 0xff};
	for (unsigned byte = 0; byte < TABLE_HEAD_BYTES; byte++)
		for (unsigned v = 0; v < sizeof values; v++) {
			tables[byte] = values[v];
			try_all();
			tables[byte] = whole[byte];
		}
}

static int set_up(void **state)
{
	struct cuf_span span;
	uintptr_t page;
	uint32_t entries;
	cuf_modules_init(NULL);
	library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!library || !cuf_object_find((uintptr_t)library->l_ld, &object) ||
		!cuf_object_span(&object, object.eh_frame_hdr, &span))
		return -1;
	tables = (unsigned char *)object.eh_frame_hdr;
	tables_bytes = span.end - object.eh_frame_hdr;
	memcpy(&entries, tables + 8, sizeof entries);
	search_bytes = TABLE_HEAD_BYTES + 8ul * entries;
	whole = malloc(tables_bytes);
	if (!whole || search_bytes >= tables_bytes)
		return -1;
	memcpy(whole, tables, tables_bytes);
	page = object.eh_frame_hdr & -(uintptr_t)sysconf(_SC_PAGESIZE);
	return mprotect((void *)page, span.end - page, PROT_READ | PROT_WRITE);
}

static int tear_down(void **state)
{
	memcpy(tables, whole, tables_bytes);
	free(whole);
	return dlclose(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_tables_give_known_shapes_or_nothing),
		cmocka_unit_test(a_damaged_search_table),
	};
	return cmocka_run_group_tests_name("cfi", tests, set_up, tear_down);
}
