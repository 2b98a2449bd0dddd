/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that locks itself in and goes on. Argument 1: "contained" installs a container's filter
 * first, which allows everything, and runs itself anew. Argument 2: by which call the program's own
 * filter is enabled, which kills for every file that is opened: "prctl" or "seccomp". Argument 3:
 * "in_vfork" has a child of vfork do it, so the program itself stays free; "in_fork" does all in a
 * forked child.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int install(const char *way, struct sock_filter *filter, unsigned count)
{
	struct sock_fprog program = { (unsigned short)count, filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	if (!strcmp(way, "seccomp"))
		return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int allow_all(void)
{
	struct sock_filter all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };

	/* a container's runtime is another program */
	struct sock_fprog program = { 1, all };

	syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int kill_at_open(const char *way)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};

	return install(way, filter, sizeof filter / sizeof *filter);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	if (!strcmp(argv[1], "contained")) {
		char *again[] = { argv[0], "free", argv[2], argv[3], NULL };

		if (allow_all())
			return 2;
		execv(argv[0], again);
		return 2;
	}
	if (!strcmp(argv[3], "in_fork")) {
		pid_t child = fork();
		int status;

		if (child) {
			waitpid(child, &status, 0);
			return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
		}
	}
	errno = 0;
	if (prctl(-1, 0, 0, 0, 0) != -1 || errno != EINVAL)
		return 3;
	if (!strcmp(argv[3], "in_vfork")) {
		pid_t child = vfork();

		if (!child)
			_exit(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) != -1);
		waitpid(child, NULL, 0);
	} else if (kill_at_open(argv[2])) {
		return 2;
	}
	for (int i = 0; i < 80; i++)
		memset(malloc(1 << 20), 1, 1 << 20);
	printf("seccomp %d\n", prctl(PR_GET_SECCOMP));
	printf("refused: %d\n", malloc((size_t)-1 / 4) == NULL);
	return 0;
}
