/* SPDX-License-Identifier: Apache-2.0 */
/* Thread slots: found at a thread's first event, recycled when the thread is dead, never destroyed. */
#include "interpose/process/thread.h"

#include <sys/mman.h>
#include "interpose/platform/clock.h"
#include "interpose/store/dropped.h"
#include "interpose/store/liveness.h"
#include "interpose/platform/options.h"
#include "interpose/store/recording.h"
#include "interpose/store/ring.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/sandbox.h"
#include "interpose/record/state.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

__thread struct cuf_tls cuf_tls __attribute__((tls_model("initial-exec"))) = { .generation = CUF_GENERATION_NEW };

enum { SLOTS_MAX = 8192 };
static struct cuf_thread_state *states[SLOTS_MAX];
static uint32_t slots_used; /* slots ever given out */
static uint32_t hand;       /* where the search for dead threads goes on */

void cuf_thread_fork(void) { slots_used = hand = 0; }

/* A slot whose thread died, or whose thread had our id (so it died), now ours. -1: none among `look` candidates. */
static int recycle_slot(uint32_t tid, unsigned look)
{
	uint32_t used = __atomic_load_n(&slots_used, __ATOMIC_RELAXED);
	if (used > cuf_recording.thread_count)
		used = cuf_recording.thread_count;
	for (unsigned i = 0; i < look && i < used; i++) {
		uint32_t index = __atomic_add_fetch(&hand, 1, __ATOMIC_RELAXED) % used;
		struct cuf_thread *slot = &cuf_recording.threads[index];
		uint32_t owner = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
		if (!owner || owner == cuf_recording.header->pid /* the main thread's, which seldom ends first */ ||
		    (owner != tid && cuf_thread_alive(owner)))
			continue;
		if (!__atomic_compare_exchange_n(&slot->tid, &owner, tid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE); /* pairs with the dead thread's last leave: all it wrote is seen */
		return (int)index;
	}
	return -1;
}

static int take_slot(uint32_t tid)
{
	unsigned limit = cuf_recording.thread_count < SLOTS_MAX ? cuf_recording.thread_count : SLOTS_MAX;
	int index = recycle_slot(tid, 4);
	if (index >= 0)
		return index;
	if (__atomic_load_n(&slots_used, __ATOMIC_RELAXED) < limit) {
		uint32_t fresh = __atomic_fetch_add(&slots_used, 1, __ATOMIC_RELAXED);
		if (fresh < limit) {
			__atomic_store_n(&cuf_recording.threads[fresh].tid, tid, __ATOMIC_RELEASE);
			return (int)fresh;
		}
	}
	return recycle_slot(tid, limit);
}

static struct cuf_thread_state *state_of(unsigned index)
{
	struct cuf_thread_state *state = states[index];
	if (!state) {
		long at = cuf_sys_mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (cuf_sys_failed(at))
			return NULL;
		state = states[index] = (struct cuf_thread_state *)at; /* the slot is ours: nobody else writes here */
	}
	return state;
}

static void name_thread(struct cuf_thread *slot)
{
	long fd;
	for (unsigned i = 0; i < sizeof slot->name; i++)
		slot->name[i] = 0;
	fd = cuf_sys(SYS_prctl, 16 /* PR_GET_NAME */, (long)slot->name, 0, 0, 0, 0);
	(void)fd;
}

struct cuf_thread_state *cuf_thread_attach(void)
{
	uint64_t generation = cuf_state_admit();
	struct cuf_thread_state *t;
	uint32_t tid;
	int index;
	if (!generation)
		return NULL;
	if (cuf_tls.thread && cuf_tls.generation == generation)
		return cuf_tls.thread; /* only waited for the hand-over */
	tid = (uint32_t)cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
	index = take_slot(tid);
	if (index < 0 || !(t = state_of((unsigned)index))) {
		cuf_count_dropped(CUF_LOST_THREADS);
		return NULL;
	}
	t->writer.slot = &cuf_recording.threads[index];
	t->writer.slot_index = t->stack.slot_index = (unsigned)index;
	t->writer.tid = tid;
	__atomic_store_n(&t->writer.slot->generation, t->writer.slot->generation + 1, __ATOMIC_RELAXED);
	t->writer.slot->start_ns = cuf_now_ns();
	__atomic_store_n(&t->writer.slot->busy, 0, __ATOMIC_RELAXED);
	name_thread(t->writer.slot);
	cuf_ring_inherit(&t->writer);
	t->host_clock_countdown = 0;
	t->host_now_ns = 0;
	t->random = (t->writer.slot->start_ns ^ (uint64_t)tid << 32) * 0x9E3779B97F4A7C15ull | 1;
	t->framework_countdown_bytes = (int64_t)cuf_sample_interval(&t->random, CUF_FRAMEWORK_SAMPLE_MEAN_BYTES);
	cuf_walker_init(&t->stack.walker, tid == cuf_recording.header->pid);
	cuf_tls.thread = t;
	if (cuf_tls.generation != CUF_GENERATION_NEW) { /* forked inside a call that will not return here; a new thread's are in use */
		cuf_tls.driver_calls = 0;
		cuf_tls.label = 0;
		cuf_tls.label_frame = 0;
		cuf_tls.role = CUF_ROLE_NONE;
	}
	t->writer.sample_mean_bytes = cuf_options.sample;
	if (cuf_options.host == CUF_HOST_SAMPLED) /* in full mode it stays at 0 or below: no birth is skipped */
		cuf_tls.countdown_bytes = (int64_t)(t->sampled_from = cuf_sample_interval(&t->random, t->writer.sample_mean_bytes));
	else
		cuf_tls.countdown_bytes = cuf_options.host == CUF_HOST_OFF ? INT64_MAX : 0;
	__atomic_store_n(&cuf_tls.generation, generation, __ATOMIC_RELEASE);
	return t;
}

bool cuf_thread_must_fence = true;

enum { FENCE_ALL = 1 << 3, FENCE_PREPARE = 1 << 4 }; /* membarrier(2): PRIVATE_EXPEDITED and its registration */

void cuf_thread_fence_prepare(void)
{
	if (!cuf_sandbox_entered())
		cuf_thread_must_fence = cuf_sys(SYS_membarrier, FENCE_PREPARE, 0, 0, 0, 0, 0) != 0;
}

bool cuf_thread_fence_all(void)
{
	return cuf_thread_must_fence || !cuf_sys(SYS_membarrier, FENCE_ALL, 0, 0, 0, 0, 0);
}

struct cuf_thread_state *cuf_thread_enter_slowly(void)
{
	struct cuf_thread_state *t = cuf_tls.thread;
	if (cuf_tls.guard) {
		cuf_count_dropped(CUF_LOST_NESTED);
		return NULL;
	}
	cuf_tls.guard = 1;
	for (;;) {
		if (cuf_tls.generation != __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE) && !(t = cuf_thread_attach()))
			break;
		cuf_thread_announce(t);
		if (cuf_tls.generation == __atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE))
			return t;
		__atomic_store_n(&t->writer.slot->busy, 0, __ATOMIC_RELEASE);
	}
	cuf_tls.guard = 0;
	return NULL;
}
