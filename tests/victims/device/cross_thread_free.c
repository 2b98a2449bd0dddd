/* SPDX-License-Identifier: Apache-2.0 */
/* One thread allocates, another frees, and addresses are reused immediately. */
#include <pthread.h>

#include "tests/victims/doors.h"

enum { ROUNDS = 200, KEPT = 20 };

static CUdeviceptr mailbox[ROUNDS];

static void *produce(void *unused)
{
	door_enter();
	for (int i = 0; i < ROUNDS; i++)
		mailbox[i] = take((size_t)(1 + i % 4) * 256 * KiB);
	return NULL;
}

static void *consume(void *unused)
{
	door_enter();
	for (int i = 0; i < ROUNDS - KEPT; i++)
		MUST(cu.release(mailbox[i]));
	return NULL;
}

int main(int argc, char **argv)
{
	static void *(*const work[])(void *) = {produce, consume};
	size_t kept = 0;
	door_open(argc, argv);
	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, work[i], NULL) || pthread_join(thread, NULL))
			return BROKEN;
	}
	for (int i = ROUNDS - KEPT; i < ROUNDS; i++)
		kept += (size_t)(1 + i % 4) * 256 * KiB;
	say("live kind device bytes %zu count %d", kept, KEPT);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
