/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads wait for each other: one holds the GIL meanwhile (hold, called without releasing it),
 * the other allocates.
 */
#include <stdlib.h>
#include <time.h>

static volatile int held, done;

static int wait_for(volatile int *flag)
{
	struct timespec pause = { 0, 1000000 };
	for (int ms = 0; ms < 20000; ms++) {
		if (*flag)
			return 0;
		nanosleep(&pause, NULL);
	}
	return 1;
}

int hold(void)
{
	held = 1;
	return wait_for(&done);
}

void *allocate_when(int bytes)
{
	void *p = NULL;
	if (!wait_for(&held))
		p = malloc((size_t)bytes);
	done = p != NULL;
	return p;
}
