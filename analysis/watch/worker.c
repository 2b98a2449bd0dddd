/* SPDX-License-Identifier: Apache-2.0 */
/* A forked process, a page of questions and answers that both see, and a socket for "go" and
 * "done". */
#include "analysis/base/clock.h"
#include "analysis/watch/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct worker_desk {
	char path[PATH_MAX];
	uint64_t counted_to;
	struct pass pass;
};

/* ---- in the process ---- */

/* What RLIMIT_DATA counts, and what is resident. */
static uint64_t data_bytes(uint64_t *resident_bytes)
{
	unsigned long long resident = 0, data = 0, page = (unsigned long long)sysconf(_SC_PAGESIZE);
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%*u %llu %*u %*u %*u %llu", &resident, &data) != 2)
		resident = data = 0;
	if (file)
		fclose(file);
	*resident_bytes = resident * page;
	return data * page;
}

static bool has_grown(uint64_t memory_bytes)
{
	uint64_t resident_bytes;

	data_bytes(&resident_bytes);
	return resident_bytes > memory_bytes / 2;
}

/* The owner's descriptors are connections of others, and it reports what goes wrong. Its
 * signals are not ours. Its memory counts as ours, but takes no place until we write to it. */
static void be_a_worker(int socket, pid_t owner, uint64_t memory_bytes)
{
	uint64_t resident_bytes, all_bytes = memory_bytes + data_bytes(&resident_bytes);
	struct rlimit limit = { all_bytes, all_bytes };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != owner)
		_exit(0);
	prctl(PR_SET_NAME, "cuflight-pass");
	dup2(null, 2);
	dup2(socket, 3);
	syscall(SYS_close_range, 4, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN); /* a terminal sends it to both: the owner decides */
	signal(SIGTERM, SIG_DFL);
	setrlimit(RLIMIT_DATA, &limit);
	setpriority(PRIO_PROCESS, 0, 10);
}

static _Noreturn void work(struct worker_desk *desk, const struct worker *worker)
{
	struct pass_maker *maker = pass_maker_new(worker->warm_up_s);
	char go;

	while (read(3, &go, 1) == 1) {
		pass_make(maker, &desk->pass, desk->path, desk->counted_to);
		if (write(3, &go, 1) != 1)
			break;
		if (!has_grown(worker->memory_bytes))
			continue;
		pass_maker_trim(maker);
#ifdef __GLIBC__ /* musl keeps less */
		malloc_trim(0);
#endif
	}
	_exit(0);
}

/* ---- the owner ---- */

int worker_init(struct worker *worker, uint64_t memory_bytes, double warm_up_s)
{
	void *desk = mmap(NULL, sizeof *worker->desk, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	*worker = (struct worker){ .memory_bytes = memory_bytes,
				    .warm_up_s = warm_up_s, .socket = -1 };
	if (desk == MAP_FAILED)
		return -1;
	worker->desk = desk;
	return 0;
}

/* Returns how it ended, as waitpid. */
static int end_process(struct worker *worker)
{
	int status = 0;

	if (worker->pid <= 0)
		return 0;
	kill(worker->pid, SIGKILL);
	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(worker->socket);
	worker->socket = -1;
	worker->pid = 0;
	return status;
}

void worker_fini(struct worker *worker)
{
	end_process(worker);
	if (worker->desk)
		munmap(worker->desk, sizeof *worker->desk);
}

static bool start_process(struct worker *worker)
{
	pid_t owner = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return false;
	fflush(NULL);
	worker->pid = fork();
	if (!worker->pid) {
		be_a_worker(pair[1], owner, worker->memory_bytes);
		work(worker->desk, worker);
	}
	close(pair[1]);
	if (worker->pid < 0) {
		close(pair[0]);
		return false;
	}
	worker->socket = pair[0];
	return true;
}

/* It ends by itself between two passes. */
static bool is_gone(const struct worker *worker)
{
	char byte;

	return worker->socket >= 0 &&
	       !recv(worker->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
}

bool worker_ask(struct worker *worker, const char *path, uint64_t counted_to)
{
	if (worker->is_busy)
		return false;
	if (is_gone(worker))
		end_process(worker);
	if (worker->socket < 0 && !start_process(worker))
		return false;
	snprintf(worker->desk->path, sizeof worker->desk->path, "%s", path);
	worker->desk->counted_to = counted_to;
	worker->asked_ns = clock_ns(CLOCK_MONOTONIC);
	worker->is_busy = send(worker->socket, "", 1, MSG_NOSIGNAL) == 1;
	return worker->is_busy;
}

/* The process is gone, or too slow: it is started anew for the next question. */
static void take_failure(struct worker *worker, struct pass *out, const char *why)
{
	int status = end_process(worker);

	*out = (struct pass){ .counted_to = worker->desk->counted_to, .per_request_bytes = NAN,
			      .cost_ns = clock_ns(CLOCK_MONOTONIC) - worker->asked_ns };
	if (why)
		snprintf(out->error, sizeof out->error, "%s", why);
	else if (WIFEXITED(status))
		snprintf(out->error, sizeof out->error,
			 "it needs more memory than %llu MiB (--memory)",
			 (unsigned long long)worker->memory_bytes >> 20);
	else
		snprintf(out->error, sizeof out->error, "the process that read it was ended by "
			 "signal %d", WTERMSIG(status));
}

bool worker_take(struct worker *worker, struct pass *out)
{
	ssize_t got;
	char done;

	if (!worker->is_busy)
		return false;
	got = recv(worker->socket, &done, 1, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (clock_ns(CLOCK_MONOTONIC) - worker->asked_ns < WORKER_SECONDS * 1000000000ull)
			return false;
		take_failure(worker, out, "it takes more than two minutes");
	} else if (got == 1) {
		*out = worker->desk->pass;
	} else {
		take_failure(worker, out, NULL); /* it is ending: SIGKILL does not change how */
	}
	worker->is_busy = false;
	return true;
}
