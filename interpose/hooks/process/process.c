/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the end of the process begins. Exit handlers free in bulk what the program held. So the
 * moment before them is marked. What the driver reports is kept at earlier calls of the program,
 * because a driver may not answer here: its lock may be held by the code that a handler
 * interrupted.
 *
 * glibc calls some of these functions inside itself: execl and its kin, the abort of a failed
 * assert or of malloc's checks. Those calls, and raw system calls, are not seen. Such a recording
 * ends like that of a killed process.
 */

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include "interpose/platform/sys.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/framework/framework.h"
#include "interpose/hooks/loader/real.h"
#include "interpose/hooks/malloc/allocator.h"

/* Programs may end before our constructor ran. */
static void need(void *const *slot)
{
	if (__builtin_expect(!cuf_slot_load(slot), 0))
		cuf_real_resolve();
}
#define NEED(name) need((void **)&cuf_real.name)

/* For a hook that must not return and whose real function is missing. */
__attribute__((noreturn)) static void leave(int status)
{
	for (;;)
		cuf_sys(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

/* ---- the last words ---- */

/* For ends at which the process is in order. Nothing is asked that may not answer: no driver, no
 * lock. A process that ends within a page of its limit must not need that page for us. */
static void describe_end(void)
{
	const struct cuf_recorder_status status = cuf_recorder_status();
	if (!status.is_on_disk || status.room_bytes < CUF_END_ROOM_BYTES)
		return;
	cuf_framework_check_unseen();
	cuf_allocator_read_at_end();
}

/* in_order: not at _exit and abort, where the process may be in any state. */
static void record_end(unsigned kind, int status, bool in_order)
{
	if (!cuf_process_is_recorded(false)) /* a vfork child, or a forked one without a */
					     /* recording */
		return;
	cuf_process_end(kind, (uint64_t)(unsigned)status);
	if (in_order)
		describe_end();
}

/* ---- return from main ---- */

static cuf_program_fn program_main;

/* main is wrapped because a return from it runs exit handlers inside glibc, past our exit. */
static int watched_main(int argc, char **argv, char **environment)
{
	int status = program_main(argc, argv, environment);
	record_end(CUF_END_EXIT, status & 0xff, true);
	return status;
}

/* The C start code calls this before main. 127 is what a shell reports for a program that cannot
 * start. */
int cuf_hook___libc_start_main(cuf_program_fn program, int argc, char **argv, cuf_void_fn init,
			       cuf_void_fn fini, cuf_void_fn rtld_fini, void *stack_end)
{
	NEED(__libc_start_main);
	if (!cuf_real.__libc_start_main)
		leave(127);
	program_main = program;
	return cuf_real.__libc_start_main(watched_main, argc, argv, init, fini, rtld_fini,
					  stack_end);
}

/* ---- exits ---- */

/* Exit handlers run in the real function, after the end is marked. */
void cuf_hook_exit(int status)
{
	record_end(CUF_END_EXIT, status & 0xff, true);
	NEED(exit);
	if (cuf_real.exit)
		cuf_real.exit(status);
	leave(status);
}

/* Runs other handlers than exit, and no destructors. */
void cuf_hook_quick_exit(int status)
{
	record_end(CUF_END_EXIT, status & 0xff, true);
	NEED(quick_exit);
	if (cuf_real.quick_exit)
		cuf_real.quick_exit(status);
	leave(status);
}

/* No handlers run. Threads may hold any lock, so nothing is queried. */
void cuf_hook__exit(int status)
{
	record_end(CUF_END_FAST, status & 0xff, false);
	NEED(_exit);
	if (cuf_real._exit)
		cuf_real._exit(status);
	leave(status);
}

/* The same function under its C99 name. */
void cuf_hook__Exit(int status)
{
	record_end(CUF_END_FAST, status & 0xff, false);
	NEED(_Exit);
	if (cuf_real._Exit)
		cuf_real._Exit(status);
	leave(status);
}

/* The signal may be handled by the program, and abort need not return from there. */
void cuf_hook_abort(void)
{
	record_end(CUF_END_ABORT, SIGABRT, false);
	NEED(abort);
	if (cuf_real.abort)
		cuf_real.abort();
	leave(128 + SIGABRT);
}

/* ---- exec: the image is replaced, unless the call fails ---- */

/* True: marked. A vfork child calls exec in its parent's memory, and must not mark it. The mark
 * comes before the call, since a successful exec does not return. */
static bool mark_exec(void)
{
	if (!cuf_process_is_recorded(false))
		return false;
	cuf_process_end(CUF_END_EXEC, 0);
	return true;
}

/* Only a failed exec returns. */
static int exec_failed(bool marked, int result)
{
	if (marked)
		cuf_process_end(CUF_END_NONE, 0);
	return result;
}

/* The real function is missing: an old libc. */
static int no_such_function(void)
{
	errno = ENOSYS;
	return -1;
}

#define EXEC(name, ...) \
	do { \
		bool marked; \
		NEED(name); \
		if (!cuf_real.name) \
			return no_such_function(); \
		marked = mark_exec(); \
		return exec_failed(marked, cuf_real.name(__VA_ARGS__)); \
	} while (0)

/* posix_spawn, system and popen do not pass here: their child replaces its image inside libc. */
int cuf_hook_execve(const char *path, char *const *argv, char *const *envp)
{
	EXEC(execve, path, argv, envp);
}

int cuf_hook_execv(const char *path, char *const *argv) { EXEC(execv, path, argv); }
int cuf_hook_execvp(const char *file, char *const *argv) { EXEC(execvp, file, argv); }

int cuf_hook_execvpe(const char *file, char *const *argv, char *const *envp)
{
	EXEC(execvpe, file, argv, envp);
}

int cuf_hook_fexecve(int fd, char *const *argv, char *const *envp)
{
	EXEC(fexecve, fd, argv, envp);
}

int cuf_hook_execveat(int dirfd, const char *path, char *const *argv, char *const *envp, int flags)
{
	EXEC(execveat, dirfd, path, argv, envp, flags);
}
