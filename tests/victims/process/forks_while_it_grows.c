/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread takes memory; the first one forks meanwhile. Each child looks at once which descriptors
 * it has: it allocates nothing before. Prints whether more than a few children had more than the
 * program had, and the number on standard error: a fork can come between the open of a file and the
 * note of its descriptor.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 200, FEW = 5, BLOCKS = 80, BLOCK_BYTES = 1 << 20, DESCRIPTORS = 64 };

static void *grow(void *unused)
{
	(void)unused;
	for (unsigned i = 0; i < BLOCKS; i++) {
		char *block = malloc(BLOCK_BYTES);

		if (block)
			memset(block, 1, BLOCK_BYTES);
	}
	return NULL;
}

static unsigned descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

int main(void)
{
	unsigned at_start = descriptors(), children_with_more = 0;
	pthread_t grows;

	if (pthread_create(&grows, NULL, grow, NULL))
		return 1;
	for (unsigned i = 0; i < FORKS; i++) {
		int status = 0;
		pid_t child = fork();

		if (!child)
			_exit(descriptors() != at_start);
		waitpid(child, &status, 0);
		children_with_more += status != 0;
		usleep(500);
	}
	pthread_join(grows, NULL);
	fprintf(stderr, "children with a descriptor more: %u of %u\n", children_with_more, FORKS);
	printf("children with a descriptor more: %s\n", children_with_more > FEW ? "many" : "few");
	return 0;
}
