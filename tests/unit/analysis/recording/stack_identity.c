/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks that print alike are one call site: by function and line, by function, by offset; Python
 * by name and line. */
#include <link.h>
#include "tests/unit/fixtures/built_library.h"
#include "tests/unit/fixtures/recording_maker.h"
#include "analysis/explain/facts_build.h"
#include "analysis/recording/stack_identity.h"
#include "analysis/replay/run.h"

#define BASE 0x400000000000ull
#define BASE_AGAIN 0x500000000000ull
#define OFFSET_BYTES 0x100000ull

/* The ELF address behind the n-th call of `called` in this function, as a return address has it. */
static uint64_t call_offset(const char *library, const char *function, unsigned n)
{
	char command[4096], line[256] = "";
	FILE *out;

	snprintf(
		command, sizeof command,
		"objdump -d --no-show-raw-insn --disassemble=%s '%s' | grep -A1 'call' | grep -v call | grep -v -e -- | sed -n %up",
		function, library, n);
	out = popen(command, "r");
	assert_non_null(out);
	assert_non_null(fgets(line, sizeof line, out));
	pclose(out);
	return strtoull(line, NULL, 16);
}

static const char *library_new(const char *name, const char *flags)
{
	write_file("site.c",
		   "void *make(unsigned long);\n"
		   "void *hold[4];\n"
		   "void one_line(void) { hold[0] = make(1); hold[1] = make(2); }\n"
		   "void two_lines(void)\n"
		   "{\n"
		   "	hold[2] = make(3);\n"
		   "	hold[3] = make(4);\n"
		   "}\n");
	/* the build-id that maker_module records for module 1 */
	sh("cc -shared -fPIC -O1 -Wl,--build-id=0x0101010101010101010101010101010101010101 %s -o %s %s",
	   flags, in_folder(name), in_folder("site.c"));
	return in_folder(name);
}

/* A stack of one frame for each offset. */
static void add_stack(struct maker *maker, uint32_t id, const uint64_t *addrs, unsigned depth)
{
	uint64_t *frames = maker_section(maker, CUF_SEC_STACK_FRAMES);
	uint64_t first = maker->h->frames_used;

	maker_stack(maker, id, 0x1000 * id, depth);
	memcpy(frames + first, addrs, depth * sizeof *addrs);
}

struct opened {
	struct run run;
	const uint32_t *site_of;
};

static struct opened open_merged(struct maker *maker, struct symbols *symbols)
{
	struct opened opened;

	memcpy(maker->data, maker->h, sizeof *maker->h);
	assert_int_equal(run_open_memory(&opened.run, maker->data, maker->bytes, NULL), 0);
	opened.run.symbols = symbols;
	run_merge_call_sites(&opened.run);
	opened.site_of = opened.run.processes[0].reader->call_sites;
	return opened;
}

static void test_stack_identity__calls_in_one_line_are_one_site(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct symbols *symbols = symbols_new(NULL);
	const char *library = library_new("lines.so", "-g");
	uint64_t first = call_offset(library, "one_line", 1),
		 second = call_offset(library, "one_line", 2);
	uint64_t third = call_offset(library, "two_lines", 1),
		 fourth = call_offset(library, "two_lines", 2);
	struct opened opened;

	maker_module(maker, 1, BASE, BASE + OFFSET_BYTES, library);
	add_stack(maker, 1, (uint64_t[]){ BASE + first, BASE + third }, 2);
	add_stack(maker, 2, (uint64_t[]){ BASE + second, BASE + third }, 2);
	add_stack(maker, 3, (uint64_t[]){ BASE + second, BASE + fourth }, 2);
	add_stack(maker, 4, (uint64_t[]){ BASE + second }, 1);
	assert_true(first != second && third != fourth);
	opened = open_merged(maker, symbols);
	assert_int_equal(opened.site_of[1], 1);
	assert_int_equal(opened.site_of[2], 1); /* another address in the same line */
	assert_int_equal(opened.site_of[3], 3); /* its caller's line differs */
	assert_int_equal(opened.site_of[4], 4); /* not as deep */
	for (uint32_t id = 1; id <= 4; id++) /* all begin in the same line */
		assert_int_equal(reader_place(opened.run.processes[0].reader, id), 1);
	run_fini(&opened.run);
	symbols_free(symbols);
	maker_free_all(maker);
}

