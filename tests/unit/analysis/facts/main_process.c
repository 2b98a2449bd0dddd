/* SPDX-License-Identifier: Apache-2.0 */
/* Which process of a run is explained when no request was fatal. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "analysis/facts/passes/passes.h"

#define MiB (1ull << 20)
enum { COUNT = 4 };

static struct fact_sample samples[COUNT];
static struct fact_process processes[COUNT];
static uint64_t device_bytes[COUNT];
static struct facts facts;

/* A parent and three workers that ended well; none used a device, each held 100 MiB. */
static int make_run(void **state)
{
	(void)state;
	facts = (struct facts){ .processes = processes, .process_count = COUNT };
	for (unsigned i = 0; i < COUNT; i++) {
		samples[i] = (struct fact_sample){ .rss_bytes = 100 * MiB };
		processes[i] = (struct fact_process){ .end = END_EXIT, .timeline = &samples[i],
						      .timeline_count = 1 };
		device_bytes[i] = CUF_UNKNOWN;
	}
	return 0;
}

static void expect(uint32_t process)
{
	assert_int_equal(main_process(&facts, device_bytes), process);
}

static void test_main_process__of_equals_the_parent(void **state) { expect(0); }

static void test_main_process__the_largest_if_clearly(void **state)
{
	samples[2].rss_bytes = 108 * MiB;
	expect(0);
	samples[2].rss_bytes = 112 * MiB;
	expect(2);
	samples[3].rss_bytes = CUF_UNKNOWN;
	expect(2);
}

static void test_main_process__a_device_outweighs_the_host(void **state)
{
	samples[2].rss_bytes = 1000 * MiB;
	device_bytes[1] = 1 * MiB;
	expect(1);
	device_bytes[3] = 2 * MiB;
	expect(3);
}

static void test_main_process__a_killed_worker_outweighs_all(void **state)
{
	device_bytes[1] = 2 * MiB;
	processes[2].end = END_KILLED;
	expect(2);
	processes[2].end = END_SIGNAL;
	processes[2].end_status = SIGSEGV;
	expect(2);
	processes[3].end = END_OOM_KILLED;
	expect(3);
}

static void test_main_process__a_supervisor_that_stops_workers_is_ordinary(void **state)
{
	processes[2].end = END_SIGNAL;
	processes[2].end_status = SIGTERM;
	expect(0);
	processes[2].end_status = SIGINT;
	expect(0);
}

static void test_main_process__what_exec_replaced_is_last(void **state)
{
	processes[0].end = END_EXEC;
	expect(1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_main_process__of_equals_the_parent, make_run),
		cmocka_unit_test_setup(test_main_process__the_largest_if_clearly, make_run),
		cmocka_unit_test_setup(test_main_process__a_device_outweighs_the_host, make_run),
		cmocka_unit_test_setup(test_main_process__a_killed_worker_outweighs_all, make_run),
		cmocka_unit_test_setup(
			test_main_process__a_supervisor_that_stops_workers_is_ordinary, make_run),
		cmocka_unit_test_setup(test_main_process__what_exec_replaced_is_last, make_run),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
