/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recording's file is truncated: recording stops, and its memory is there still. Each case runs
 * in a forked child with a recording of its own. The program's view is in tests/fault/vanishing.bats.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/process/bus_guard.h"
#include "interpose/process/gate.h"
#include "interpose/process/handover.h"

static int in_child(int (*run)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		signal(SIGBUS, SIG_DFL); /* cmocka has a handler */
		fixture_alloc(CUF_KIND_DEVICE, 0x1000, 100);
		_exit(run());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* Every page is replaced, whichever is touched first, and the layout is kept. */
static int touch_after_truncation(void)
{
	uint64_t layout = cuf_recording.header->file_bytes;

	cuf_handover_to_file();
	if (!*cuf_recording.path || truncate(cuf_recording.path, 0))
		return 1;
	((volatile uint8_t *)cuf_recording.base)[cuf_recording.bytes / 2] = 1;
	if (cuf_gate_is_on())
		return 2;
	for (size_t at = 0; at < cuf_recording.bytes; at += 4096)
		((volatile uint8_t *)cuf_recording.base)[at + 100]++;
	if (cuf_recording.header->file_bytes != layout)
		return 3;
	fixture_alloc(CUF_KIND_DEVICE, 0x2000, 100); /* passes through */
	unlink(cuf_recording.path);
	return 0;
}

static void a_truncated_file_stops_recording(void **state)
{
	(void)state;
	assert_int_equal(in_child(touch_after_truncation), 0);
}

/* A fault elsewhere ends the process as if there were no guard. */
static int touch_something_else(void)
{
	FILE *file = tmpfile();
	volatile char *page;

	cuf_handover_to_file();
	unlink(cuf_recording.path);
	if (!cuf_bus_guard_is_on() || ftruncate(fileno(file), 4096))
		return 1;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (ftruncate(fileno(file), 0))
		return 2;
	page[0] = 1;
	return 3;
}

static void another_fault_is_the_programs(void **state)
{
	int status;

	(void)state;
	status = in_child(touch_something_else);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

/* No file, no guard. */
static int before_there_is_a_file(void)
{
	struct sigaction action;

	sigaction(SIGBUS, NULL, &action);
	return cuf_bus_guard_is_on() || action.sa_handler != SIG_DFL;
}

static void a_recording_in_memory_has_no_guard(void **state)
{
	(void)state;
	assert_int_equal(in_child(before_there_is_a_file), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_in_memory_has_no_guard),
		cmocka_unit_test(a_truncated_file_stops_recording),
		cmocka_unit_test(another_fault_is_the_programs),
	};

	fixture_start("size=4MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("bus_guard", tests, NULL, NULL);
}