static void test_stack_identity__without_lines_functions_are_compared(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct symbols *symbols = symbols_new(NULL);
	const char *library = library_new("functions.so", "-g0");
	uint64_t first = call_offset(library, "one_line", 1),
		 second = call_offset(library, "one_line", 2);
	uint64_t third = call_offset(library, "two_lines", 1),
		 fourth = call_offset(library, "two_lines", 2);
	struct opened opened;

	maker_module(maker, 1, BASE, BASE + OFFSET_BYTES, library);
	add_stack(maker, 1, (uint64_t[]){ BASE + third }, 1);
	add_stack(maker, 2, (uint64_t[]){ BASE + fourth }, 1);
	add_stack(maker, 3, (uint64_t[]){ BASE + first }, 1);
	add_stack(maker, 4, (uint64_t[]){ BASE + second }, 1);
	opened = open_merged(maker, symbols);
	assert_int_equal(opened.site_of[2], 1);
	assert_int_equal(opened.site_of[3], 3);
	assert_int_equal(opened.site_of[4], 3);
	run_fini(&opened.run);
	symbols_free(symbols);
	maker_free_all(maker);
}

static void test_stack_identity__without_names_offsets_are_compared(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct opened opened;

	maker_module(maker, 1, BASE, BASE + OFFSET_BYTES, "/nowhere/libgone.so");
	maker_module(maker, 2, BASE_AGAIN, BASE_AGAIN + OFFSET_BYTES, "/nowhere/libgone.so");
	add_stack(maker, 1, (uint64_t[]){ BASE + 0x1234 }, 1);
	add_stack(maker, 2, (uint64_t[]){ BASE_AGAIN + 0x1234 }, 1); /* loaded twice */
	add_stack(maker, 3, (uint64_t[]){ BASE + 0x1235 }, 1);
	add_stack(maker, 4, (uint64_t[]){ 0x10 }, 1);                /* in no module */
	add_stack(maker, 5, (uint64_t[]){ 0x11 }, 1);
	opened = open_merged(maker, NULL);
	assert_int_equal(opened.site_of[2], 1);
	assert_int_equal(opened.site_of[3], 3);
	assert_int_equal(opened.site_of[4], 4);
	assert_int_equal(opened.site_of[5], 5);
	run_fini(&opened.run);
	maker_free_all(maker);
}

static void test_stack_identity__python_by_name_and_line(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct opened opened;

	maker_meta(maker, CUF_META_CODE, 7, "Turn.__init__\n/srv/agent.py\n4");
	/* the class was made again */
	maker_meta(maker, CUF_META_CODE, 8, "Turn.__init__\n/srv/agent.py\n4");
	maker_meta(maker, CUF_META_CODE, 9, "Turn.close\n/srv/agent.py\n9");
	add_stack(maker, 1, (uint64_t[]){ cuf_frame_python(7, 5) }, 1);
	add_stack(maker, 2, (uint64_t[]){ cuf_frame_python(8, 5) }, 1);
	add_stack(maker, 3, (uint64_t[]){ cuf_frame_python(8, 6) }, 1);
	add_stack(maker, 4, (uint64_t[]){ cuf_frame_python(9, 5) }, 1);
	add_stack(maker, 5, (uint64_t[]){ cuf_frame_python(10, 5) }, 1); /* no name */
	add_stack(maker, 6, (uint64_t[]){ cuf_frame_python(11, 5) }, 1);
	opened = open_merged(maker, NULL);
	assert_int_equal(opened.site_of[2], 1);
	for (uint32_t id = 3; id <= 6; id++)
		assert_int_equal(opened.site_of[id], id);
	run_fini(&opened.run);
	maker_free_all(maker);
}

/* What one line makes a framework do is one place, whichever of its lines allocates. */
static void test_stack_identity__a_place_is_a_line_of_the_program_itself(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct opened opened;
	const struct reader *reader;
	const uint64_t inner = cuf_frame_python(8, 5), outer = cuf_frame_python(8, 9);

	maker_meta(maker, CUF_META_CODE, 7, "run\n/app/agent.py\n1");
	maker_meta(maker, CUF_META_CODE, 8, "kick\n/usr/lib/python3/dist-packages/crew.py\n1");
	add_stack(maker, 1, (uint64_t[]){ inner, cuf_frame_python(7, 3) }, 2);
	add_stack(maker, 2, (uint64_t[]){ outer, cuf_frame_python(7, 3) }, 2);
	add_stack(maker, 3, (uint64_t[]){ inner, cuf_frame_python(7, 4) }, 2);
	add_stack(maker, 4, (uint64_t[]){ inner, outer }, 2); /* in a thread of the library */
	add_stack(maker, 5, (uint64_t[]){ inner }, 1);
	opened = open_merged(maker, NULL);
	reader = opened.run.processes[0].reader;
	assert_int_equal(reader_place(reader, 2), 1);
	assert_int_equal(reader_place(reader, 3), 3);
	assert_int_equal(reader_place(reader, 4), 4);
	assert_int_equal(reader_place(reader, 5), 4);
	run_fini(&opened.run);
	maker_free_all(maker);
}

