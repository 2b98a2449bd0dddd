/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few stacks are kept and claimed without waiting. When all are in use, one is mapped for the
 * occasion. A stack stays claimed when the program leaves by siglongjmp, from a handler that
 * interrupted us: its mapping is lost, and nothing else.
 */
#include "interpose/platform/side_stack.h"

#include <stdint.h>
#include <sys/mman.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/page.h"
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

/* A page below catches an overflow. One above keeps the kernel from joining the stack with the
 * recording to one mapping, whose resident bytes would then be the program's. */
enum { STACK_BYTES = 64 * 1024, KEPT = 4 };

static long guard_bytes(void) { return (long)cuf_page_bytes(); }
static long all_bytes(void) { return STACK_BYTES + 2 * guard_bytes(); }

/* With rules for unwinders, so that a debugger sees both stacks. */
void cuf_switch_stack(void (*run)(void *), void *argument, void *top);

#if defined __x86_64__
__asm__(".text\n"
	".p2align 4\n"
	".hidden cuf_switch_stack\n"
	".globl cuf_switch_stack\n"
	".type cuf_switch_stack, @function\n"
	"cuf_switch_stack:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	mov %rdx, %rsp\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size cuf_switch_stack, . - cuf_switch_stack\n");
#elif defined __aarch64__
__asm__(".text\n"
	".p2align 4\n"
	".hidden cuf_switch_stack\n"
	".globl cuf_switch_stack\n"
	".type cuf_switch_stack, %function\n"
	"cuf_switch_stack:\n"
	"	.cfi_startproc\n"
	"	stp x29, x30, [sp, -16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset x29, -16\n"
	"	.cfi_offset x30, -8\n"
	"	mov x29, sp\n"
	"	.cfi_def_cfa_register x29\n"
	"	mov sp, x2\n"
	"	mov x9, x0\n"
	"	mov x0, x1\n"
	"	blr x9\n"
	"	mov sp, x29\n"
	"	ldp x29, x30, [sp], 16\n"
	"	.cfi_def_cfa sp, 0\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size cuf_switch_stack, . - cuf_switch_stack\n");
#else
#error "port cuf_switch_stack to this machine"
#endif

static struct kept {
	uint32_t claimed;
	uintptr_t at;            /* 0: not mapped yet */
} kept[KEPT];

/* Threads that a fork left behind in the parent use none of the child's. */
static void forget_claims(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		__atomic_store_n(&kept[i].claimed, 0, __ATOMIC_RELAXED);
}
CUF_AT_FORK_CHILD(forget_claims);

/* 0: no memory. */
static uintptr_t map_stack(void)
{
	long guard = guard_bytes();
	long at = cuf_sys(SYS_mmap, 0, all_bytes(), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (cuf_sys_failed(at))
		return 0;
	if (!cuf_sys(SYS_mprotect, at + guard, STACK_BYTES, PROT_READ | PROT_WRITE, 0, 0, 0))
		return (uintptr_t)at;
	cuf_sys(SYS_munmap, at, all_bytes(), 0, 0, 0, 0);
	return 0;
}

/* One that is perhaps not mapped yet. NULL: all are in use. */
static struct kept *claim(void)
{
	for (unsigned i = 0; i < KEPT; i++)
		if (!__atomic_load_n(&kept[i].claimed, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&kept[i].claimed, 1, __ATOMIC_ACQUIRE))
			return &kept[i];
	return NULL;
}

static void release(struct kept *stack)
{
	if (stack)
		__atomic_store_n(&stack->claimed, 0, __ATOMIC_RELEASE);
}

bool cuf_on_side_stack(void (*run)(void *argument), void *argument)
{
	struct kept *stack = claim();
	uintptr_t at = stack ? stack->at : 0;

	if (!at && cuf_sandbox_entered()) { /* a filter may kill for mmap */
		release(stack);
		run(argument);
		return true;
	}
	if (!at)
		at = map_stack();
	if (!at) {
		release(stack);
		return false;
	}
	if (stack)
		stack->at = at;
	cuf_switch_stack(run, argument, (void *)(at + guard_bytes() + STACK_BYTES));
	release(stack);
	if (!stack)
		cuf_sys(SYS_munmap, (long)at, all_bytes(), 0, 0, 0, 0);
	return true;
}
