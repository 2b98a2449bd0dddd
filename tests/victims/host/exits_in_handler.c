/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer interrupts malloc and free, and its handler exits. Any call into the allocator would hang
 * then.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static void leave(int signal) { exit(9); }

int main(void)
{
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	static void *blocks[4096];
	signal(SIGALRM, leave);
	setitimer(ITIMER_REAL, &soon, NULL);
	for (unsigned i = 0;; i = (i * 5 + 1) % 4096) {
		free(blocks[i]);
		blocks[i] = malloc(2000 + i);
	}
}
