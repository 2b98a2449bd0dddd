/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may record now. The gate is one word on a page of its own, which the kernel wipes in a forked
 * child (MADV_WIPEONFORK). A thread may record while its own generation equals the gate's. 0 closes
 * the gate: the recorder is off, a hand-over is running, or this is a forked child. One load and
 * one comparison keep a child from ever writing into its parent's recording, however it was forked.
 *
 * Contract: any thread, no lock, errno untouched. Opening, closing and cuf_gate_begin_recording are
 * for lifecycle.c and handover.c only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

extern uint64_t *cuf_gate;       /* never NULL */
#define CUF_GENERATION_NEW 1u    /* of a thread that never attached */

/*
 * What the recorder keeps of a thread in static TLS. Initial-exec, because other models may call
 * malloc at first use.
 */
struct cuf_tls {
	struct cuf_thread_state *thread;
	uint64_t generation;     /* of the recording that `thread` belongs to */
	int64_t countdown_bytes; /* to the next host sample */
	struct cuf_host_outer *outer; /* the Python allocation that the thread is inside of */
	uintptr_t label_frame;
	uintptr_t call_frame;    /* of the outermost driver call */
	uint16_t label;
	uint8_t guard;
	uint8_t driver_calls;    /* nested driver calls; those below the first are not recorded */
	uint8_t role;            /* enum cuf_role of the blocks that the thread allocates now */
	uint8_t is_shared;       /* another task runs with these words */
	uint8_t creators;        /* how many creators' stacks stand behind this thread's */
	uint8_t may_take_spare;  /* a request of the thread was refused */
	uint32_t creator;        /* the stack that created the thread; 0: unknown, or main */
};
extern __thread struct cuf_tls cuf_tls __attribute__((tls_model("initial-exec")));

/* True when this thread is attached to the current recording: one load and one comparison. */
static inline bool cuf_thread_is_attached(void)
{
	return cuf_tls.generation == __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE);
}

/*
 * True when a call with this frame shows that the call with the outer frame was left. A handler may
 * leave a call by siglongjmp, and then its end never comes. Stacks grow downwards, so whatever the
 * outer call is still doing has a lower frame. Frames far away belong to another stack.
 */
static inline bool cuf_frame_was_left(uintptr_t outer, uintptr_t frame)
{
	enum { SAME_STACK_BYTES = 1 << 20 };

	return frame >= outer && frame - outer < SAME_STACK_BYTES;
}

enum cuf_gate_state {
	CUF_GATE_BOOT,      /* before cuf_recorder_start */
	CUF_GATE_ON,
	CUF_GATE_SWITCHING, /* a hand-over is running */
	CUF_GATE_OFF        /* permanently */
};

enum cuf_gate_state cuf_gate_state(void);
static inline bool cuf_gate_is_on(void) { return cuf_gate_state() == CUF_GATE_ON; }

/* The recorded process. A vfork child runs in its parent's memory with another process id. */
uint32_t cuf_gate_pid(void);
uint32_t cuf_gate_my_pid(void);

/*
 * True in the recorded process. False in a vfork child, and in a forked child before its recording
 * begins. A child in a new pid namespace may have its parent's process id (both are 1), so the
 * process id is not enough.
 */
bool cuf_gate_is_home(void);
/* True in a vfork child: its memory is the recorded process's, and all else is its own. */
bool cuf_gate_is_vfork_child(void);
/* True in a forked child in which nobody has claimed the gate yet. */
bool cuf_gate_was_wiped(void);
/* One thread of a forked child gets true: it begins the child's recording. */
bool cuf_gate_claim(void);

/* Maps the page. False: this kernel cannot wipe memory in a forked child. */
bool cuf_gate_install(void);
/* A recording of process `pid` begins, behind the closed gate. */
void cuf_gate_begin_recording(uint32_t pid);
void cuf_gate_open(void);
/*
 * From on to switching; the gate is closed then. False: it was not on, or another thread was first.
 */
bool cuf_gate_begin_switch(void);
/* For the rest of this process. False: it was off already. */
bool cuf_gate_turn_off(void);

/*
 * Entering announces the thread (it marks its slot busy) and then looks at the gate again. A
 * hand-over closes the gate and then waits for busy slots. Each must see the other's store. The
 * hand-over happens once in a process's life and entering millions of times a second, so the
 * hand-over pays for both: cuf_gate_fence_threads has the kernel put a fence into every running
 * thread (membarrier). Where the kernel has none, each entering pays (cuf_gate_must_fence).
 */
extern bool cuf_gate_must_fence;
bool cuf_gate_fence_threads(void); /* false: could not be done */
