/* SPDX-License-Identifier: Apache-2.0 */
/* Calls what the recorder interposes, in any C library, and prints what each call did. */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
/* names that the recorder exports, and that this program does not have */
extern int cudaMalloc(void **, size_t) __attribute__((weak));
extern int cuMemFree_v2(unsigned long long) __attribute__((weak));

static void say(const char *what, long value)
{
	printf("%s %ld\n", what, value);
	fflush(stdout);
}

static void *churn(void *unused)
{
	for (unsigned i = 0; i < 2000; i++)
		free(realloc(malloc(i * 30 + 1), i * 50 + 1));
	return unused;
}

static void blocks(void)
{
	void *p = NULL;
	pthread_t thread;

	say("posix_memalign", posix_memalign(&p, 64, 1000) || (unsigned long)p % 64);
	free(p);
	p = aligned_alloc(128, 1280);
	say("aligned_alloc", p && !((unsigned long)p % 128));
	free(p);
	p = memalign(256, 100);
	say("memalign", p && !((unsigned long)p % 256));
	say("usable", malloc_usable_size(p) >= 100);
	free(p);
	p = calloc(1000, 1000);
	say("calloc", p && !*(char *)p);
	free(p);
	free(reallocarray(NULL, 10, 100));
	errno = 0;
	say("no malloc", !malloc((size_t)1 << 60) && errno == ENOMEM);
	say("no calloc", !calloc((size_t)-1, 16) && errno == ENOMEM);
	pthread_create(&thread, NULL, churn, NULL);
	churn(NULL);
	pthread_join(thread, NULL);
	p = malloc(300u << 20);
	memset(p, 1, 100u << 20);
	say("large", p != NULL);
	free(p);
}

static void maps(void)
{
	char *p = mmap(NULL, 64u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*p = 7;
	p = mremap(p, 64u << 20, 128u << 20, MREMAP_MAYMOVE);
	say("mremap", *p);
	say("mprotect", mprotect(p, 4096, PROT_READ));
	say("madvise", madvise(p + (1u << 20), 4096, MADV_DONTNEED));
	say("munmap", munmap(p, 128u << 20));
	say("no mmap", mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED);
}

static void names(void)
{
	void *self = dlopen(NULL, RTLD_NOW);

	say("weak", cudaMalloc != NULL || cuMemFree_v2 != NULL);
	say("printf", dlsym(self, "printf") != NULL);
	say("cudaMalloc", dlsym(self, "cudaMalloc") != NULL);
	say("default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != NULL);
	say("next", dlsym(RTLD_NEXT, "malloc") != NULL);
	say("dlopen", dlopen("libno_such_library.so", RTLD_NOW) != NULL);
	say("dlerror", dlerror() != NULL);
	say("dlclose", dlclose(self));
	say("getenv", getenv("NVTX_INJECTION64_PATH") != NULL);
}

static void on_signal(int number) { say("signal", number); }

static void *in_thread(void *argument)
{
	*(int *)argument += 1;
	return argument;
}

static void threads(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	void *returned = NULL;
	int value = 4;

	errno = 77;
	say("pthread_create", pthread_create(&thread, NULL, in_thread, &value));
	pthread_join(thread, &returned);
	say("in thread", value + (returned == &value) + errno);
	pthread_attr_init(&attributes); /* a stack that no machine has room for */
	pthread_attr_setstacksize(&attributes, (size_t)1 << 46);
	say("no thread", pthread_create(&thread, &attributes, in_thread, &value));
}

static int in_task(void *argument) { return *(int *)argument; }

static void processes(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	char *echo[] = { "echo", "spawned", NULL };
	struct sigaction action;
	int status = 0, result = 5;
	pid_t child;

	signal(SIGBUS, on_signal);
	raise(SIGBUS);
	say("sigaction", !sigaction(SIGBUS, NULL, &action) && action.sa_handler == on_signal);
	say("prctl", prctl(PR_SET_NAME, "calls", 0, 0, 0));
	child = vfork();
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(9);
	}
	waitpid(child, &status, 0);
	say("vfork", status);
	child = clone(in_task, stack + sizeof stack, SIGCHLD, &result);
	waitpid(child, &status, 0);
	say("clone", WEXITSTATUS(status));
	posix_spawn(&child, "/bin/echo", NULL, NULL, echo, environ);
	waitpid(child, &status, 0);
	say("system", system("exit 3"));
	child = fork();
	if (!child) {
		churn(NULL);
		exit(4);
	}
	waitpid(child, &status, 0);
	say("fork", WEXITSTATUS(status));
	child = fork();
	if (!child)
		abort();
	waitpid(child, &status, 0);
	say("abort", WTERMSIG(status));
}

static void at_exit(void) { say("at exit", 0); }

int main(int argc, char **argv)
{
	atexit(at_exit);
	blocks();
	maps();
	names();
	threads();
	processes();
	return argc > 1 ? atoi(argv[1]) : 0;
}
