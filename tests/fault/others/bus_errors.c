/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program sees of SIGBUS: the action that it set, and the one that was there; how its
 * handler is called; how it ends without one. Each fact is a line. In the middle every recording in
 * the directory of argument 1 is truncated, so that the rest also holds behind a fault of ours.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static char *gone;               /* a page whose file was truncated */
static char alternate[64 << 10];
static volatile int calls;

static void allocate(void)
{
	for (int i = 0; i < 100; i++) {
		void *volatile block = malloc(100000 + (size_t)i);

		free(block);
	}
}

static void print_mask(const char *what, const sigset_t *mask)
{
	printf("%s", what);
	for (int number = 1; number < 65; number++)
		if (sigismember(mask, number) == 1)
			printf(" %d", number);
	puts("");
}

static void handler(int number, siginfo_t *info, void *context)
{
	char here;
	sigset_t mask;

	(void)context;
	calls++;
	printf("handler: signal %d, code %d, address %s, on the alternate stack: %d\n", number,
	       info->si_code, info->si_addr == gone ? "right" : "other",
	       &here >= alternate && &here < alternate + sizeof alternate);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	print_mask("handler: blocked", &mask);
	if (info->si_code > 0)
		siglongjmp(back, 1);
}

static void simple(int number) { printf("simple handler: signal %d\n", number); }

static void print_action(const char *when)
{
	struct sigaction now;

	sigaction(SIGBUS, NULL, &now);
	printf("%s: %s, flags %x, restorer %d\n", when,
	       now.sa_sigaction == handler     ? "handler"
	       : now.sa_handler == simple      ? "simple"
	       : now.sa_handler == SIG_DFL     ? "default"
	       : now.sa_handler == SIG_IGN     ? "ignore"
					       : "somebody else's",
	       (unsigned)now.sa_flags, now.sa_restorer != NULL);
	print_mask(when, &now.sa_mask);
}

/* The signal in all ways: a fault, and one that is sent. */
static void set_and_fault(int flags)
{
	struct sigaction action = { .sa_sigaction = handler, .sa_flags = flags | SA_SIGINFO }, old;

	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR1);
	printf("set: %d\n", sigaction(SIGBUS, &action, &old));
	printf("before: flags %x\n", (unsigned)old.sa_flags);
	print_action("set");
	allocate();
	if (!sigsetjmp(back, 1))
		gone[0] = 1;
	print_action("after a fault");
	sigaction(SIGBUS, &action, NULL);
	raise(SIGBUS);
	print_action("after a sent one");
}

enum way { FAULT, SENT, QUEUED, BLOCKED };

static void end_in_child(const char *what, enum way way)
{
	union sigval value = { .sival_int = 7 };
	sigset_t bus;
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		sigemptyset(&bus);
		sigaddset(&bus, SIGBUS);
		if (way == BLOCKED)
			sigprocmask(SIG_BLOCK, &bus, NULL);
		if (way == SENT)
			raise(SIGBUS);
		else if (way == QUEUED)
			sigqueue(getpid(), SIGBUS, value);
		else
			gone[0] = 1;
		_exit(9);
	}
	waitpid(child, &status, 0);
	printf("%s: ended by signal %d, status %d\n", what, WTERMSIG(status), WEXITSTATUS(status));
}

static void ends(void)
{
	void (*before)(int) = signal(SIGBUS, SIG_DFL);

	printf("signal: the one before was %s\n", before == SIG_DFL ? "default" : "a handler");
	print_action("signal");
	end_in_child("a fault", FAULT);
	end_in_child("a sent one", SENT);
	end_in_child("a queued one", QUEUED);
	end_in_child("a blocked fault", BLOCKED);
	before = signal(SIGBUS, simple);
	printf("signal: the one before was %s\n", before == SIG_DFL ? "default" : "a handler");
	print_action("signal");
	raise(SIGBUS);
	before = signal(SIGBUS, SIG_IGN);
	printf("signal: the one before was %s\n", before == simple ? "simple" : "another");
	print_action("signal");
	end_in_child("a sent one, ignored", SENT);
	end_in_child("a fault, ignored", FAULT);
	fflush(stdout);
	if (system("grep SigIgn /proc/self/status"))
		puts("no grep");
	signal(SIGBUS, SIG_DFL);
}

/* A child of vfork shares the memory, and not the actions. */
static void vfork_child(void)
{
	pid_t child;

	signal(SIGBUS, simple);
	child = vfork();
	if (!child) {
		signal(SIGBUS, SIG_DFL);
		_exit(3);
	}
	waitpid(child, NULL, 0);
	print_action("after vfork");
	raise(SIGBUS);
	signal(SIGBUS, SIG_DFL);
}

static void truncate_recordings(const char *folder)
{
	DIR *open_folder = opendir(folder);
	struct dirent *entry;
	char path[4096];

	while (open_folder && (entry = readdir(open_folder)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (strstr(entry->d_name, ".cuf") && truncate(path, 0))
			perror(path);
	}
	if (open_folder)
		closedir(open_folder);
}

static void everything(void)
{
	set_and_fault(0);
	set_and_fault(SA_NODEFER);
	set_and_fault(SA_RESETHAND);
	set_and_fault(SA_ONSTACK | SA_RESTART);
	ends();
	vfork_child();
}

int main(int argc, char **argv)
{
	const stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
	FILE *file = tmpfile();

	if (argc < 2 || !file || ftruncate(fileno(file), 4096))
		return 2;
	gone = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	if (ftruncate(fileno(file), 0))
		return 2;
	sigaltstack(&stack, NULL);
	allocate();
	print_action("at the start");
	everything();
	/* now with a handler in force, which must not see our fault */
	calls = 0;
	set_and_fault(SA_ONSTACK);
	calls = 0;
	truncate_recordings(argv[1]);
	allocate();
	printf("calls of the handler: %d\n", calls);
	everything();
	puts("done");
	return 0;
}
