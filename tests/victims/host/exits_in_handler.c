/* SPDX-License-Identifier: Apache-2.0 */
/* exits_in_handler: a timer breaks into malloc and free, and its handler exits: whoever asks the
 * allocator then hangs. */
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
