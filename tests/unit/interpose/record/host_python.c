/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of CPython's own allocator: recorded once, whether malloc serves them or not; sampled
 * without bias; found again when they are freed. Each mode runs in its own process.
 */
#include <setjmp.h>
#include <sys/wait.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/totals.h"
#include "interpose/record/recorder.h"

#define frame __builtin_frame_address(0)
#define MUST(condition) do { if (!(condition)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); _exit(1); } } while (0)

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

static void start_in_child(const char *options)
{
	static char line[128];
	static char *environment[] = { line, NULL };
	snprintf(line, sizeof line, "CUFLIGHT_OPTIONS=%s", options);
	cuf_recorder_start(environment);
	MUST(cuf_gate_is_on());
}

/* Deeper on the stack than the request that it serves. */
static __attribute__((noinline)) void serve(void *p, size_t bytes)
{
	if (p)
		cuf_host_alloc(p, bytes, CUF_HOST_ALLOC, frame);
}

/* An allocation of CPython as the wrappers record it. inner: the block that malloc returns
 * meanwhile; NULL: none does. */
static bool allocate(void *p, size_t bytes, void *inner, size_t inner_bytes)
{
	struct cuf_host_outer outer;
	if (cuf_host_skips_alloc(bytes)) {
		serve(inner, inner_bytes);
		return false;
	}
	cuf_host_outer_begin(&outer, bytes);
	serve(inner, inner_bytes);
	return cuf_host_outer_end(&outer, p, CUF_HOST_ALLOC, frame);
}

/* Every block is known, so both kinds of address can be told apart. */
static void exact(void)
{
	struct cuf_host_undo undo = { 0, 0 };
	char *arena = (char *)0x100000, *heap = (char *)0x900000;
	start_in_child("host=sampled:size=8MiB");
	/* the arena's: its own; an interpreter's table of another size changes nothing */
	MUST(allocate(arena, 100000, heap, 64));
	MUST(cuf_host_live_bytes() == 100000 || cuf_host_live_bytes() > 500000);
	cuf_host_python_free(arena, CUF_HOST_FREE, &undo);
	MUST(undo.word0 && cuf_address_is_python(cuf_host_addr(undo.word0),
						 cuf_host_bytes(undo.word1)));
	cuf_host_restore(&undo);
	undo.word0 = 0;
	cuf_host_python_free(arena, CUF_HOST_FREE, &undo);
	MUST(undo.word0);
	/* malloc's, behind a header of 32 bytes: malloc's only */
	MUST(!allocate(heap + 4096 + 32, 100000, heap + 4096, 100040));
	undo.word0 = 0;
	cuf_host_python_free(heap + 4096 + 32, CUF_HOST_FREE, &undo);
	MUST(!undo.word0);
	cuf_host_free(heap + 4096, CUF_HOST_FREE, &undo);
	MUST(undo.word0 && cuf_host_bytes(undo.word1) == 100040);
	/* refused: nothing is live, and the next one is recorded */
	MUST(!allocate(NULL, 100000, NULL, 0));
	MUST(allocate(arena, 100000, NULL, 0));
	/* all of them are forgotten, and malloc's are not */
	cuf_host_alloc(heap, 200000, CUF_HOST_ALLOC, frame);
	cuf_host_python_forget();
	undo.word0 = 0;
	cuf_host_python_free(arena, CUF_HOST_FREE, &undo);
	MUST(!undo.word0);
	cuf_host_free(heap, CUF_HOST_FREE, &undo);
	MUST(undo.word0);
}

enum { BLOCKS = 400000, BYTES = 200 };

/* 80 MB of blocks: 153 samples are expected, with a deviation of 12. */
static void unbiased(bool by_malloc)
{
	uint64_t samples = 0;
	double live;
	start_in_child("host=sampled:size=8MiB");
	for (uintptr_t i = 1; i <= BLOCKS; i++) {
		char *p = (char *)(i << 8);
		samples += allocate(p, BYTES, by_malloc ? p : NULL, BYTES);
	}
	live = (double)cuf_host_live_bytes();
	MUST(live > 0.6 * BLOCKS * BYTES && live < 1.4 * BLOCKS * BYTES);
	MUST(by_malloc ? !samples : samples > 90 && samples < 220);
}

