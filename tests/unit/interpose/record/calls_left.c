/* SPDX-License-Identifier: Apache-2.0 */
/* Driver and runtime calls that a signal handler leaves by siglongjmp: the next call is recorded. */
#include "tests/unit/fixtures/recorder.h"

enum { ALLOC = 111, RUNTIME_ALLOC = 300 };

/* One call of a hook that never ends. noinline: its frame lies below its caller's. */
static __attribute__((noinline)) bool begin(struct cuf_call *call)
{
	return cuf_call_begin(call, ALLOC, __builtin_frame_address(0));
}

static __attribute__((noinline)) bool begin_inside(struct cuf_call *outer, struct cuf_call *inner)
{
	bool recorded = cuf_call_begin(outer, ALLOC, __builtin_frame_address(0));

	recorded &= !begin(inner);
	cuf_call_end();
	cuf_call_end();
	return recorded;
}

static void test_call__inside_a_call_is_not_recorded(void **state)
{
	struct cuf_call outer, inner;

	assert_true(begin_inside(&outer, &inner));
	assert_int_equal(cuf_tls.driver_calls, 0);
}

static void test_call__that_was_left_does_not_hide_the_next(void **state)
{
	struct cuf_call left, call;

	assert_true(begin(&left)); /* its end never comes */
	assert_true(begin(&call));
	cuf_call_end();
	assert_int_equal(cuf_tls.driver_calls, 0);
}

static void test_call__does_not_get_the_label_of_a_runtime_call_that_was_left(void **state)
{
	struct cuf_call call;

	/* its frame lay below this one */
	cuf_label_begin(RUNTIME_ALLOC, (char *)__builtin_frame_address(0) - 4096);
	assert_true(cuf_call_begin(&call, ALLOC, __builtin_frame_address(0)));
	assert_int_equal(call.label, 0);
	cuf_call_end();
}

static void test_call__inside_a_runtime_call_gets_its_label(void **state)
{
	struct cuf_call call;
	struct cuf_label before = cuf_label_begin(RUNTIME_ALLOC, __builtin_frame_address(0));

	assert_true(begin(&call));
	assert_int_equal(call.label, RUNTIME_ALLOC);
	cuf_call_end();
	cuf_label_end(before);
	assert_int_equal(cuf_tls.label, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call__inside_a_call_is_not_recorded),
		cmocka_unit_test(test_call__that_was_left_does_not_hide_the_next),
		cmocka_unit_test(test_call__does_not_get_the_label_of_a_runtime_call_that_was_left),
		cmocka_unit_test(test_call__inside_a_runtime_call_gets_its_label),
	};

	fixture_start("size=4MiB:host=off", "/nonexistent/");
	return cmocka_run_group_tests_name("calls that are left", tests, NULL, NULL);
}
