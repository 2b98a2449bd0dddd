/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The malloc family: full mode is exact, sampled mode unbiased. Each mode runs in its own process.
 */
#include <pthread.h>
#include <sys/wait.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/record/host.h"
#include "interpose/platform/sampler.h"

#define frame __builtin_frame_address(0)

static void in_child(void (*body)(void))
{
	int status;
	pid_t child = fork();
	if (!child) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

#define MUST(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); _exit(1); } } while (0)

static void start_in_child(const char *options)
{
	static char line[128];
	static char *environment[] = { line, NULL };
	snprintf(line, sizeof line, "CUFLIGHT_OPTIONS=%s", options);
	cuf_recorder_start(environment);
	MUST(cuf_gate_is_on());
}

static void *free_first(void *block)
{
	struct cuf_host_undo undo;
	/* no clock was read and no segment taken by this thread before */
	cuf_host_free(block, CUF_HOST_FREE, &undo);
	return NULL;
}

static void full_mode(void)
{
	pthread_t thread;
	struct cuf_host_undo undo;
	static char directory[] = "/tmp/cuflight-unit-XXXXXX", line[128],
		    options[] = "CUFLIGHT_OPTIONS=host=full:size=8MiB";
	static char *environment[] = { options, line, NULL };
	MUST(mkdtemp(directory));
	snprintf(line, sizeof line, "CUFLIGHT_OUTPUT=%s/r.cuf", directory);
	cuf_recorder_start(environment);
	for (uintptr_t i = 1; i <= 1000; i++)
		cuf_host_alloc((void *)(i << 4), i, CUF_HOST_ALLOC, frame);
	MUST(cuf_host_live_bytes() == 1000 * 1001 / 2);
	for (uintptr_t i = 1; i <= 1000; i += 2)
		cuf_host_free((void *)(i << 4), CUF_HOST_FREE, &undo);
	MUST(cuf_host_live_bytes() == 500 * 501);
	/* a realloc that failed gives the old block back */
	cuf_host_free((void *)(2ul << 4), CUF_HOST_FREE_RESIZE, &undo);
	cuf_host_restore(&undo);
	MUST(cuf_host_live_bytes() == 500 * 501);
	pthread_create(&thread, NULL, free_first, (void *)(2ul << 4));
	pthread_join(thread, NULL);
	MUST(cuf_host_live_bytes() == 500 * 501 - 2);
	MUST(cuf_recording.header->lost[CUF_LOST_HOST_LEDGER] == 0);
	MUST(access(cuf_recording.path, R_OK) == 0); /* full mode creates its file at start */
	unlink(cuf_recording.path);
	rmdir(directory);
}

/* Many more blocks than the ledger begins with, freed in another order: each is found again, at
 * whatever level it lies. */
static void ledger_grows(void)
{
	enum { BLOCKS = 20000 };
	struct cuf_host_undo undo;
	start_in_child("host=full:size=16MiB");
	for (unsigned round = 0; round < 3; round++) {
		for (uintptr_t i = 1; i <= BLOCKS; i++)
			cuf_host_alloc((void *)(i * 48), i, CUF_HOST_ALLOC, frame);
		MUST(cuf_host_live_bytes() == (uint64_t)BLOCKS * (BLOCKS + 1) / 2);
		for (uintptr_t i = 1; i <= BLOCKS; i++) {
			cuf_host_free((void *)((i * 7919 % BLOCKS + 1) * 48), CUF_HOST_FREE, &undo);
			MUST(cuf_host_bytes(undo.word1) == i * 7919 % BLOCKS + 1);
		}
		MUST(cuf_host_live_bytes() == 0);
	}
	MUST(cuf_recording.header->lost[CUF_LOST_HOST_LEDGER] == 0);
	for (uint64_t i = 0; i <= cuf_recording.host_bucket_mask * CUF_HOST_BUCKET; i++)
		MUST(cuf_recording.host_ledger[i].word0 == 0);
	unlink(cuf_recording.path);
}

static void sampled_mode(void)
{
	struct cuf_host_undo undo;
	const uint64_t bytes = 1000, count = 2000000;
	double ratio;
	start_in_child("host=sampled:sample=64KiB:size=64MiB:stack_depth=1");
	for (uint64_t i = 1; i <= count; i++)
		cuf_host_alloc((void *)(i << 4), bytes, CUF_HOST_ALLOC, frame);
	ratio = (double)cuf_host_live_bytes() / (double)(bytes * count);
	/* 30,500 samples expected: one standard deviation is 0.6 % */
	MUST(ratio > 0.97 && ratio < 1.03);
	for (uint64_t i = 1; i <= count; i++)
		cuf_host_free((void *)(i << 4), CUF_HOST_FREE, &undo);
	MUST(cuf_host_live_bytes() == 0);
	/* big blocks always, weight 1 */
	cuf_host_alloc((void *)0x100000000, CUF_SAMPLE_EXACT_BYTES, CUF_HOST_ALLOC, frame);
	MUST(cuf_host_live_bytes() == CUF_SAMPLE_EXACT_BYTES);
	unlink(cuf_recording.path);
}

static unsigned skipped_frees(void)
{
	unsigned skipped = 0;
	for (uintptr_t i = 1; i <= 1000; i++)
		skipped += cuf_host_skips_free((void *)(i << 4));
	return skipped;
}

/* A free is skipped when nothing forbids it: the mode is known, no block of its place is recorded,
 * and it is not one that is kept. */
static void skipped_when_sampled(void)
{
	struct cuf_host_undo undo;
	char *kept = (char *)(7ul << 4), *large = (char *)(9ul << 4);
	MUST(!skipped_frees());
	start_in_child("host=sampled:size=4MiB");
	MUST(skipped_frees() == 1000);
	cuf_host_keep(kept);
	cuf_host_alloc(large, CUF_SAMPLE_EXACT_BYTES, CUF_HOST_ALLOC, frame);
	MUST(skipped_frees() == 998 && !cuf_host_skips_free(kept) && !cuf_host_skips_free(large));
	cuf_host_free(kept, CUF_HOST_FREE, &undo);
	cuf_host_free(large, CUF_HOST_FREE, &undo);
	MUST(skipped_frees() == 999 && !cuf_host_skips_free(kept));
	cuf_host_alloc(large, CUF_SAMPLE_EXACT_BYTES, CUF_HOST_ALLOC, frame);
	cuf_at_fork_child_run();
	MUST(skipped_frees() == 999 && !cuf_host_skips_free(kept));
}

static void none_skipped_in_full_mode(void)
{
	start_in_child("host=full:size=4MiB");
	MUST(!skipped_frees());
	cuf_at_fork_child_run();
	MUST(!skipped_frees());
	unlink(cuf_recording.path);
}

static void all_skipped_when_disabled(void)
{
	static char line[] = "CUFLIGHT_DISABLE=1";
	static char *environment[] = { line, NULL };
	cuf_recorder_start(environment);
	MUST(!cuf_gate_is_on() && skipped_frees() == 1000);
}

static void test_host__full_mode_is_exact(void **state) { in_child(full_mode); }
static void test_host__ledger_grows_and_finds(void **state) { in_child(ledger_grows); }
static void test_host__sampled_mode_is_unbiased(void **state) { in_child(sampled_mode); }

static void test_host__frees_are_skipped(void **state)
{
	in_child(skipped_when_sampled);
	in_child(none_skipped_in_full_mode);
	in_child(all_skipped_when_disabled);
}

static void test_host__weights(void **state)
{
	/* bytes / (1 - exp(-bytes/mean)), by hand: x/(1-exp(-x)) at x = 1 is 1.5819767, at
	 * 1/16 1.0315755, at 0.001 1.0005001 */
	assert_int_equal(cuf_sample_weight_bytes(4096, 4096), 6480);
	assert_int_equal(cuf_sample_weight_bytes(32768, 524288), 540843);
	assert_true(cuf_sample_weight_bytes(524, 524288) >= 524548 &&
	            cuf_sample_weight_bytes(524, 524288) <= 524552);
	assert_int_equal(cuf_sample_weight_bytes(65536, 524288), 65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host__full_mode_is_exact),
		cmocka_unit_test(test_host__ledger_grows_and_finds),
		cmocka_unit_test(test_host__sampled_mode_is_unbiased),
		cmocka_unit_test(test_host__frees_are_skipped),
		cmocka_unit_test(test_host__weights),
	};
	return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
