/* SPDX-License-Identifier: Apache-2.0 */
/* fork and exec of a memory file, with a pipe in each direction. */
#include "analysis/cmd/target/ask.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/cmd/target/embedded.h"

enum { PATIENCE_MS = 2000 };
extern char **environ;

/* Not recorded: it is none of the user's programs. */
static void run_and_exit(const struct question *question, int program, int from, int to)
{
	char *words[] = { "cuflight-asker", (char *)(uintptr_t)question->words[0],
			  (char *)(uintptr_t)question->words[1], NULL };

	setenv("CUFLIGHT_DISABLE", "1", 1);
	dup2(from, STDIN_FILENO);
	dup2(to, STDOUT_FILENO);
	dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
	fexecve(program, words, environ);
	_exit(127);
}

/* Returns -1 when it takes too long. */
static ssize_t receive(int from, void *answer, size_t room)
{
	struct pollfd poll_for = { .fd = from, .events = POLLIN };

	if (poll(&poll_for, 1, PATIENCE_MS) <= 0)
		return -1;
	return read(from, answer, room);
}

/* Closes the end of the pipe that is the child's. */
static ssize_t talk(const struct question *question, int program, const int input[2],
		    const int output[2], void *answer, size_t room)
{
	ssize_t bytes = 0;
	pid_t child = -1;

	if (write(input[1], question->data, question->bytes) == (ssize_t)question->bytes)
		child = fork();
	if (!child)
		run_and_exit(question, program, input[0], output[1]);
	close(output[1]);
	if (child < 0)
		return 0;
	bytes = receive(output[0], answer, room);
	if (bytes < 0)
		kill(child, SIGKILL);
	/* it may not die while it is inside a driver */
	waitpid(child, NULL, bytes < 0 ? WNOHANG : 0);
	return bytes;
}

ssize_t ask(const struct question *question, void *answer, size_t room)
{
	int input[2], output[2];
	int program = embedded_file("cuflight-asker", asker_image, asker_image_end);
	ssize_t bytes = 0;

	if (program < 0)
		return 0;
	if (!pipe2(input, O_CLOEXEC)) {
		if (!pipe2(output, O_CLOEXEC)) {
			bytes = talk(question, program, input, output, answer, room);
			close(output[0]);
		}
		close(input[0]);
		close(input[1]);
	}
	close(program);
	return bytes;
}

bool ask_library(const char *soname, char *path, size_t bytes)
{
	const struct question question = { { "library", soname }, "", 0 };
	ssize_t got = ask(&question, path, bytes - 1);

	if (got <= 0)
		return false;
	path[got] = 0;
	path[strcspn(path, "\n")] = 0;
	return true;
}
