/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves requests. Each forgets one block of 320 KiB and frees the rest, so only the minimum rises.
 */
#include "tests/victims/doors.h"

enum { REQUESTS = 40 };
#define FORGOTTEN (320 * KiB)

static CUdeviceptr load_weights(void) { return take(96 * MiB); }

static void remember_session(void) { take(FORGOTTEN); }

static void serve_request(int number)
{
	CUdeviceptr activations = take(8 * MiB + (size_t)(number % 5) * MiB);
	remember_session();
	MUST(cu.release(activations));
}

int main(int argc, char **argv)
{
	door_open(argc, argv);
	load_weights();
	for (int i = 0; i < REQUESTS; i++)
		serve_request(i);
	say("live kind device bytes %zu count %d", 96 * MiB + REQUESTS * FORGOTTEN, REQUESTS + 1);
	say("leak site remember_session kind device bytes %zu count %d per_request %zu",
	    REQUESTS * FORGOTTEN, REQUESTS, FORGOTTEN);
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
