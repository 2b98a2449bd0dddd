/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack cache: along random paths through functions of different frames, cuf_walk_cached
 * returns what cuf_walk returns, also when it returns only an id. And it does find stacks.
 */
#include <ucontext.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/code/modules.h"
#include "interpose/stack/walker.h"

enum { MAX = 64, STACKS = 20000, DEPTH = 12 };

static struct stack {
	uint64_t frames[MAX], extra_key;
	unsigned depth;
	uint8_t stop;
} stacks[STACKS + 1], truth;
static struct cuf_walker known_walker, walker;
static unsigned known, walked, next_id = 1, limit = MAX;
static uint64_t extra_key, frame_sp[MAX];
static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(seed >> 33) % below;
}

static uint64_t hash_of(const uint64_t *frames, unsigned depth)
{
	uint64_t hash = 0;
	for (unsigned i = 0; i < depth; i++)
		hash = cuf_frames_hash_step(hash, frames[i]);
	return hash;
}

/* As a hook that was called by the program. */
static __attribute__((noinline)) void hook(void)
{
	const void *frame = __builtin_frame_address(0);
	uint64_t frames[MAX];
	struct cuf_walked answer = { .frames = frames, .extra_key = extra_key };
	uint32_t id = cuf_walk_cached(&known_walker, cuf_modules_generation(), frame, limit,
	                              &answer);
	truth.depth = cuf_walk(&walker, cuf_modules_generation(), (uintptr_t)frame, truth.frames,
	                       limit, &truth.stop);
	if (!id) {
		walked++;
		cuf_walked_frames(&known_walker, &answer);
		assert_in_range(next_id, 1, STACKS);
		stacks[next_id].depth = answer.depth;
		stacks[next_id].stop = answer.stop;
		stacks[next_id].extra_key = extra_key;
		memcpy(frame_sp, known_walker.cache->frame_sp, answer.depth * sizeof *frame_sp);
		memcpy(stacks[next_id].frames, frames, answer.depth * sizeof *frames);
		assert_true(answer.hash == hash_of(frames, answer.depth));
		*answer.id = id = next_id++;
	} else {
		known++;
	}
	if (answer.depth) /* it was walked, so frame_sp must agree too */
		assert_memory_equal(frame_sp, walker.cache->frame_sp,
		                    truth.depth * sizeof *frame_sp);
	assert_true(stacks[id].extra_key == extra_key);
	assert_int_equal(stacks[id].depth, truth.depth);
	assert_int_equal(stacks[id].stop, truth.stop);
	assert_memory_equal(stacks[id].frames, truth.frames, truth.depth * sizeof *truth.frames);
}

typedef void step(unsigned depth);
static step *const steps[4];

static void go_on(unsigned depth)
{
	if (depth)
		steps[draw(draw(4) ? 1 : 4)](depth - 1);
	else
		for (unsigned i = draw(3); i < 3; i++)
			hook();
	__asm__ volatile("" ::: "memory");
}

#define STEP(name, bytes, attributes)                                \
	static __attribute__((noinline)) attributes void name(unsigned depth) \
	{                                                             \
		volatile char own[bytes];                                \
		own[0] = 1;                                              \
		go_on(depth);                                            \
		(void)own[0];                                            \
	}
STEP(small, 8, )
STEP(large, 200, )
STEP(with_fp, 40, __attribute__((optimize("no-omit-frame-pointer"))))

/* The size is unknown, so the frame is found by its frame pointer only. */
static __attribute__((noinline)) void variable(unsigned depth)
{
	volatile char own[16 + draw(4) * 16];
	own[0] = 1;
	go_on(depth);
	(void)own[0];
}
static step *const steps[4] = { small, large, with_fp, variable };

static void descend(unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		steps[draw(4)](draw(DEPTH));
}

static void test_stack_cache__is_the_walk(void **state)
{
	descend(4000);
	assert_true(known > walked); /* of two calls from one place the second is recognized */
	assert_true(walked > 100);
}

static void test_stack_cache__the_limit_is_part_of_it(void **state)
{
	limit = 5;
	descend(500);
	assert_int_equal(truth.depth, 5);
	assert_int_equal(truth.stop, CUF_STOP_DEPTH);
	limit = MAX;
	descend(500);
}

/* The same stack with another extra key is another one: the id stands for both. */
static void test_stack_cache__the_extra_key_is_part_of_it(void **state)
{
	unsigned walked_before = walked;
	known = 0;
	for (unsigned i = 0; i < 300; i++) {
		extra_key = draw(3);
		small(draw(3) ? 0 : 2);
	}
	extra_key = 0;
	assert_true(known > 50);
	assert_true(walked > walked_before);
}

static void test_stack_cache__forgets_what_it_knew_with_the_modules(void **state)
{
	unsigned before;
	small(0);
	known = 0;
	cuf_walker_init(&known_walker, 1);
	before = walked;
	small(0);
	assert_true(walked > before); /* the first one was forgotten */
}

static ucontext_t here, there;

static void fiber(void)
{
	descend(100);
	swapcontext(&there, &here);
}

/* Neither stack is taken for the other. */
static void test_stack_cache__another_stack_is_walked(void **state)
{
	static char stack[64 << 10];
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof stack;
	makecontext(&there, fiber, 0);
	known = walked = 0;
	swapcontext(&here, &there);
	assert_int_equal(known, 0);
	assert_true(walked > 50);
	descend(100);
	assert_true(known > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stack_cache__is_the_walk),
		cmocka_unit_test(test_stack_cache__the_limit_is_part_of_it),
		cmocka_unit_test(test_stack_cache__the_extra_key_is_part_of_it),
		cmocka_unit_test(test_stack_cache__forgets_what_it_knew_with_the_modules),
		cmocka_unit_test(test_stack_cache__another_stack_is_walked),
	};
	cuf_modules_init(NULL); /* the executable's segments may have gaps */
	if (cuf_walker_init(&known_walker, 1) || cuf_walker_init(&walker, 1))
		return 1;
	return cmocka_run_group_tests_name("stack_cache", tests, NULL, NULL);
}
