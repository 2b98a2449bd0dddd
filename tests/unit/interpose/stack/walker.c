/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker against libunwind, frame by frame, wherever a thread of an inference server may be:
 * deep, in a signal handler, on a fiber, in code without unwind information. libunwind is loaded
 * privately; linked, it would replace the program's _Unwind_*.
 */
#include "tests/unit/fixtures/machine_code.h"
#include "tests/unit/fixtures/walker.h"

/* ---- shapes of frames ---- */

static NOINLINE int frame_plain(body *run, int x)
{
	run();
	return x + 1;
}

static NOINLINE int frame_large(body *run, int x)
{
	volatile char room[70000];
	room[x & 7] = (char)x;
	run();
	return room[x & 7] + frame_plain(look, x);
}

static NOINLINE __attribute__((optimize("no-omit-frame-pointer"))) int frame_with_pointer(body *run,
                                                                                          int x)
{
	run();
	return x + 2;
}

/* the frame pointer register holds data here and is saved at an unusual place */
static NOINLINE int frame_many_registers(body *run, int a, int b, int c, int d)
{
	int e = a * b, f = b * c, g = c * d, h = d * a;
	run();
	run();
	return a + b + c + d + e + f + g + h;
}

static NOINLINE int frame_alloca(body *run, int x)
{
	volatile char *p = __builtin_alloca((size_t)x * 16 + 16);
	p[0] = 1;
	run();
	return p[0];
}

/* more alignment than the ABI's and a variable size: gcc finds the CFA through a slot of the frame
 */
static NOINLINE int frame_realigned(body *run, int x)
{
	_Alignas(64) volatile char aligned[64];
	volatile char *p = __builtin_alloca((size_t)x + 1);
	aligned[0] = p[0] = (char)x;
	run();
	return aligned[0] + p[0];
}

static NOINLINE int frame_arguments_on_stack(body *run, int a, int b, int c, int d, int e, int f,
                                             int g, int h)
{
	run();
	return a + b + c + d + e + f + g + h;
}

static void shapes(void);
static int shape;

static void shapes(void)
{
	static volatile int kept;
	body *run = shape > 0 ? shapes : look;
	int now = shape--;
	switch (now % 7) {
	case 0: kept = frame_plain(run, now); break;
	case 1: kept = frame_large(run, now); break;
	case 2: kept = frame_with_pointer(run, now); break;
	case 3: kept = frame_many_registers(run, now, 2, 3, 4); break;
	case 4: kept = frame_alloca(run, now); break;
	case 5: kept = frame_realigned(run, now); break;
	default: kept = frame_arguments_on_stack(run, now, 2, 3, 4, 5, 6, 7, 8);
	}
	(void)kept;
}

static void frames_of_all_shapes(void **state)
{
	shape = 0;
	for (int depth = 0; depth < 40; depth++) {
		cap = MAX;
		shape = depth;
		shapes();
		shape = depth;
		frame_realigned(look, 5);
		assert_agrees(false);
		assert_int_equal(stop, CUF_STOP_END);
	}
	for (int depth = 0; depth < 40; depth++) {
		shape = depth;
		frame_many_registers(shapes, 1, 2, 3, 4);
		assert_agrees(false);
		assert_int_equal(stop, CUF_STOP_END);
	}
}

static NOINLINE int recurse(int depth)
{
	volatile int kept = depth;
	if (depth)
		kept += recurse(depth - 1);
	else
		look();
	return kept;
}

static void deeper_than_the_cap(void **state)
{
	static const unsigned caps[] = {1, 2, 64, 256, 300};
	for (unsigned i = 0; i < sizeof caps / sizeof *caps; i++) {
		cap = caps[i];
		recurse(400);
		assert_int_equal(count, cap);
		assert_int_equal(stop, CUF_STOP_DEPTH);
		if (cap > 1)
			assert_agrees(false);
	}
	cap = MAX;
	recurse(300);
	assert_agrees(false);
	assert_true(count > 300);
	assert_int_equal(stop, CUF_STOP_END);
}

