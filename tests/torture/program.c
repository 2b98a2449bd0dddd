/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program SEED STEPS TRUTH PLUGIN: a random program. It makes STEPS random actions: memory,
 * threads, children, signals, plugins, refused calls, limits, descriptors, the GPU. Some programs
 * have threads that open and close libraries meanwhile (loaders.h). Then it ends in a random way.
 *
 * Contract. All choices follow from SEED, so two runs print the same lines and end with the same
 * status, unless somebody interferes. Addresses, times and process ids are never printed. Blocks
 * are filled with a pattern that is checked before they are freed; a wrong byte is printed. Before
 * it ends, each process appends to the file TRUTH what it allocated
 * (tests/victims/host/host_ways.h has the form) and what it holds on the device.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "interpose/abi/cuda_types.h"
#include "tests/torture/blocks.h"
#include "tests/torture/loaders.h"
#include "tests/victims/host/host_ways.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof *(array))
#define SLOTS 48
#define WORKERS 4
#define DEVICE_SLOTS 24
#define STACK_BYTES (256 << 10)
#define SPARE_BYTES (48u << 20)

extern char **environ;

static struct { CUdeviceptr address; size_t bytes; } device_slots[DEVICE_SLOTS];
static const char *truth_path, *plugin_path;
static bool device_open;
static bool no_loader; /* forked in the middle of another thread's dlopen or dlclose */
static struct random dice;

static struct {
	CUresult (*init)(unsigned int);
	CUresult (*retain)(CUcontext *, CUdevice);
	CUresult (*set)(CUcontext);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*free)(CUdeviceptr);
	CUresult (*info)(size_t *, size_t *);
} cu;

static struct slot slots[SLOTS];

static void act_memory(void)
{
	for (unsigned i = 0; i < 40; i++)
		blocks_churn(slots, SLOTS, &dice);
}

/* Each prints what C or POSIX promises, errno included. */
static void act_refused(void)
{
	volatile size_t huge = SIZE_MAX / 2 + 4096, many = SIZE_MAX / 8;
	void *untouched = &dice, *block = untouched, *got;
	int result;

	errno = 0;
	got = malloc(huge);
	line("malloc(huge) %s, errno %d", got ? "served" : "refused", errno);
	errno = 0;
	got = calloc(many, 16);
	line("calloc(many, 16) %s, errno %d", got ? "served" : "refused", errno);
	errno = 0;
	got = reallocarray(NULL, many, 16);
	line("reallocarray(many, 16) %s, errno %d", got ? "served" : "refused", errno);
	errno = 5;
	result = posix_memalign(&block, 24, 100);
	line("posix_memalign(24) %d, errno %d, output %s", result, errno,
	     block == untouched ? "kept" : "changed");
	if (slots[0].block) {
		errno = 0;
		got = realloc(slots[0].block, huge);
		/* logged before the call, and undone: it was refused */
		counts[slots[0].size].frees++;
		counts[slots[0].size].allocs++;
		line("realloc(huge) %s, errno %d", got ? "served" : "refused", errno);
		block_check(&slots[0]);
	}
}

static void act_maps(void)
{
	size_t bytes = (1 + below(&dice, 64)) * 65536;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *moved;

	if (map == MAP_FAILED) {
		line("mmap failed, errno %d", errno);
		return;
	}
	memset(map, 7, bytes);
	moved = mremap(map, bytes, bytes * 2, MREMAP_MAYMOVE);
	line("mremap %s", moved == MAP_FAILED ? "failed" : "moved");
	map = moved == MAP_FAILED ? map : moved;
	line("madvise %d, byte %d", madvise(map, bytes, MADV_DONTNEED), map[0]);
	errno = 0;
	line("munmap %d", munmap(map, moved == MAP_FAILED ? bytes : bytes * 2));
	errno = 0;
	map = mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	line("mmap of nothing %s, errno %d", map == MAP_FAILED ? "failed" : "served", errno);
}

/* ---- threads ---- */

static pthread_key_t late_key;

/* Runs after the thread's own destructors of thread-local objects. */
static void late(void *value)
{
	counts[0].frees++;
	free(value);
	pair(SIZE(1));
	counts[1].allocs++;
	counts[1].frees++;
}

static void *work(void *seed)
{
	struct random random = { .state = (uintptr_t)seed };
	struct slot own[8] = { 0 };

	for (unsigned i = 0; i < 60; i++)
		blocks_churn(own, ARRAY_SIZE(own), &random);
	for (unsigned i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i].block)
			block_release(&own[i]);
	counts[0].allocs++;
	pthread_setspecific(late_key, keep(SIZE(0)));
	return NULL;
}