/* Two stacks of one call site, as modules of one file at two addresses have them. */
static struct maker *two_stacks_of_one_site(void)
{
	struct maker *maker = maker_new(&maker_small);

	maker_device(maker, 0, 16 * GiB);
	maker_module(maker, 1, BASE, BASE + OFFSET_BYTES, "/nowhere/libgone.so");
	maker_module(maker, 2, BASE_AGAIN, BASE_AGAIN + OFFSET_BYTES, "/nowhere/libgone.so");
	add_stack(maker, 1, (uint64_t[]){ BASE + 0x1234 }, 1);
	add_stack(maker, 2, (uint64_t[]){ BASE_AGAIN + 0x1234 }, 1);
	add_stack(maker, 3, (uint64_t[]){ BASE + 0x2000 }, 1);
	return maker;
}

static void test_stack_identity__the_sites_of_an_incident_are_summed(void **state)
{
	struct maker *maker = two_stacks_of_one_site();
	struct opened opened;
	struct cuf_incident incident, *failed = maker_fail(maker, 0, GiB, MiB, 16 * GiB, 2);

	failed->site_count = 3;
	failed->sites[0] = (struct cuf_site_level){ 3, CUF_KIND_DEVICE, 9 * MiB, 1 };
	failed->sites[1] = (struct cuf_site_level){ 2, CUF_KIND_DEVICE, 8 * MiB, 1 };
	failed->sites[2] = (struct cuf_site_level){ 1, CUF_KIND_DEVICE, 7 * MiB, 2 };
	opened = open_merged(maker, NULL);
	assert_true(reader_incident(opened.run.processes[0].reader, 1, &incident));
	assert_int_equal(incident.stack, 2); /* what was recorded of the call itself stays */
	assert_int_equal(incident.site_count, 2);
	assert_int_equal(incident.sites[0].stack, 1);
	assert_int_equal(incident.sites[0].bytes, 15 * MiB);
	assert_int_equal(incident.sites[0].count, 3);
	assert_int_equal(incident.sites[1].stack, 3);
	run_fini(&opened.run);
	maker_free_all(maker);
}