/* exactly as many frames as there is room: the end is reached, and nothing was cut */
static void as_deep_as_the_cap(void **state)
{
	cap = MAX;
	recurse(10);
	cap = count;
	recurse(10);
	assert_int_equal(count, cap);
	assert_int_equal(stop, CUF_STOP_END);
	cap = count - 1;
	recurse(10);
	assert_int_equal(stop, CUF_STOP_DEPTH);
	cap = MAX;
}

/* ---- other stacks ---- */

static NOINLINE void frames_above(void (*run)(uintptr_t))
{
	run((uintptr_t)__builtin_frame_address(0));
	__asm__ volatile("");
}

static NOINLINE void look_above(uintptr_t above)
{
	count = cuf_walk(&walker, cuf_modules_generation(), above, frames, cap, &stop);
	__asm__ volatile("");
}

static void frames_below_a_hook_are_left_out(void **state)
{
	frames_above(look_above);
	assert_true(frames[0] - (uintptr_t)&frames_below_a_hook_are_left_out < 64);
	assert_int_equal(stop, CUF_STOP_END);
}

static volatile int handled;

static void handler(int signal)
{
	handled = signal;
	shapes();
}

static void with_handler(int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, before;
	sigaction(SIGUSR1, &action, &before);
	for (int depth = 0; depth < 8; depth++) {
		shape = depth;
		raise(SIGUSR1);
		assert_agrees(true);
		assert_int_equal(stop, CUF_STOP_END);
		assert_true(holds_address_of(&with_handler, 1024));
	}
	sigaction(SIGUSR1, &before, NULL);
	assert_int_equal(handled, SIGUSR1);
}

static void across_a_signal(void **state) { with_handler(SA_NODEFER); }

static void across_a_signal_on_another_stack(void **state)
{
	size_t bytes = 256 << 10;
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = room, .ss_size = bytes}, before;
	skip_without_guarded_reads();
	assert_ptr_not_equal(room, MAP_FAILED);
	sigaltstack(&stack, &before);
	with_handler(SA_ONSTACK);
	sigaltstack(&before, NULL);
	munmap(room, bytes);
}

static ucontext_t back, fiber;
static void in_fiber(void)
{
	shape = 12;
	frame_large(shapes, 3);
	shape = 0;
	errno = 78;
	frame_realigned(look, 3);
	assert_int_equal(errno, 78);
}

static void on_a_fiber(void **state)
{
	size_t bytes = 1 << 20;
	char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	skip_without_guarded_reads();
	assert_ptr_not_equal(room, MAP_FAILED);
	mprotect(room, 4096, PROT_NONE);
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = room;
	fiber.uc_stack.ss_size = bytes;
	fiber.uc_link = &back;
	makecontext(&fiber, in_fiber, 0);
	swapcontext(&back, &fiber);
	assert_agrees(false);
	assert_true(stop == CUF_STOP_END ||
	            stop == CUF_STOP_NO_RULE); /* some versions of glibc: __start_context */
	assert_true(holds_address_of(&in_fiber, 1024));
	recurse(20); /* and back on the own stack */
	assert_agrees(false);
	munmap(room, bytes);
}


static void damaged_frames_end_the_walk(void **state)
{
	char *trap = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int (*kept)(void **, int) = oracle;
	uintptr_t here = (uintptr_t)&trap;
	skip_without_guarded_reads();
	assert_ptr_not_equal(trap, MAP_FAILED);
	mprotect(trap + 4096, 8192, PROT_NONE);
	oracle = NULL; /* libunwind may fault here */
	{
		uintptr_t wild[] = { 0,
			             1,
			             8,
			             4096,
			             UINTPTR_MAX,
			             UINTPTR_MAX - 7,
			             UINTPTR_MAX / 2 + 1,
			             here - 65536,
			             here + 1,
			             (uintptr_t)trap,
			             (uintptr_t)trap + 4088,
			             (uintptr_t)trap + 4096,
			             (uintptr_t)trap + 8192,
			             walker.stack_high - 8,
			             walker.stack_high };
		for (unsigned i = 0; i < sizeof wild / sizeof *wild; i++) {
			test_wild(wild[i], look);
			assert_in_range(count, 2, MAX);
			/* else the word there may be 0, as at an outermost frame */
			if (wild[i] % 8 == 0)
				assert_int_not_equal(stop, CUF_STOP_END);
		}
	}
	oracle = kept;
	munmap(trap, 12288);
}

