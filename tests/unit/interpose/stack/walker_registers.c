/* SPDX-License-Identifier: Apache-2.0 */
/* The walker where a signal arrived, and where hand-written assembly has the frame in registers. */
#include "tests/unit/fixtures/machine_code.h"
#include "tests/unit/fixtures/walker.h"

/* A signal at the first instruction of a function: the frame is that function, not the one before
 * it. */
static void handle_fault(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	look();
	return_from_leaf(interrupted);
}

static void signal_at_a_first_instruction(void **state)
{
	struct sigaction action = {.sa_sigaction = handle_fault, .sa_flags = SA_SIGINFO}, before;
	sigaction(SIGILL, &action, &before);
	test_trap();
	sigaction(SIGILL, &before, NULL);
	assert_agrees(true);
	assert_true(holds_address_of((char *)&test_trap + 1, 1));
	assert_true(holds_address_of(&signal_at_a_first_instruction, 1024));
	assert_int_equal(stop, CUF_STOP_END);
}

#if defined __x86_64__
/*
 * Hand-written assembly as in libcrypto: the caller's stack pointer is in a register while the
 * frame is made, then in a slot of the frame; the frame pointer holds data.
 */
void test_old_sp(body *run);
__asm__(".text\n.globl test_old_sp\n.type test_old_sp,@function\ntest_old_sp:\n.cfi_startproc\nmov %rsp,%rax\n"
        ".cfi_def_cfa_register %rax\npush %rbp\n.cfi_offset %rbp,-16\nmov $-1,%rbp\nud2\nsub $80,%rsp\nmov %rax,24(%rsp)\n"
        ".cfi_escape 0x0f, 5, 0x77, 24, 0x06, 0x23, 8\ncall *%rdi\nmov 24(%rsp),%rax\n.cfi_def_cfa %rax,8\n"
        "mov -8(%rax),%rbp\n.cfi_restore %rbp\nmov %rax,%rsp\n.cfi_def_cfa_register %rsp\nret\n.cfi_endproc\n"
        ".size test_old_sp,.-test_old_sp\n");

static bool look_at_fault;
static void step_over_fault(int signal, siginfo_t *info, void *context)
{
	if (look_at_fault)
		look();
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}
static void look_at_nothing(void) {}

static void the_old_stack_pointer_in_a_register_and_in_a_slot(void **state)
{
	struct sigaction action = {.sa_sigaction = step_over_fault, .sa_flags = SA_SIGINFO}, before;
	for (int in_slot = 0; in_slot < 2; in_slot++) {
		look_at_fault = !in_slot;
		sigaction(SIGILL, &action, &before);
		test_old_sp(in_slot ? look : look_at_nothing);
		sigaction(SIGILL, &before, NULL);
		assert_agrees(true);
		assert_true(holds_address_of(&test_old_sp, 64));
		assert_true(
			holds_address_of(&the_old_stack_pointer_in_a_register_and_in_a_slot, 1024));
		assert_int_equal(stop, CUF_STOP_END);
	}
}

/* As ld.so's _dl_runtime_resolve: the CFA is in rbx while another function, which saves it, runs.
 */
void test_in_rbx(body *run);
void test_saves_rbx(body *run);
__asm__(".text\n.type test_saves_rbx,@function\ntest_saves_rbx:\n.cfi_startproc\nud2\npush %rbx\n.cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %rbx,-16\nxor %ebx,%ebx\ncall *%rdi\npop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n"
        ".cfi_endproc\n.size test_saves_rbx,.-test_saves_rbx\n"
        ".globl test_in_rbx\n.type test_in_rbx,@function\ntest_in_rbx:\n.cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n"
        ".cfi_offset %rbx,-16\nmov %rsp,%rbx\n.cfi_def_cfa_register %rbx\nsub $200,%rsp\nand $-64,%rsp\ncall test_saves_rbx\n"
        "mov %rbx,%rsp\n.cfi_def_cfa_register %rsp\npop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbx\nret\n.cfi_endproc\n"
        ".size test_in_rbx,.-test_in_rbx\n");

static void the_cfa_in_a_register_that_calls_keep(void **state)
{
	struct sigaction action = {.sa_sigaction = step_over_fault, .sa_flags = SA_SIGINFO}, before;
	for (int is_saved = 0; is_saved < 2; is_saved++) {
		look_at_fault = !is_saved;
		sigaction(SIGILL, &action, &before);
		test_in_rbx(is_saved ? look : look_at_nothing);
		sigaction(SIGILL, &before, NULL);
		assert_agrees(true);
		assert_true(holds_address_of(&test_in_rbx, 64));
		assert_true(holds_address_of(&the_cfa_in_a_register_that_calls_keep, 1024));
		assert_int_equal(stop, CUF_STOP_END);
	}
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_at_a_first_instruction),
#if defined __x86_64__
		cmocka_unit_test(the_old_stack_pointer_in_a_register_and_in_a_slot),
		cmocka_unit_test(the_cfa_in_a_register_that_calls_keep),
#endif
	};
	return cmocka_run_group_tests_name("walker_registers", tests, set_up, NULL);
}
