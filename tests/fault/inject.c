/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject --syscall=NAME --nth=N --errno=NAME [--onward] [--syscall=...] [--report=FILE] --
 * COMMAND...
 *
 * Fails the N-th system call of one name that libcuflight.so makes, in COMMAND and all its
 * children. With --onward it fails that one and all after it. Passes the exit status of COMMAND
 * through. There may be four such faults; each begins with --syscall. The recorder makes its system
 * calls itself, so a preload cannot stand in between. A seccomp filter stops the process at every
 * call of that name, and this program checks whether the instruction is inside the library. FILE
 * gets a line "seen N failed N" for each fault. Exit status 125: a failure of this program.
 */
#include <errno.h>
#include <elf.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "/libcuflight.so"
#define OWN_FAILURE 125
#define FAULTS_MAX 4

static const struct {
	const char *name;
	int number;
} syscalls[] = {
	{ "openat", SYS_openat },
	{ "read", SYS_read },
	{ "write", SYS_write },
	{ "close", SYS_close },
	{ "mmap", SYS_mmap },
	{ "munmap", SYS_munmap },
	{ "mremap", SYS_mremap },
	{ "madvise", SYS_madvise },
	{ "fallocate", SYS_fallocate },
	{ "ftruncate", SYS_ftruncate },
	{ "mkdirat", SYS_mkdirat },
	{ "unlinkat", SYS_unlinkat },
	{ "readlinkat", SYS_readlinkat },
	{ "getcwd", SYS_getcwd },
	{ "uname", SYS_uname },
	{ "prctl", SYS_prctl },
	{ "prlimit64", SYS_prlimit64 },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "rt_sigprocmask", SYS_rt_sigprocmask },
	{ "nanosleep", SYS_nanosleep },
	{ "tgkill", SYS_tgkill },
	{ "membarrier", SYS_membarrier },
};

struct fault {
	int number, error;
	unsigned long nth, seen, failed;
	bool onward;
};

struct plan {
	struct fault faults[FAULTS_MAX];
	unsigned count;
	const char *report;
};

static void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(OWN_FAILURE);
}

static void usage(const char *why)
{
	fprintf(stderr,
	        "inject: %s\nusage: inject --syscall=NAME --nth=N --errno=NAME [--onward] [--syscall=...] [--report=FILE] -- COMMAND...\n",
	        why);
	exit(OWN_FAILURE);
}

static int syscall_number(const char *name)
{
	for (size_t i = 0; i < sizeof syscalls / sizeof *syscalls; i++)
		if (strcmp(syscalls[i].name, name) == 0)
			return syscalls[i].number;
	usage("no such system call in the list");
	return -1;
}

static int error_number(const char *name)
{
	for (int error = 1; error < 134; error++) {
		const char *known = strerrorname_np(error);
		if (known && strcmp(known, name) == 0)
			return error;
	}
	usage("no such error");
	return -1;
}

/* ---- the traced side ---- */

/* Stops for the tracer at every call of these numbers; everything else runs at full speed. */
static void filter_install(const struct plan *plan)
{
	struct sock_filter code[2 * FAULTS_MAX + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))
	};
	struct sock_fprog program = { 1, code };

	for (unsigned i = 0; i < plan->count; i++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
		                                                   (uint32_t)plan->faults[i].number,
		                                                   0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
		                                                   SECCOMP_RET_TRACE);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("cannot install the filter");
}

static void run_command(const struct plan *plan, int wait_fd, char **command)
{
	char go;

	if (read(wait_fd, &go, 1) != 1)
		_exit(OWN_FAILURE);
	close(wait_fd);
	filter_install(plan);
	execvp(command[0], command);
	die(command[0]);
}

/* ---- the tracing side ---- */

static bool in_library(pid_t tid, uint64_t address)
{
	char path[64], line[4352];
	bool inside = false;
	FILE *maps;

	snprintf(path, sizeof path, "/proc/%d/maps", (int)tid);
	maps = fopen(path, "r");
	while (maps && !inside && fgets(line, sizeof line, maps)) {
		unsigned long start, end;
		size_t length = strcspn(line, "\n");
		line[length] = 0;
		inside = sscanf(line, "%lx-%lx", &start, &end) == 2 && address >= start &&
		         address <= end && length > strlen(LIBRARY) &&
		         strcmp(line + length - strlen(LIBRARY), LIBRARY) == 0;
	}
	if (maps)
		fclose(maps);
	return inside;
}