static void *in_thread(void *walked)
{
	struct cuf_walker kept = walker;
	memset(&walker, 0, sizeof walker);
	assert_int_equal(cuf_walker_init(&walker, 0), 0);
	shape = 20;
	shapes();
	recurse(30);
	*(unsigned *)walked = count;
	if (oracle)
		assert_agrees(false);
	assert_int_equal(stop, CUF_STOP_END);
	assert_true(walker.stack_low < walker.stack_high);
	walker = kept;
	return NULL;
}

static void in_another_thread(void **state)
{
	pthread_t thread;
	unsigned walked = 0;
	assert_int_equal(pthread_create(&thread, NULL, in_thread, &walked), 0);
	pthread_join(thread, NULL);
	assert_true(walked > 31);
}

/* Far deeper than before, at once: walked carefully, with the same result. */
static NOINLINE int jump_down(size_t bytes)
{
	volatile char *p = __builtin_alloca(bytes);
	p[0] = 1;
	look();
	return p[0];
}

static void *deep_at_once(void *unused)
{
	struct cuf_walker kept = walker;
	memset(&walker, 0, sizeof walker);
	assert_int_equal(cuf_walker_init(&walker, 0), 0);
	look();
	jump_down(24 << 20);
	assert_int_equal(stop, CUF_STOP_END);
	if (oracle)
		assert_agrees(false);
	walker = kept;
	return NULL;
}

