/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fatal failure costs in the process: live_verdict BLOCKS. With BLOCKS live blocks of 64
 * KiB, behind each of which as much is free, of 64 call sites, it measures the incident (holes, sites, names) and the lines at the end. Prints
 * milliseconds: incident, lines, and for comparison a plain pass over the same ledger.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "interpose/incident/incident.h"
#include "interpose/store/ledger.h"
#include "interpose/record/recorder.h"
#include "interpose/store/recording.h"
#include "interpose/incident/verdict.h"

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void record(uint64_t addr, uint64_t bytes, bool fails)
{
	struct cuf_driver_view view = {
		.free_bytes = 1 << 20, .total_bytes = 16ull << 30, .probed_bytes = CUF_UNKNOWN,
	};
	struct cuf_request request = { .bytes = bytes, .kind = CUF_KIND_DEVICE };
	struct cuf_call call;
	cuf_call_begin(&call, 111, __builtin_frame_address(0));
	if (fails)
		cuf_request_failed(&call, &request, 2, &view);
	else
		cuf_block_alloc(&call, &request, addr);
	cuf_call_end();
}

static __attribute__((noinline)) void descend(unsigned depth, uint64_t addr)
{
	if (depth)
		descend(depth - 1, addr);
	else
		record(addr, 64 << 10, false);
	__asm__ volatile("");
}

static void see(const struct cuf_block *block, void *sum) { *(uint64_t *)sum += block->bytes; }

int main(int argc, char **argv)
{
	static char options[] = "CUFLIGHT_OPTIONS=start=1:size=64MiB",
		    output[] = "CUFLIGHT_OUTPUT=/dev/null/none";
	static char *environment[] = { options, output, NULL };
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000, sum = 0;
	int null = open("/dev/null", O_WRONLY);
	double began, failed, said, passed;
	dup2(null, 2); /* the words, and that there is no file */
	cuf_recorder_start(environment);
	for (uint64_t i = 0; i < count; i++)
		descend((unsigned)(i % 64), 0x700000000000 + (i << 17));
	cuf_ledger_each(see, &sum);
	began = now_ms();
	record(0, 1ull << 30, true);
	failed = now_ms();
	cuf_verdict_print(cuf_incident_unresolved());
	said = now_ms();
	cuf_ledger_each(see, &sum);
	passed = now_ms();
	printf("%.1f %.1f %.1f %llu\n", failed - began, said - failed, passed - said,
	       (unsigned long long)cuf_recording.header->lost[CUF_LOST_LEDGER]);
	return 0;
}
