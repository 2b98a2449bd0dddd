/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of a recording: memory, the hand-over to a file under load, fork, and what a file survives.
 * Twice: also in a child whose kernel has no membarrier(2), where each entering thread must fence
 * itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/platform/sandbox.h"
#include "interpose/process/handover.h"
#include "interpose/process/thread.h"

static char directory[] = "/tmp/cuflight-lifecycle-XXXXXX";

static void test_lifecycle__nothing_on_disk_before_it_is_wanted(void **state)
{
	fixture_alloc(CUF_KIND_DEVICE, 0x1000, 100);
	assert_true(cuf_handover_is_pending());
	assert_int_equal(rmdir(directory), 0); /* it was empty */
	assert_int_equal(mkdir(directory, 0700), 0);
}

static bool no_membarrier;

static void test_lifecycle__entering_pays_for_a_fence_only_where_the_kernel_has_none(void **state)
{
	/* bits of commands; 1 << 3: PRIVATE_EXPEDITED */
	long known = syscall(SYS_membarrier, 0, 0, 0);
	if (no_membarrier)
		assert_true(known == -1 && errno == ENOSYS);
	assert_int_equal(cuf_gate_must_fence, known < 0 || !(known & 1 << 3));
}

enum { PAIRS_BEFORE_AND_AFTER = 2000 };
static int stop;
static uint64_t pairs[4];

static void *worker(void *argument)
{
	uintptr_t n = (uintptr_t)argument;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		fixture_alloc(CUF_KIND_DEVICE, (n + 1) << 32, 512);
		fixture_free(CUF_KIND_DEVICE, (n + 1) << 32);
		__atomic_fetch_add(&pairs[n], 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Until each thread did so many more; a minute is for machines under load. */
static void let_them_work(void)
{
	for (unsigned i = 0; i < 4; i++) {
		uint64_t wanted = __atomic_load_n(&pairs[i], __ATOMIC_RELAXED) +
		                  PAIRS_BEFORE_AND_AFTER;
		for (unsigned ms = 0; __atomic_load_n(&pairs[i], __ATOMIC_RELAXED) < wanted; ms++) {
			if (ms == 60000)
				fail_msg("thread %u stands still after %lu pairs", i,
				         (unsigned long)pairs[i]);
			usleep(1000);
		}
	}
}

static void test_lifecycle__hand_over_loses_nothing_under_load(void **state)
{
	pthread_t threads[4];
	uint64_t total = 0, before = cuf_recording.header->next_seq;
	struct stat st;
	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, worker, (void *)i);
	let_them_work();
	cuf_handover_to_file();
	let_them_work();
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		total += pairs[i];
	}
	assert_false(cuf_handover_is_pending());
	assert_int_equal(cuf_recording.header->lost[CUF_LOST_SWITCH], 0);
	assert_int_equal(cuf_recording.header->next_seq - before, 2 * total);
	assert_int_equal(cuf_recording.devices[0].live_bytes[CUF_KIND_DEVICE], 100);
	assert_int_equal(stat(cuf_recording.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal((uint64_t)st.st_size, cuf_recording.bytes);
	assert_true((uint64_t)st.st_blocks * 512 >= cuf_recording.bytes); /* every block reserved */
}

enum { OUT, IN, MAY_LEAVE };
static int insider_is, waiter_done;

static void *insider(void *none)
{
	struct cuf_thread_state *t = cuf_thread_enter();
	__atomic_store_n(&insider_is, IN, __ATOMIC_RELEASE);
	while (__atomic_load_n(&insider_is, __ATOMIC_ACQUIRE) != MAY_LEAVE)
		usleep(100);
	cuf_thread_leave(t);
	return none;
}

static void *waiter(void *none)
{
	cuf_handover_wait_for_threads();
	__atomic_store_n(&waiter_done, 1, __ATOMIC_RELEASE);
	return none;
}

static void test_lifecycle__waits_for_those_inside_but_not_for_ever(void **state)
{
	pthread_t inside, waits;
	cuf_handover_wait_for_threads(); /* nobody is */
	pthread_create(&inside, NULL, insider, NULL);
	while (__atomic_load_n(&insider_is, __ATOMIC_ACQUIRE) != IN)
		usleep(100);
	pthread_create(&waits, NULL, waiter, NULL);
	usleep(20000);
	assert_int_equal(__atomic_load_n(&waiter_done, __ATOMIC_ACQUIRE), cuf_sandbox_entered());
	__atomic_store_n(&insider_is, MAY_LEAVE, __ATOMIC_RELEASE);
	pthread_join(waits, NULL);
	pthread_join(inside, NULL);

	pthread_create(&inside, NULL, insider, NULL);
	while (__atomic_load_n(&insider_is, __ATOMIC_ACQUIRE) != IN)
		usleep(100);
	cuf_handover_wait_for_threads();
	assert_int_equal(__atomic_load_n(&insider_is, __ATOMIC_ACQUIRE), IN); /* it gave up */
	__atomic_store_n(&insider_is, MAY_LEAVE, __ATOMIC_RELEASE);
	pthread_join(inside, NULL);
}

static uint64_t field_of_file(const char *path, size_t offset)
{
	uint64_t value = 0;
	int fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &value, sizeof value, (off_t)offset), sizeof value);
	close(fd);
	return value;
}

