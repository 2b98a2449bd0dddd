/* SPDX-License-Identifier: Apache-2.0 */
/* Fork, limits, exec; the result is in memory. */
#include "analysis/cmd/serve/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/base/xalloc.h"
#include "analysis/watch/watch.h"

/* The words in one text; no word has a newline that the other could not have. */
static char *key_of_words(char *const *words)
{
	size_t bytes = 1, used = 0;
	char *key;

	for (size_t i = 0; words[i]; i++)
		bytes += strlen(words[i]) + 1;
	key = xalloc_zeroed(bytes, 1);
	for (size_t i = 0; words[i]; i++) {
		strcpy(key + used, words[i]);
		used += strlen(words[i]);
		key[used++] = '\n';
	}
	return key;
}

void children_init(struct children *children, uint64_t memory_bytes)
{
	*children = (struct children){ .memory_bytes = memory_bytes, .fd = -1, .out = -1 };
}

static void forget_result(struct child_result *result)
{
	if (result->key)
		close(result->fd);
	free(result->key);
	*result = (struct child_result){ 0 };
}

const struct child_result *children_find(const struct children *children, char *const *words)
{
	const struct child_result *found = NULL;
	char *key = key_of_words(words);

	for (size_t i = 0; i < CHILD_RESULTS; i++) {
		const struct child_result *result = &children->results[i];
		if (result->key && !strcmp(result->key, key) &&
		    watch_now_ns() - result->made_ns < CHILD_FRESH_S * 1000000000ull)
			found = result;
	}
	free(key);
	return found;
}

/* ---- the process ---- */

static _Noreturn void be_a_child(char *const *words, uint64_t memory_bytes, int out)
{
	char *argv[32] = { (char *)"cuflight" };
	int null = open("/dev/null", O_RDWR);
	struct rlimit memory = { memory_bytes, memory_bytes };
	struct rlimit bytes = { CHILD_BYTES, CHILD_BYTES };
	struct rlimit seconds = { CHILD_SECONDS, CHILD_SECONDS };
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, 0);
	dup2(out, 1);
	dup2(null, 2);
	syscall(SYS_close_range, 3, ~0u, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	setrlimit(RLIMIT_DATA, &memory);
	setrlimit(RLIMIT_FSIZE, &bytes);
	setrlimit(RLIMIT_CPU, &seconds);
	setpriority(PRIO_PROCESS, 0, 10);
	for (size_t i = 0; words[i] && i < 30; i++)
		argv[i + 1] = words[i];
	execv("/proc/self/exe", argv);
	_exit(127);
}

pid_t child_spawn(char *const *words, uint64_t memory_bytes, int out)
{
	pid_t pid = fork();

	if (!pid)
		be_a_child(words, memory_bytes, out);
	return pid;
}

void children_start(struct children *children, char *const *words)
{
	if (children->running)
		return;
	children->out = memfd_create("cuflight-answer", MFD_CLOEXEC);
	if (children->out < 0)
		return;
	children->pid = child_spawn(words, children->memory_bytes, children->out);
	if (children->pid > 0)
		children->fd = (int)syscall(SYS_pidfd_open, children->pid, 0);
	if (children->pid < 0) {
		close(children->out);
		return;
	}
	children->running = key_of_words(words);
	children->started_ns = watch_now_ns();
}

/* ---- its result ---- */

static struct child_result *oldest_result(struct children *children)
{
	struct child_result *oldest = &children->results[0];

	for (size_t i = 0; i < CHILD_RESULTS; i++)
		if (children->results[i].made_ns < oldest->made_ns)
			oldest = &children->results[i];
	return oldest;
}

static void keep_result(struct children *children, int status)
{
	struct child_result *to = oldest_result(children);
	struct stat file;

	forget_result(to);
	*to = (struct child_result){ .key = children->running, .fd = children->out,
				     .made_ns = watch_now_ns() };
	if (!fstat(to->fd, &file))
		to->bytes = (uint64_t)file.st_size;
	to->is_good = WIFEXITED(status) && !WEXITSTATUS(status) && to->bytes;
	if (children->fd >= 0)
		close(children->fd);
	children->running = NULL;
	children->fd = children->out = -1;
}

bool children_take(struct children *children)
{
	int status;

	if (!children->running)
		return false;
	if (watch_now_ns() - children->started_ns > CHILD_SECONDS * 1000000000ull)
		kill(children->pid, SIGKILL);
	if (waitpid(children->pid, &status, WNOHANG) != children->pid)
		return false;
	keep_result(children, status);
	return true;
}

void children_fini(struct children *children)
{
	if (children->running) {
		kill(children->pid, SIGKILL);
		waitpid(children->pid, NULL, 0);
		keep_result(children, -1);
	}
	for (size_t i = 0; i < CHILD_RESULTS; i++)
		forget_result(&children->results[i]);
}
