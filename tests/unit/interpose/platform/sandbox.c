/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child closes its copies of the recorder's open files, and nothing else. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/platform/sandbox.h"

static int status_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void test_sandbox__a_forked_child_closes_its_copies(void **state)
{
	int fd = (int)cuf_open("/proc/self/status", O_RDONLY, 0);
	pid_t child;

	assert_true(fd >= 0);
	child = fork();
	if (!child) {
		cuf_close_copies();
		_exit(is_open(fd));
	}
	assert_int_equal(status_of(child), 0);
	assert_true(is_open(fd));
	cuf_close(fd);
	assert_false(is_open(fd));
}

static void test_sandbox__a_file_of_the_program_under_that_number_stays(void **state)
{
	int fd = (int)cuf_open("/proc/self/status", O_RDONLY, 0), own = open("/dev/null", O_RDONLY);
	pid_t child = fork();

	if (!child) {
		dup2(own, fd);
		cuf_close_copies();
		_exit(!is_open(fd));
	}
	assert_int_equal(status_of(child), 0);
	cuf_close(fd);
	close(own);
}

static void test_sandbox__what_was_closed_is_forgotten(void **state)
{
	int fd = (int)cuf_open("/proc/self/status", O_RDONLY, 0), own;
	pid_t child;

	cuf_close(fd);
	own = open("/proc/self/status", O_RDONLY);
	assert_int_equal(own, fd);
	child = fork();
	if (!child) {
		cuf_close_copies();
		_exit(!is_open(own));
	}
	assert_int_equal(status_of(child), 0);
	close(own);
}

static void test_sandbox__more_files_than_the_table_has_room_for(void **state)
{
	int files[20];

	for (unsigned i = 0; i < 20; i++)
		assert_true((files[i] = (int)cuf_open("/dev/null", O_RDONLY, 0)) >= 0);
	for (unsigned i = 0; i < 20; i++)
		cuf_close(files[i]);
	for (unsigned i = 0; i < 20; i++)
		assert_false(is_open(files[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sandbox__a_forked_child_closes_its_copies),
		cmocka_unit_test(test_sandbox__a_file_of_the_program_under_that_number_stays),
		cmocka_unit_test(test_sandbox__what_was_closed_is_forgotten),
		cmocka_unit_test(test_sandbox__more_files_than_the_table_has_room_for),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
