/* SPDX-License-Identifier: Apache-2.0 */
/* The gate's page, its state, and the fences. */
#include "interpose/process/gate.h"

#include <sys/mman.h>
#include "interpose/platform/sandbox.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
enum { GATE_BYTES = 4096 };

/* membarrier(2): PRIVATE_EXPEDITED and its registration */
enum { FENCE_ALL = 1 << 3, FENCE_PREPARE = 1 << 4 };

__thread struct cuf_tls cuf_tls __attribute__((tls_model("initial-exec"))) = {
	.generation = CUF_GENERATION_NEW
};

/* Words of the page. HOME is 0 only in a forked child whose recording nobody has begun yet. */
enum { GENERATION, HOME, GATE_WORDS };

static uint64_t closed_gate[GATE_WORDS] = { 0, 1 }; /* until the page is mapped nobody records */
uint64_t *cuf_gate = closed_gate;
bool cuf_gate_must_fence = true;

static uint64_t generation = CUF_GENERATION_NEW;
static enum cuf_gate_state gate_state = CUF_GATE_BOOT;
static uint32_t recorded_pid;

enum cuf_gate_state cuf_gate_state(void) { return __atomic_load_n(&gate_state, __ATOMIC_ACQUIRE); }
uint32_t cuf_gate_pid(void) { return recorded_pid; }
uint32_t cuf_gate_my_pid(void) { return (uint32_t)cuf_sys(SYS_getpid, 0, 0, 0, 0, 0, 0); }

/* A page of its own: the kernel wipes whole pages. */
bool cuf_gate_install(void)
{
	long at = cuf_sys_mmap(NULL, GATE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cuf_sys_failed(at) || cuf_sys_madvise((void *)at, GATE_BYTES, MADV_WIPEONFORK))
		return false;
	cuf_gate = (uint64_t *)at;
	cuf_gate[HOME] = 1;
	return true;
}

/* False in a forked child until its own recording has begun. */
bool cuf_gate_is_home(void)
{
	return __atomic_load_n(&cuf_gate[HOME], __ATOMIC_ACQUIRE) &&
	       cuf_gate_my_pid() == recorded_pid;
}

bool cuf_gate_is_vfork_child(void)
{
	return !cuf_gate_was_wiped() && cuf_gate_my_pid() != recorded_pid;
}

bool cuf_gate_was_wiped(void) { return !__atomic_load_n(&cuf_gate[HOME], __ATOMIC_ACQUIRE); }

bool cuf_gate_claim(void)
{
	uint64_t wiped = 0;

	return __atomic_compare_exchange_n(&cuf_gate[HOME], &wiped, 1, false, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/* The fence is registered anew in a forked child, whose kernel state does not inherit it. */
void cuf_gate_begin_recording(uint32_t pid)
{
	recorded_pid = pid;
	generation++;
	if (!cuf_sandbox_entered())
		cuf_gate_must_fence = cuf_sys(SYS_membarrier, FENCE_PREPARE, 0, 0, 0, 0, 0) != 0;
}

/* A fault may have turned the recorder off while it was switching: off is final. */
void cuf_gate_open(void)
{
	enum cuf_gate_state before = cuf_gate_state();
	while (before != CUF_GATE_OFF)
		if (__atomic_compare_exchange_n(&gate_state, &before, CUF_GATE_ON, false,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_store_n(cuf_gate, generation, __ATOMIC_SEQ_CST);
			break;
		}
	if (cuf_gate_state() == CUF_GATE_OFF) /* it came between the two stores */
		__atomic_store_n(cuf_gate, 0, __ATOMIC_SEQ_CST);
}

/* Closes the gate. One thread switches at a time: false when another one does, or the recorder is
 * off. */
bool cuf_gate_begin_switch(void)
{
	enum cuf_gate_state on = CUF_GATE_ON;
	if (!__atomic_compare_exchange_n(&gate_state, &on, CUF_GATE_SWITCHING, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(cuf_gate, 0, __ATOMIC_SEQ_CST);
	return true;
}

/* The state first: a thread that then finds the gate closed does not wait for it to open. */
bool cuf_gate_turn_off(void)
{
	if (__atomic_exchange_n(&gate_state, CUF_GATE_OFF, __ATOMIC_ACQ_REL) == CUF_GATE_OFF)
		return false;
	__atomic_store_n(cuf_gate, 0, __ATOMIC_SEQ_CST);
	return true;
}

/* Afterwards every thread sees the closed gate. Without membarrier the threads fence themselves
 * when they enter. */
bool cuf_gate_fence_threads(void)
{
	return cuf_gate_must_fence || !cuf_sys(SYS_membarrier, FENCE_ALL, 0, 0, 0, 0, 0);
}
