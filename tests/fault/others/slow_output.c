/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread holds 80 MiB, which makes the recorder create its file. The main thread goes on
 * allocating. It prints whether one of its pairs of malloc and free took two seconds.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *hold(void *unused)
{
	for (int i = 0; i < 80; i++)
		memset(malloc(1 << 20), 1, 1 << 20);
	return NULL;
}

int main(void)
{
	pthread_t other;
	int slow = 0;

	pthread_create(&other, NULL, hold, NULL);
	usleep(500000);
	for (int i = 0; i < 1000; i++) {
		time_t began = time(NULL);
		void *volatile block = malloc(100000);
		free(block);
		slow += time(NULL) - began > 2;
	}
	printf("%d of 1000 pairs were slow\n", slow);
	fflush(stdout);
	_exit(0);
}