static void test_lifecycle__a_forked_child_never_writes_into_its_parents_recording(void **state)
{
	uint64_t before = cuf_recording.header->next_seq;
	char parent_path[1024];
	int status;
	pid_t child;
	strcpy(parent_path, cuf_recording.path);
	child = fork();
	if (!child) {
		fixture_alloc(CUF_KIND_DEVICE, 0x9000, 300);
		fixture_free(CUF_KIND_DEVICE, 0x9000);
		cuf_handover_to_file();
		_exit(cuf_recording.header->next_seq == 2 &&
		                      cuf_recording.header->pid == (uint32_t)getpid() &&
		                      strcmp(cuf_recording.path, parent_path) &&
		                      cuf_recording.devices[0].live_bytes[CUF_KIND_DEVICE] == 0
		              ? 0
		              : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(cuf_recording.header->next_seq, before);
	assert_int_equal(field_of_file(parent_path, offsetof(struct cuf_header, next_seq)), before);
}

static void test_lifecycle__what_was_recorded_survives_sigkill(void **state)
{
	int pipes[2], status;
	char path[1024] = "";
	pid_t child;
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		for (unsigned i = 0; i < 1000; i++)
			fixture_alloc(CUF_KIND_DEVICE, 0x100000 + i * 512, 512);
		cuf_handover_to_file();
		for (unsigned i = 0; i < 1000; i++)
			fixture_alloc(CUF_KIND_DEVICE, 0x900000 + i * 512, 512);
		if (write(pipes[1], cuf_recording.path, strlen(cuf_recording.path)) > 0)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_true(read(pipes[0], path, sizeof path - 1) > 0);
	assert_int_equal(field_of_file(path, offsetof(struct cuf_header, next_seq)), 2000);
}

/* false: no filter can be set here. */
static bool refuse_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int run_group(const char *name)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lifecycle__nothing_on_disk_before_it_is_wanted),
		cmocka_unit_test(
			test_lifecycle__entering_pays_for_a_fence_only_where_the_kernel_has_none),
		cmocka_unit_test(test_lifecycle__hand_over_loses_nothing_under_load),
		cmocka_unit_test(test_lifecycle__waits_for_those_inside_but_not_for_ever),
		cmocka_unit_test(
			test_lifecycle__a_forked_child_never_writes_into_its_parents_recording),
		cmocka_unit_test(test_lifecycle__what_was_recorded_survives_sigkill),
	};
	char command[64];
	int failed;
	if (!mkdtemp(directory))
		return 1;
	fixture_start("size=8MiB:host=off", directory);
	failed = cmocka_run_group_tests_name(name, tests, NULL, NULL);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	return system(command) ? 1 : failed;
}

int main(void)
{
	int status = 1;
	pid_t child = fork();
	if (!child) {
		no_membarrier = refuse_membarrier();
		exit(no_membarrier ? run_group("lifecycle, no membarrier")
		                   : run_group("lifecycle, no filter"));
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		return 1;
	return run_group("lifecycle");
}