static void deep_at_once_in_a_large_stack(void **state)
{
	pthread_attr_t attributes;
	pthread_t thread;

	skip_without_guarded_reads();
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 20);
	assert_int_equal(pthread_create(&thread, &attributes, deep_at_once, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

/* ---- code without unwind information ---- */

static void call_back(const unsigned char *code, size_t bytes)
{
	unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	                           -1, 0);
	assert_ptr_not_equal(page, MAP_FAILED);
	memcpy(page, code, bytes);
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	((void (*)(body *))(uintptr_t)page)(look);
	assert_true(holds_address_of(page, bytes));
	munmap(page, 4096);
}

static void jit_code_ends_the_walk(void **state)
{
	call_back(test_ends, sizeof test_ends);
	assert_int_equal(stop, CUF_STOP_NO_RULE);
	assert_int_equal(count, 2);
}

static void jit_code_with_a_frame_pointer_is_crossed(void **state)
{
	call_back(test_crossed, sizeof test_crossed);
	assert_int_equal(stop, CUF_STOP_END);
	assert_true(holds_address_of(&jit_code_with_a_frame_pointer_is_crossed, 1024));
}

static void jit_code_in_jit_code_is_crossed(void **state)
{
	call_back(test_nested, sizeof test_nested);
	assert_int_equal(stop, CUF_STOP_END);
	assert_true(holds_address_of(&jit_code_in_jit_code_is_crossed, 1024));
}

static void jit_code_whose_chain_leads_nowhere(void **state)
{
	call_back(test_nowhere, sizeof test_nowhere);
	assert_int_equal(stop, CUF_STOP_NO_RULE);
	assert_int_equal(count, 2);
}

/* ---- rules ---- */

static void rules_are_dropped_with_the_generation(void **state)
{
	uintptr_t ip;
	struct cuf_rule *rule = NULL;
	look();
	ip = frames[2];
	for (unsigned i = 0; i < CUF_RULES_NEAR; i++)
		if (walker.rules[i].ip == ip)
			rule = &walker.rules[i];
	assert_non_null(rule);
	rule->kind = CUF_RULE_END; /* a rule that is wrong */
	look();
	assert_int_equal(count, 3);
	assert_int_equal(stop, CUF_STOP_END);
	count = cuf_walk(&walker, cuf_modules_generation() + 1, 0, frames, MAX, &stop);
	assert_true(count > 3);
}

static void errno_is_kept(void **state)
{
	/* all rules are compiled again */
	count = cuf_walk(&walker, cuf_modules_generation() + 2, 0, frames, MAX, &stop);
	errno = 78;
	cuf_modules_note((uintptr_t)&dlsym);
	cuf_modules_changed();
	look();
	assert_int_equal(errno, 78);
}

static void without_a_cache_stacks_are_empty(void **state)
{
	struct cuf_walker none = {0};
	uint8_t why = 0;
	assert_int_equal(cuf_walk(&none, 1, 0, frames, MAX, &why), 0);
	assert_int_equal(why, CUF_STOP_UNSUPPORTED);
}

#if defined __x86_64__
/* A stub like the linker's, and code after it: the slot's number has been pushed from byte 11 on.
 */
void test_plt(void);
__asm__(".text\n.p2align 4\n.type test_plt,@function\ntest_plt:\n.cfi_startproc\n"
        ".cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22\n.skip 32, 0x90\n"
        ".cfi_def_cfa 7, 24\nret\n.cfi_endproc\n.size test_plt,.-test_plt\n");

static void rules_of_a_plt(void **state)
{
	uintptr_t at = (uintptr_t)&test_plt;
	for (unsigned i = 0; i < 32; i++) {
		struct cuf_rule rule = cuf_rule_compile(at + i + 1);
		assert_int_equal(rule.kind, CUF_RULE_SP);
		assert_int_equal(rule.cfa_offset, i % 16 >= 11 ? 16 : 8);
	}
	assert_int_equal(cuf_rule_compile(at + 33).cfa_offset, 24);
}

#endif

/* Every address of libc and of this program: no rule compiles to nonsense, nothing faults. */
static void rules_of_whole_objects(void **state)
{
	uintptr_t anchors[] = { (uintptr_t)&gnu_get_libc_version,
		                (uintptr_t)&rules_of_whole_objects };
	unsigned long kinds[16] = {0};
	for (unsigned i = 0; i < 2; i++) {
		struct cuf_object object;
		assert_true(cuf_object_find(anchors[i], &object));
		for (uintptr_t at = object.start; at < object.end; at += 3) {
			struct cuf_rule rule = cuf_rule_compile(at);
			unsigned kind = rule.kind & ~CUF_RULE_OWN;
			kinds[kind & 15]++;
			assert_true(kind != CUF_RULE_EMPTY && kind <= CUF_RULE_SP_LOW);
			if (kind != CUF_RULE_SP)
				continue;
			/* the hot loop loads between sp and the CFA without a look */
			assert_true(rule.cfa_offset >= 8);
			assert_true((uintptr_t)rule.cfa_offset >= cuf_rule_return_below(&rule));
			assert_true(rule.cfa_offset >= -cuf_rule_fp_offset(&rule));
		}
	}
	assert_true(kinds[CUF_RULE_SP] > 100000);
#if defined __x86_64__
	assert_true(kinds[CUF_RULE_SP_LOW] > 0); /* after the pop of an epilogue */
	assert_true(kinds[CUF_RULE_SIGNAL] > 0); /* elsewhere the kernel's page has it */
#endif
	assert_true(kinds[CUF_RULE_END] > 0);
	assert_true(kinds[CUF_RULE_SP] > 50 * kinds[CUF_RULE_UNSUPPORTED]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_of_all_shapes),
		cmocka_unit_test(deeper_than_the_cap),
		cmocka_unit_test(as_deep_as_the_cap),
		cmocka_unit_test(frames_below_a_hook_are_left_out),
		cmocka_unit_test(across_a_signal),
		cmocka_unit_test(across_a_signal_on_another_stack),
		cmocka_unit_test(on_a_fiber),
		cmocka_unit_test(damaged_frames_end_the_walk),
		cmocka_unit_test(in_another_thread),
		cmocka_unit_test(deep_at_once_in_a_large_stack),
		cmocka_unit_test(jit_code_ends_the_walk),
		cmocka_unit_test(jit_code_with_a_frame_pointer_is_crossed),
		cmocka_unit_test(jit_code_in_jit_code_is_crossed),
		cmocka_unit_test(jit_code_whose_chain_leads_nowhere),
		cmocka_unit_test(rules_are_dropped_with_the_generation),
		cmocka_unit_test(errno_is_kept),
		cmocka_unit_test(without_a_cache_stacks_are_empty),
#if defined __x86_64__
		cmocka_unit_test(rules_of_a_plt),
#endif
		cmocka_unit_test(rules_of_whole_objects),
	};
	return cmocka_run_group_tests_name("walker", tests, set_up, NULL);
}