/* In place of the system call: -error, at once. */
static void syscall_fail(pid_t tid, int error)
{
	struct user_regs_struct regs;
	struct iovec all = { &regs, sizeof regs };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &all))
		return;
#if defined __x86_64__
	regs.orig_rax = (unsigned long)-1;
	regs.rax = (unsigned long)-error;
#elif defined __aarch64__
	int none = -1;
	struct iovec number = { &none, sizeof none };
	ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &number);
	regs.regs[0] = (unsigned long)-error;
#else
#error "port syscall_fail to this machine"
#endif
	ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &all);
}

static void syscall_judge(struct plan *plan, pid_t tid)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0 ||
	    !in_library(tid, info.instruction_pointer))
		return;
	for (unsigned i = 0; i < plan->count; i++) {
		struct fault *fault = &plan->faults[i];
		if ((uint64_t)fault->number != info.seccomp.nr)
			continue;
		fault->seen++;
		if (fault->seen != fault->nth && !(fault->onward && fault->seen > fault->nth))
			continue;
		fault->failed++;
		syscall_fail(tid, fault->error);
	}
}

/* One stop of one thread: lets it go on as it would have without us. */
static void resume(struct plan *plan, pid_t tid, int status)
{
	int event = status >> 16, signal_number = WSTOPSIG(status);

	if (event == PTRACE_EVENT_STOP && (signal_number == SIGSTOP || signal_number == SIGTSTP ||
	                                   signal_number == SIGTTIN || signal_number == SIGTTOU)) {
		ptrace(PTRACE_LISTEN, tid, 0, 0);
		return;
	}
	if (event == PTRACE_EVENT_SECCOMP)
		syscall_judge(plan, tid);
	ptrace(PTRACE_CONT, tid, 0, event ? 0 : signal_number);
}

static int trace(struct plan *plan, pid_t command)
{
	int status, result = OWN_FAILURE;
	pid_t tid;

	while ((tid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		if (tid <= 0)
			continue;
		if (WIFSTOPPED(status))
			resume(plan, tid, status);
		else if (tid == command)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return result;
}

static void report(const struct plan *plan)
{
	FILE *file = plan->report ? fopen(plan->report, "w") : NULL;

	if (plan->report && !file)
		die(plan->report);
	if (!file)
		return;
	for (unsigned i = 0; i < plan->count; i++)
		fprintf(file, "seen %lu failed %lu\n", plan->faults[i].seen,
		        plan->faults[i].failed);
	fclose(file);
}

static struct plan parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "syscall", required_argument, NULL, 's' },
		{ "nth", required_argument, NULL, 'n' },
		{ "errno", required_argument, NULL, 'e' },
		{ "onward", no_argument, NULL, 'o' },
		{ "report", required_argument, NULL, 'r' },
		{ 0 },
	};
	struct plan plan = { 0 };
	struct fault *fault = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (option == 's') {
			if (plan.count == FAULTS_MAX)
				usage("too many faults");
			fault = &plan.faults[plan.count++];
			fault->number = syscall_number(optarg);
			continue;
		}
		if (!fault)
			usage("--syscall comes first");
		switch (option) {
		case 'n': fault->nth = strtoul(optarg, NULL, 10); break;
		case 'e': fault->error = error_number(optarg); break;
		case 'o': fault->onward = true; break;
		case 'r': plan.report = optarg; break;
		default: usage("unknown option");
		}
	}
	for (unsigned i = 0; i < plan.count; i++)
		if (!plan.faults[i].nth || !plan.faults[i].error)
			usage("--nth or --errno is missing");
	if (!plan.count || optind >= argc)
		usage("nothing to do");
	return plan;
}

int main(int argc, char **argv)
{
	struct plan plan = parse(argc, argv);
	long events = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
	              PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
	int ends[2], result;
	pid_t command;

	if (pipe(ends))
		die("pipe");
	command = fork();
	if (command < 0)
		die("fork");
	if (command == 0) {
		close(ends[1]);
		run_command(&plan, ends[0], argv + optind);
	}
	close(ends[0]);
	if (ptrace(PTRACE_SEIZE, command, 0, events))
		die("cannot trace");
	if (write(ends[1], "", 1) != 1)
		die("pipe");
	close(ends[1]);
	result = trace(&plan, command);
	report(&plan);
	return result;
}
