/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a command leaves behind: none, however it ends. Each case is a process of its own. */
#include "analysis/cmd/cli/unfinished.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/cuflight.unfinished.XXXXXX";
static char path[256];

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return chdir("/") || rmdir(folder);
}

static void create(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		abort();
	close(fd);
}

static const char *absolute(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void add(const char *name)
{
	unfinished_add(absolute(name), UNFINISHED_FILE);
	create(name);
}

/* How a process ended that did this. */
static int end_of(void (*act)(void))
{
	int status;
	pid_t child = fork();

	if (!child) {
		act();
		_exit(77);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void exits(void)
{
	add("a");
	add("b");
	exit(3);
}

static void test_exit__removes_all(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(end_of(exits)), 3);
	assert_int_not_equal(access("a", F_OK), 0);
	assert_int_not_equal(access("b", F_OK), 0);
}

static int number;

static void is_killed(void)
{
	add("a");
	kill(getpid(), number);
	for (;;)
		pause();
}

/* It is removed, and the parent still sees the signal. */
static void test_signal__removes_all_and_ends_the_process(void **state)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGABRT, SIGXFSZ };

	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		int status;

		number = numbers[i];
		status = end_of(is_killed);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), number);
		assert_int_not_equal(access("a", F_OK), 0);
	}
}

static void ignores(void)
{
	signal(SIGHUP, SIG_IGN);
	add("a");
	raise(SIGHUP);
	_exit(access("a", F_OK));
}

/* As nohup does it. The end by _exit leaves the file, which is this test's to remove. */
static void test_ignored_signal__stays_ignored(void **state)
{
	(void)state;
	assert_int_equal(end_of(ignores), 0);
	assert_int_equal(unlink("a"), 0);
}

static void finishes(void)
{
	add("a");
	add("b");
	unfinished_forget(absolute("a"));
	unfinished_remove(absolute("b"), UNFINISHED_FILE);
	if (!access("b", F_OK))
		_exit(1);
	add("c");
	exit(0);
}

static void test_finished__stays(void **state)
{
	(void)state;
	assert_int_equal(end_of(finishes), 0);
	assert_int_equal(unlink("a"), 0);
	assert_int_not_equal(access("c", F_OK), 0);
}

static void has_a_child(void)
{
	pid_t child;
	int status;

	add("a");
	child = fork();
	if (!child)
		exit(0);
	waitpid(child, &status, 0);
	_exit(access("a", F_OK));
}

static void test_child__removes_nothing(void **state)
{
	(void)state;
	assert_int_equal(end_of(has_a_child), 0);
	assert_int_equal(unlink("a"), 0);
}

static void has_directories(void)
{
	char ours[] = "ours.XXXXXX", file[64];

	if (!unfinished_make_directory(ours) || mkdir("shared", 0700))
		abort();
	snprintf(file, sizeof file, "%s/x", ours);
	create(file);
	unfinished_add(absolute("shared"), UNFINISHED_EMPTY);
	create("shared/of-another");
	exit(0);
}

/* A directory of ours goes with its files, one that others use only when it is empty. */
static void test_directories(void **state)
{
	(void)state;
	assert_int_equal(end_of(has_directories), 0);
	assert_int_equal(unlink("shared/of-another"), 0);
	assert_int_equal(rmdir("shared"), 0);
	/* remove_folder fails where anything else is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit__removes_all),
		cmocka_unit_test(test_signal__removes_all_and_ends_the_process),
		cmocka_unit_test(test_ignored_signal__stays_ignored),
		cmocka_unit_test(test_finished__stays),
		cmocka_unit_test(test_child__removes_nothing),
		cmocka_unit_test(test_directories),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