static void unbiased_in_arenas(void) { unbiased(false); }
static void unbiased_in_malloc(void) { unbiased(true); }

static void full_mode(void)
{
	struct cuf_host_undo undo = { 0, 0 };
	static char directory[] = "/tmp/cuflight-unit-XXXXXX", line[128],
		    options[] = "CUFLIGHT_OPTIONS=host=full:size=8MiB";
	static char *environment[] = { options, line, NULL };
	MUST(mkdtemp(directory));
	snprintf(line, sizeof line, "CUFLIGHT_OUTPUT=%s/r.cuf", directory);
	cuf_recorder_start(environment);
	for (uintptr_t i = 1; i <= 1000; i++)
		MUST(allocate((void *)(i << 6), 48, NULL, 0));
	MUST(cuf_host_live_bytes() == 48000);
	cuf_host_python_free((void *)(5000ul << 6), CUF_HOST_FREE, &undo); /* older than we are */
	MUST(!undo.word0);
	for (uintptr_t i = 1; i <= 1000; i++)
		cuf_host_python_free((void *)(i << 6), CUF_HOST_FREE, &undo);
	MUST(cuf_host_live_bytes() == 0);
	unlink(cuf_recording.path);
	rmdir(directory);
}

static sigjmp_buf out;

static __attribute__((noinline)) void leave_by_a_jump(void)
{
	struct cuf_host_outer outer;
	cuf_host_outer_begin(&outer, 100000);
	siglongjmp(out, 1);
}

/* What was noted on a stack that is gone is not looked at. */
static void left(void)
{
	char *heap = (char *)0x900000;
	struct cuf_host_undo undo = { 0, 0 };
	start_in_child("host=sampled:size=8MiB");
	if (!sigsetjmp(out, 0))
		leave_by_a_jump();
	cuf_host_alloc(heap, 200000, CUF_HOST_ALLOC, frame);
	MUST(!cuf_tls.outer);
	cuf_host_free(heap, CUF_HOST_FREE, &undo);
	MUST(undo.word0);
	MUST(allocate(heap, 100000, NULL, 0));
}

static void test_left(void **state) { in_child(left); }
static void test_exact(void **state) { in_child(exact); }
static void test_unbiased_in_arenas(void **state) { in_child(unbiased_in_arenas); }
static void test_unbiased_in_malloc(void **state) { in_child(unbiased_in_malloc); }
static void test_full_mode(void **state) { in_child(full_mode); }

/* A reader tells them apart by address and bytes alone. */
static void test_addresses(void **state)
{
	for (uint64_t bytes = 1; bytes < 70000; bytes += 7)
		for (uint64_t addr = 0x7000; addr < 0x8000; addr += 16) {
			uint64_t as = cuf_python_address(addr), of = cuf_python_bytes(bytes);
			assert_true(cuf_address_is_python(as, of));
			assert_false(cuf_address_is_map(as, of));
			assert_false(cuf_address_is_python(addr, bytes));
		}
	assert_true(cuf_address_is_map(0x7000 + CUF_MAP_ANONYMOUS_OFFSET, 8192));
	assert_true(cuf_address_is_shared_map(0x7000 + CUF_MAP_SHARED_OFFSET, 1 << 20));
	assert_false(cuf_address_is_python(0x7000 + CUF_MAP_SHARED_OFFSET, 1 << 20));
	/* jemalloc's blocks of 8 bytes lie at such addresses */
	assert_false(cuf_address_is_python(0x7008, 8));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_unbiased_in_arenas),
		cmocka_unit_test(test_unbiased_in_malloc),
		cmocka_unit_test(test_full_mode),
		cmocka_unit_test(test_left),
		cmocka_unit_test(test_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