/* Each of the two stacks grows in every second cycle only: the leak is that of the site. */
static void test_stack_identity__growth_is_judged_over_the_site(void **state)
{
	struct maker *maker = two_stacks_of_one_site();
	struct facts *facts;
	uint64_t kept = 0x7f0000000000, passing = 0x7e0000000000;

	maker->step_ns = 10000000;
	for (uint32_t cycle = 0; cycle < 24; cycle++) {
		maker_alloc(maker, passing, 64 * MiB, 3);
		maker_alloc(maker, kept + cycle * 4 * MiB, 3 * MiB, 1 + cycle % 2);
		maker_free(maker, passing);
	}
	memcpy(maker->data, maker->h, sizeof *maker->h);
	assert_int_equal(facts_build_memory(maker->data, maker->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(facts->leak_count, 1);
	assert_int_equal(facts->leaks[0].bytes, 24 * 3 * MiB);
	assert_int_equal(facts->leaks[0].count, 24);
	assert_int_equal(facts->leaks[0].class, CLASS_LEAK);
	assert_int_equal(facts->leaks[0].per_request_bytes, 3 * MiB);
	assert_int_equal(facts->leaks[0].alloc_count, 24);
	facts_free(facts);
	maker_free_all(maker);
}

/* Where the frames of a stack are joined to its creator's, and where they end as recorded. */
static void test_stack_identity__a_librarys_thread_goes_on_with_its_creator(void **state)
{
	enum { LIBRARY = 1, APP, LIBRARY_IN_THREAD, APP_IN_THREAD, IN_CHAIN, ITS_OWN_CREATOR,
	       LIBRARYS_OWN_THREAD, APP_ELSEWHERE, IN_ANOTHER_THREAD };
	struct maker *maker = maker_new(&maker_small);
	const uint64_t library = cuf_frame_python(7, 5), app = cuf_frame_python(8, 9),
		       c_library = BASE + 0x500;
	struct opened opened;
	const struct reader *reader;
	const uint64_t *frames;
	uint32_t depth;
	uint8_t stop;

	maker_module(maker, 1, BASE, BASE + OFFSET_BYTES, "/usr/lib/libc.so.6");
	maker_meta(maker, CUF_META_CODE, 7, "load\n/usr/lib/python3/dist-packages/pool.py\n1");
	maker_meta(maker, CUF_META_CODE, 8, "main\n/srv/app.py\n1");
	add_stack(maker, LIBRARY, (uint64_t[]){ library }, 1);
	add_stack(maker, APP, (uint64_t[]){ library, app }, 2);
	add_stack(maker, LIBRARY_IN_THREAD,
		  (uint64_t[]){ library, c_library, c_library, CUF_FRAME_CREATOR | APP }, 4);
	add_stack(maker, APP_IN_THREAD, (uint64_t[]){ app, c_library, CUF_FRAME_CREATOR | APP }, 3);
	add_stack(maker, IN_CHAIN, (uint64_t[]){ library, CUF_FRAME_CREATOR | LIBRARY_IN_THREAD },
		  2);
	add_stack(maker, ITS_OWN_CREATOR, (uint64_t[]){ library, CUF_FRAME_CREATOR | 6 }, 2);
	add_stack(maker, LIBRARYS_OWN_THREAD, (uint64_t[]){ library, CUF_FRAME_CREATOR | LIBRARY },
		  2);
	add_stack(maker, APP_ELSEWHERE, (uint64_t[]){ cuf_frame_python(7, 6), app }, 2);
	add_stack(maker, IN_ANOTHER_THREAD,
		  (uint64_t[]){ library, c_library, CUF_FRAME_CREATOR | APP_ELSEWHERE }, 3);
	opened = open_merged(maker, NULL);
	reader = opened.run.processes[0].reader;

	frames = reader_stack(reader, LIBRARY_IN_THREAD, &depth, &stop);
	assert_int_equal(depth, 3); /* without what runs the thread */
	assert_int_equal(frames[0], library);
	assert_int_equal(frames[2], app);
	assert_true(reader_stack_is_joined(reader, LIBRARY_IN_THREAD));
	assert_int_equal(reader_place(reader, LIBRARY_IN_THREAD), APP);

	frames = reader_stack(reader, APP_IN_THREAD, &depth, &stop);
	assert_int_equal(depth, 2);
	assert_int_equal(frames[1], c_library);
	assert_false(reader_stack_is_joined(reader, APP_IN_THREAD));
	assert_int_equal(reader_stack_creator(reader, APP_IN_THREAD), APP);

	frames = reader_stack(reader, IN_CHAIN, &depth, &stop);
	assert_int_equal(depth, 4);
	assert_int_equal(frames[3], app);

	/* which of its own threads a library works in makes no call site */
	assert_false(reader_stack_is_joined(reader, LIBRARYS_OWN_THREAD));
	assert_int_equal(reader_call_site(reader, LIBRARYS_OWN_THREAD), LIBRARY);

	/* nor does the library's call that needed the thread: the program's line is the same */
	assert_int_equal(reader_call_site(reader, IN_ANOTHER_THREAD),
			 reader_call_site(reader, LIBRARY_IN_THREAD));
	assert_int_not_equal(reader_call_site(reader, APP_ELSEWHERE), reader_call_site(reader, APP));

	reader_stack(reader, ITS_OWN_CREATOR, &depth, &stop); /* damage ends somewhere */
	assert_in_range(depth, 1, 8);
	assert_int_equal(reader_stack_creator(reader, LIBRARY), 0);
	run_fini(&opened.run);
	maker_free_all(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_stack_identity__calls_in_one_line_are_one_site,
		                                folder_new, folder_remove),
		cmocka_unit_test_setup_teardown(
			test_stack_identity__without_lines_functions_are_compared, folder_new,
			folder_remove),
		cmocka_unit_test(test_stack_identity__without_names_offsets_are_compared),
		cmocka_unit_test(test_stack_identity__python_by_name_and_line),
		cmocka_unit_test(test_stack_identity__a_place_is_a_line_of_the_program_itself),
		cmocka_unit_test(test_stack_identity__a_librarys_thread_goes_on_with_its_creator),
		cmocka_unit_test(test_stack_identity__the_sites_of_an_incident_are_summed),
		cmocka_unit_test(test_stack_identity__growth_is_judged_over_the_site),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
