/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves requests of changing size. Its cache fills up and stays full, it keeps its weights, and it
 * leaks nothing.
 */
#include "tests/victims/doors.h"

enum { REQUESTS = 200, CACHED = 16 };

static CUdeviceptr cache[CACHED];
static size_t live = 64 * MiB, peak;

static void serve_request(unsigned number)
{
	size_t bytes = (1 + number * 7 % 13) * MiB + number % 3 * 100 * KiB;
	CUdeviceptr activations = take(bytes), scratch = take(bytes / 4);
	if (!cache[number % CACHED]) {
		cache[number % CACHED] = take(2 * MiB);
		live += 2 * MiB;
	}
	if (live + bytes + bytes / 4 > peak)
		peak = live + bytes + bytes / 4;
	MUST(cu.release(scratch));
	MUST(cu.release(activations));
}

int main(int argc, char **argv)
{
	door_open(argc, argv);
	take(64 * MiB);
	for (unsigned i = 0; i < REQUESTS; i++)
		serve_request(i);
	say("live kind device bytes %zu count %d", 64 * MiB + CACHED * 2 * MiB, 1 + CACHED);
	say("peak bytes %zu", peak);
	say("clean leaks");
	say("clean incidents");
	say("end state exit 0");
	say_device();
	return 0;
}
