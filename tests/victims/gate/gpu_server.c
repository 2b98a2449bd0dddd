/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose requests take only GPU memory, and which ends as it is told to. Prints what it
 * kept.
 *
 *   --keep=N       each of its requests keeps N traces of 5 KiB of host memory, and frees none
 *   --fill         at its end it takes GPU memory until that is refused, and exits with 1
 *   --offload      it survives 32 refusals of GPU memory, each with 4 MiB of the host instead, and
 *                  then takes host memory until it is killed
 */
#include "tests/victims/doors.h"

enum { REQUESTS = 300, TRACE_BYTES = 5120, KEEP_MAX = 100, REFUSALS = 32 };

static void *kept[REQUESTS * KEEP_MAX];
static size_t kept_count;

__attribute__((noinline)) static void keep_trace(void)
{
	kept[kept_count++] = memset(malloc(TRACE_BYTES), 1, TRACE_BYTES);
}

__attribute__((noinline)) static void serve_request(int keep)
{
	CUdeviceptr activations = take(4 * MiB);

	for (int i = 0; i < keep; i++)
		keep_trace();
	usleep(10000); /* the clock of host events is as coarse */
	MUST(cu.release(activations));
}

__attribute__((noinline)) static int fill_device(void)
{
	CUdeviceptr block;
	int blocks = 0;

	while (!cu.alloc(&block, 256 * MiB))
		blocks++;
	say("filled blocks %d", blocks);
	return 1;
}

__attribute__((noinline)) static void *offload(size_t bytes)
{
	return memset(malloc(bytes), 1, bytes);
}

__attribute__((noinline)) static void offload_until_killed(void)
{
	CUdeviceptr block;
	size_t held = 0;

	fill_device();
	for (int i = 0; i < REFUSALS; i++) {
		if (!cu.alloc(&block, 256 * MiB))
			exit(BROKEN);
		offload(4 * MiB);
		usleep(10000);
	}
	say("survived refusals %d", REFUSALS + 1); /* the one that filled it, too */
	for (;; held += 4 * MiB) {
		say("offloaded bytes %zu", held + REFUSALS * 4 * MiB);
		offload(4 * MiB);
		usleep(10000);
	}
}

int main(int argc, char **argv)
{
	bool fill = false, offloads = false;
	int keep = 0;

	door_open(argc, argv);
	for (int i = 1; i < argc; i++) {
		if (sscanf(argv[i], "--keep=%d", &keep) == 1)
			keep = keep > KEEP_MAX ? KEEP_MAX : keep;
		fill |= !strcmp(argv[i], "--fill");
		offloads |= !strcmp(argv[i], "--offload");
	}
	for (int i = 0; i < REQUESTS; i++)
		serve_request(keep);
	say("kept bytes %zu count %zu", kept_count * TRACE_BYTES, kept_count);
	if (offloads)
		offload_until_killed();
	if (fill)
		return fill_device();
	return 0;
}