static void act_threads(void)
{
	pthread_t threads[WORKERS];
	pthread_attr_t attributes;
	unsigned started = 1 + below(&dice, WORKERS);

	pthread_attr_init(&attributes);
	if (below(&dice, 2))
		pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (unsigned i = 0; i < started; i++)
		if (pthread_create(&threads[i], &attributes, work, (void *)(uintptr_t)next(&dice)))
			line("no thread");
	act_memory();
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_attr_destroy(&attributes);
	line("%u threads ended", started);
}

/* ---- signals and stacks ---- */

static sigjmp_buf back;

static void on_signal(int number)
{
	char byte = (char)number;

	(void)!write(-1, &byte, 1); /* fails: errno must survive what the handler does */
}

static void on_leave(int number) { siglongjmp(back, number); }

/* A synchronous signal breaks into nothing, so this handler may allocate. */
static void on_raise(int number)
{
	counts[2].allocs++;
	counts[2].frees++;
	pair(SIZE(2));
}

static void act_signals(void)
{
	static char stack[64 << 10];
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack };
	stack_t none = { .ss_flags = SS_DISABLE };
	struct sigaction action = { .sa_handler = on_raise, .sa_flags = SA_ONSTACK };
	int left;

	sigaltstack(&alternate, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	action.sa_handler = on_leave;
	sigaction(SIGUSR2, &action, NULL);
	left = sigsetjmp(back, 1);
	if (!left)
		raise(SIGUSR2);
	line("left by siglongjmp with %d", left);
	action.sa_handler = on_signal;
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	for (unsigned i = 0; i < 20; i++) {
		struct itimerval soon = { .it_value = { .tv_usec = 50 } };
		setitimer(ITIMER_REAL, &soon, NULL);
		blocks_churn(slots, SLOTS, &dice);
	}
	signal(SIGALRM, SIG_IGN);
	sigaltstack(&none, NULL);
}

static ucontext_t fiber, outside;

static void in_fiber(void)
{
	act_memory();
	swapcontext(&fiber, &outside);
	act_memory();
}

static void act_fiber(void)
{
	char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	getcontext(&fiber);
	fiber.uc_stack.ss_sp = stack;
	fiber.uc_stack.ss_size = STACK_BYTES;
	fiber.uc_link = &outside;
	makecontext(&fiber, in_fiber, 0);
	swapcontext(&outside, &fiber);
	swapcontext(&outside, &fiber);
	munmap(stack, STACK_BYTES);
	line("fiber ended");
}

/* ---- libraries ---- */

static void act_plugin(void)
{
	int mode = below(&dice, 2) ? RTLD_NOW : RTLD_LAZY | RTLD_GLOBAL;
	void *plugin, *unknown, *missing;
	int (*call)(size_t);

	if (no_loader)
		return;
	plugin = dlopen(plugin_path, mode);
	call = plugin ? (int (*)(size_t))dlsym(plugin, "plugin_pair") : NULL;
	dlerror();
	unknown = plugin ? dlsym(plugin, "no_such_name") : NULL;
	line("plugin %s, unknown name %s", plugin ? "opened" : "not opened",
	     dlerror() && !unknown ? "refused" : "found");
	if (call) {
		counts[3].allocs++;
		counts[3].frees++;
		line("plugin_pair %d", call(SIZE(3)));
	}
	missing = dlopen("no-such-library.so", RTLD_NOW);
	line("missing library: %s", missing ? "opened" : dlerror());
	if (plugin)
		line("dlclose %d", dlclose(plugin));
	line("RTLD_NEXT strlen %s", dlsym(RTLD_NEXT, "strlen") ? "found" : "missing");
}

static void act_loaders(void)
{
	if (!no_loader)
		loaders_start(plugin_path);
}

/* ---- the GPU ---- */

static bool open_device(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUcontext context;

	if (!driver)
		return false;
	cu.init = (CUresult(*)(unsigned int))dlsym(driver, "cuInit");
	cu.retain = (CUresult(*)(CUcontext *, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
	cu.set = (CUresult(*)(CUcontext))dlsym(driver, "cuCtxSetCurrent");
	cu.alloc = (CUresult(*)(CUdeviceptr *, size_t))dlsym(driver, "cuMemAlloc_v2");
	cu.free = (CUresult(*)(CUdeviceptr))dlsym(driver, "cuMemFree_v2");
	cu.info = (CUresult(*)(size_t *, size_t *))dlsym(driver, "cuMemGetInfo_v2");
	return !cu.init(0) && !cu.retain(&context, 0) && !cu.set(context);
}

static void act_device(void)
{
	CUdeviceptr address = 0x1234;
	size_t free_bytes = 0, total_bytes = 0;

	if (fork_depth)
		return; /* CUDA does not work in a forked child */
	if (!device_open)
		device_open = open_device();
	if (!device_open) {
		line("no device");
		return;
	}
	for (unsigned i = 0; i < 20; i++) {
		unsigned which = below(&dice, DEVICE_SLOTS);
		size_t bytes = (1 + below(&dice, 4000)) * 1000;
		if (device_slots[which].address) {
			line("cuMemFree %d", cu.free(device_slots[which].address));
			device_slots[which].address = 0;
		} else if (!cu.alloc(&device_slots[which].address, bytes)) {
			device_slots[which].bytes = bytes;
		}
	}
	line("cuMemAlloc of too much %d, output %llx", cu.alloc(&address, (size_t)1 << 50),
	     (unsigned long long)address);
	line("cuMemFree of nothing known %d", cu.free(0x7777000));
	line("cuMemGetInfo %d", cu.info(&free_bytes, &total_bytes));
}

/* ---- descriptors, limits, the environment ---- */

static void print_descriptors(void)
{
	char text[200] = "";
	size_t length = 0;

	for (int fd = 0; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			length += snprintf(text + length, sizeof text - length, " %d", fd);
	line("descriptors%s", text);
}

static void act_descriptors(void)
{
	int pair_of[2], copy;

	if (no_loader)
		return; /* it has those that another thread had open */
	loaders_pause();
	print_descriptors();
	if (pipe(pair_of)) {
		loaders_go_on();
		return;
	}
	copy = dup(pair_of[0]);
	line("pipe %d %d, dup %d", pair_of[0], pair_of[1], copy);
	act_memory();
	close(pair_of[0]);
	close(pair_of[1]);
	close(copy);
	print_descriptors();
	loaders_go_on();
}

/* The process's addresses, in bytes. */
static size_t mapped_bytes(void)
{
	char text[32] = "";
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
		line("no statm");
	close(fd);
	return strtoull(text, NULL, 10) * 4096;
}

/* Lower limits for a while: what the recorder does meanwhile must not need more. */
static void act_limits(void)
{
	static const int which[] = { RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_CORE };
	int limit = which[below(&dice, ARRAY_SIZE(which))];
	struct rlimit before, low;

	getrlimit(limit, &before);
	low = before;
	low.rlim_cur = limit == RLIMIT_NOFILE ? 8 : 4096;
	setrlimit(limit, &low);
	act_memory();
	getrlimit(limit, &low);
	line("limit %d is %llu", limit, (unsigned long long)low.rlim_cur);
	setrlimit(limit, &before);
}

/* Room for what the program asks for, and none for another recording. */
static void act_address_space(void)
{
	int limit = below(&dice, 2) ? RLIMIT_AS : RLIMIT_DATA;
	struct rlimit before, low;

	getrlimit(limit, &before);
	low = before;
	low.rlim_cur = mapped_bytes() + SPARE_BYTES;
	setrlimit(limit, &low);
	act_memory();
	act_maps();
	act_refused();
	setrlimit(limit, &before);
	line("limited to %zu more bytes", (size_t)SPARE_BYTES);
}

static void act_environment(void)
{
	setenv("TORTURE_VARIABLE", "value", 1);
	line("variable %s", getenv("TORTURE_VARIABLE"));
	unsetenv("TORTURE_VARIABLE");
	line("umask %o", umask(027));
	umask(022);
	line("chdir %d", chdir("/"));
}

/* ---- children and the end ---- */

static void write_truth(void)
{
	char text[4096];
	size_t length = 0;
	uint64_t device_bytes = 0;
	int fd;

	length += snprintf(text, sizeof text, "process pid %d\n", (int)getpid());
	for (unsigned i = 0; i < SIZES; i++)
		length += snprintf(text + length, sizeof text - length,
				   "size %zu allocs %u frees %u recursion -1\n", SIZE(i),
				   counts[i].allocs, counts[i].frees);
	for (unsigned i = 0; i < DEVICE_SLOTS; i++)
		device_bytes += device_slots[i].address ? device_slots[i].bytes : 0;
	length += snprintf(text + length, sizeof text - length, "device %llu\n",
			   (unsigned long long)device_bytes);
	fd = open(truth_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, text, length) != (ssize_t)length)
		line("no truth");
	close(fd);
}

/* The loader takes the lock of the exit handlers, and exit the loader's. */
__attribute__((noreturn)) static void end_somehow(void)
{
	struct rlimit none = { 0, 0 };
	unsigned way = below(&dice, 9);

	setrlimit(RLIMIT_CORE, &none);
	line("ends in way %u", way);
	if (way != 5) /* after exec the process has a second recording */
		write_truth();
	switch (way) {
	case 0:
		_exit(4);
	case 1:
		if (no_loader)
			_exit(5);
		quick_exit(5);
	case 2:
		abort();
	case 3:
		kill(getpid(), SIGKILL);
		break;
	case 4:
		raise(SIGTERM);
		break;
	case 5:
		execl("/bin/true", "true", (char *)NULL);
		break;
	case 6:
		execl("/no/such/program", "program", (char *)NULL);
		break;
	default:
		break;
	}
	if (no_loader)
		_exit(6);
	exit(6);
}

static void act_steps(unsigned steps);

static void print_status(const char *what, int status)
{
	if (WIFSIGNALED(status))
		line("%s ended by signal %d", what, WTERMSIG(status));
	else
		line("%s ended with %d", what, WEXITSTATUS(status));
}

/* The child's blocks are its copies of ours: it keeps them, and its truth begins anew. */
static void act_fork(void)
{
	uint64_t seed = next(&dice);
	bool pause = below(&dice, 2);
	int status = 0;
	pid_t child;

	if (fork_depth == 2)
		return;
	if (pause)
		loaders_pause();
	child = fork();
	if (pause && child)
		loaders_go_on();
	if (child < 0) {
		line("fork failed");
		return;
	}
	if (!child) {
		no_loader |= loaders_run() && !pause;
		loaders_forget();
		fork_depth++;
		dice.state = seed;
		memset(counts, 0, sizeof counts);
		memset(slots, 0, sizeof slots);
		memset(device_slots, 0, sizeof device_slots);
		act_steps(3);
		end_somehow();
	}
	waitpid(child, &status, 0);
	print_status("child", status);
}

static void act_spawn(void)
{
	char *arguments[] = { "sh", "-c", "exit 9", NULL };
	int status = 0, failed;
	pid_t child;
	FILE *pipe_of;
	char word[16] = "";

	failed = posix_spawn(&child, below(&dice, 4) ? "/bin/sh" : "/no/such/program", NULL, NULL,
			     arguments, environ);
	if (!failed)
		waitpid(child, &status, 0);
	line("posix_spawn %d, status %d", failed, status);
	child = vfork();
	if (!child) {
		execl("/no/such/program", "program", (char *)NULL);
		_exit(11);
	}
	waitpid(child, &status, 0);
	print_status("vfork", status);
	line("system %d", system("exit 12"));
	pipe_of = popen("echo word", "r");
	if (pipe_of) {
		if (!fgets(word, sizeof word, pipe_of))
			word[0] = 0;
		line("popen %.4s, pclose %d", word, pclose(pipe_of));
	}
}

static const struct action { unsigned weight; void (*act)(void); } actions[] = {
	{ 8, act_memory }, { 2, act_refused }, { 2, act_maps }, { 3, act_threads },
	{ 2, act_signals }, { 2, act_fiber }, { 3, act_plugin }, { 1, act_loaders },
	{ 4, act_device }, { 2, act_descriptors }, { 2, act_limits }, { 2, act_address_space },
	{ 1, act_environment }, { 3, act_fork }, { 2, act_spawn },
};

static void act_steps(unsigned steps)
{
	unsigned total = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(actions); i++)
		total += actions[i].weight;
	while (steps--) {
		unsigned drawn = below(&dice, total), which = 0;
		while (drawn >= actions[which].weight)
			drawn -= actions[which++].weight;
		actions[which].act();
	}
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: program SEED STEPS TRUTH PLUGIN\n");
		return 2;
	}
	dice.state = strtoull(argv[1], NULL, 10) * 0x2545f4914f6cdd1d + 1;
	truth_path = argv[3];
	plugin_path = argv[4];
	pthread_key_create(&late_key, late);
	if (below(&dice, 3) == 0)
		loaders_start(plugin_path);
	act_steps(atoi(argv[2]));
	end_somehow();
}
