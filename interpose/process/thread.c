/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread slots: found at a thread's first event, recycled when the thread is dead, never destroyed.
 */
#include "interpose/process/thread.h"

#include <sys/mman.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/platform/sampler.h"
#include "interpose/platform/sys.h"
#include "interpose/store/dropped.h"
#include "interpose/store/fault.h"
#include "interpose/store/liveness.h"
#include "interpose/store/recording.h"
#include "interpose/store/seal.h"
#include "interpose/store/ring.h"
#include "interpose/platform/laws.h"

enum {
	SLOTS_MAX = 8192,
	/* slots that a new thread checks for a dead owner before it uses a fresh one */
	QUICK_LOOK = 4,
	GET_NAME = 16     /* PR_GET_NAME */
};

/* Until the recorder starts, nobody is admitted. */
static uint64_t admit_nobody(void) { return 0; }
static cuf_thread_admit_fn *admit = admit_nobody;
static struct cuf_thread_state *states[SLOTS_MAX];
static uint32_t slots_used;   /* slots that ever had a thread */
static uint32_t search_from;  /* where the search for dead threads goes on */

/*
 * With more threads than slots, each event of a thread without one would look at every slot. So
 * after a search in vain nobody searches for a hundred times as long as it took.
 */
enum { SEARCH_SHARE = 100, SEARCH_PAUSE_MIN_NS = 10000000 };
static uint64_t no_search_before_ns;

/* Only the forking thread exists in a child, and it gets a slot of the child's recording. */
static void forget_slots(void)
{
	slots_used = search_from = 0;
	no_search_before_ns = 0;
	cuf_tls.is_shared = 0;
	cuf_tls.creator = 0; /* a stack of the parent's */
	cuf_tls.creators = 0;
}
CUF_AT_FORK_CHILD(forget_slots);

/* Set once, before any thread enters. A pointer keeps this room independent of the rooms above
 * it. */
void cuf_thread_admit_with(cuf_thread_admit_fn *function) { admit = function; }

/* ---- slots ---- */

/*
 * The main thread seldom ends first, so its slot is not looked at. A slot with our own id had a
 * thread that is dead.
 */
static bool may_recycle(uint32_t owner, uint32_t tid)
{
	if (!owner || owner == cuf_recording.header->pid)
		return false;
	return owner == tid || !cuf_thread_alive(owner);
}

/* Claims a slot whose thread is dead. -1: none among `look` candidates. */
static int recycle_slot(uint32_t tid, unsigned look)
{
	uint32_t used = __atomic_load_n(&slots_used, __ATOMIC_RELAXED);
	if (used > cuf_recording.thread_count)
		used = cuf_recording.thread_count;
	for (unsigned i = 0; i < look && i < used; i++) {
		uint32_t index = __atomic_add_fetch(&search_from, 1, __ATOMIC_RELAXED) % used;
		struct cuf_thread *slot = &cuf_recording.threads[index];
		uint32_t owner = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);
		if (!may_recycle(owner, tid))
			continue;
		if (!__atomic_compare_exchange_n(&slot->tid, &owner, tid, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		/* pairs with the dead thread's last leave: everything it wrote is visible */
		__atomic_load_n(&slot->busy, __ATOMIC_ACQUIRE);
		return (int)index;
	}
	return -1;
}

void cuf_threads_mark_ended(void)
{
	uint32_t used = __atomic_load_n(&slots_used, __ATOMIC_RELAXED);

	if (used > cuf_recording.thread_count)
		used = cuf_recording.thread_count;
	for (uint32_t i = 0; i < used; i++) {
		struct cuf_thread *slot = &cuf_recording.threads[i];
		uint32_t tid = __atomic_load_n(&slot->tid, __ATOMIC_ACQUIRE);

		slot->ended = tid && !cuf_thread_alive(tid);
	}
}

static bool searches_pause(void)
{
	uint64_t until = __atomic_load_n(&no_search_before_ns, __ATOMIC_RELAXED);

	return until && cuf_now_coarse_ns() < until;
}

static int search_all_slots(uint32_t tid, unsigned limit)
{
	uint64_t began_ns = cuf_now_ns(), pause_ns;
	int index = recycle_slot(tid, limit);

	if (index >= 0)
		return index;
	pause_ns = SEARCH_SHARE * (cuf_now_ns() - began_ns) + SEARCH_PAUSE_MIN_NS;
	__atomic_store_n(&no_search_before_ns, began_ns + pause_ns, __ATOMIC_RELAXED);
	return -1;
}

static int find_slot(uint32_t tid)
{
	unsigned limit = cuf_recording.thread_count;
	int index = recycle_slot(tid, QUICK_LOOK);
	if (index >= 0)
		return index;
	if (limit > SLOTS_MAX)
		limit = SLOTS_MAX;
	if (__atomic_load_n(&slots_used, __ATOMIC_RELAXED) < limit) {
		uint32_t fresh = __atomic_fetch_add(&slots_used, 1, __ATOMIC_RELAXED);
		if (fresh < limit) {
			__atomic_store_n(&cuf_recording.threads[fresh].tid, tid, __ATOMIC_RELEASE);
			return (int)fresh;
		}
	}
	return search_all_slots(tid, limit);
}

/* ---- the private half of a slot ---- */

enum { WALKER_AT = (sizeof(struct cuf_thread_state) + 63) & ~63ul };

static void *map(size_t bytes)
{
	long at = cuf_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return cuf_sys_failed(at) ? NULL : (void *)at;
}

/*
 * With the walker's caches. Where there are several threads, one is kept ahead: where a thread's
 * first request is refused for a limit, these are refused, too. It is for the stack of such a
 * request; other threads without caches have no stacks, and those without a state no events.
 */
static char *spare;

static char *take_spare(void) { return __atomic_exchange_n(&spare, NULL, __ATOMIC_ACQUIRE); }

static void keep_spare(size_t bytes)
{
	char *none = NULL, *more;
	if (__atomic_load_n(&spare, __ATOMIC_RELAXED) || !(more = map(bytes)))
		return;
	if (!__atomic_compare_exchange_n(&spare, &none, more, false, __ATOMIC_RELEASE,
					 __ATOMIC_RELAXED))
		cuf_sys_munmap(more, bytes);
}

static struct cuf_thread_state *make_state(bool is_first)
{
	const size_t bytes = WALKER_AT + cuf_walker_bytes();
	char *state = map(bytes);
	if (state && !is_first)
		keep_spare(bytes);
	if (!state && cuf_tls.may_take_spare)
		state = take_spare();
	if (!state)
		return map(sizeof(struct cuf_thread_state));
	cuf_walker_use(&((struct cuf_thread_state *)state)->stack.walker, state + WALKER_AT);
	return (struct cuf_thread_state *)state;
}

void cuf_thread_may_take_spare(bool may)
{
	struct cuf_thread_state *thread = cuf_tls.thread;
	char *memory;
	cuf_tls.may_take_spare = may;
	if (!may || cuf_tls.guard || !cuf_thread_is_attached() || thread->stack.walker.rules)
		return;
	cuf_tls.guard = 1;
	memory = take_spare();
	if (memory)
		cuf_walker_use(&thread->stack.walker, memory + WALKER_AT);
	cuf_tls.guard = 0;
}

/* NULL: no memory. The caller owns the slot, so nobody else writes the pointer. */
static struct cuf_thread_state *state_of(unsigned index)
{
	if (!states[index])
		states[index] = make_state(!index);
	return states[index];
}

/* The slot's generation tells its new thread from the one before, in rings and phases. */
static void begin_slot(struct cuf_thread *slot)
{
	__atomic_store_n(&slot->generation, slot->generation + 1, __ATOMIC_RELAXED);
	slot->start_ns = cuf_now_ns();
	slot->ended = 0;
	__atomic_store_n(&slot->busy, 0, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < sizeof slot->name; i++)
		slot->name[i] = 0;
	cuf_sys(SYS_prctl, GET_NAME, (long)slot->name, 0, 0, 0, 0);
}

/* ---- attaching ---- */

/* In full mode the countdown stays at 0 or below, so that no allocation is skipped. */
static int64_t first_countdown(struct cuf_thread_state *thread)
{
	switch (cuf_options.host) {
	case CUF_HOST_OFF:
		return INT64_MAX;
	case CUF_HOST_SAMPLED:
		thread->sampled_from = cuf_sample_interval(&thread->random,
							   thread->writer.sample_mean_bytes);
		return (int64_t)thread->sampled_from;
	default:
		return 0;
	}
}

/* The private half may hold what the slot's last thread left. */
static void begin_state(struct cuf_thread_state *thread, unsigned index, uint32_t tid)
{
	struct cuf_thread *slot = &cuf_recording.threads[index];
	thread->writer.slot = slot;
	thread->writer.slot_index = thread->stack.slot_index = index;
	thread->writer.tid = tid;
	thread->stack.creator = cuf_tls.creator;
	begin_slot(slot);
	cuf_ring_inherit(&thread->writer);
	thread->host_clock_countdown = 0;
	thread->host_now_ns = 0;
	thread->random = (slot->start_ns ^ (uint64_t)tid << 32) * 0x9E3779B97F4A7C15ull | 1;
	thread->framework_countdown_bytes =
		(int64_t)cuf_sample_interval(&thread->random, CUF_FRAMEWORK_SAMPLE_MEAN_BYTES);
	cuf_walker_init(&thread->stack.walker, tid == cuf_recording.header->pid);
	thread->writer.sample_mean_bytes = cuf_options.sample;
}

/*
 * A child that was forked inside a call will not return from it. A new thread's words are in use
 * already.
 */
static void forget_calls_of_parent(void)
{
	if (cuf_tls.generation == CUF_GENERATION_NEW)
		return;
	cuf_tls.driver_calls = 0;
	cuf_tls.label = 0;
	cuf_tls.label_frame = 0;
	cuf_tls.role = CUF_ROLE_NONE;
}

/*
 * An event of a thread without a slot, or of a task without words of its own. In sampled mode it
 * comes back after a sample's bytes.
 */
static void decline(enum cuf_loss loss)
{
	cuf_count_dropped(loss);
	if (cuf_options.host == CUF_HOST_SAMPLED)
		cuf_tls.countdown_bytes = (int64_t)cuf_options.sample;
}

static uint32_t my_tid(void) { return (uint32_t)cuf_sys(SYS_gettid, 0, 0, 0, 0, 0, 0); }

static struct cuf_thread_state *attach(void)
{
	uint64_t generation = admit();
	struct cuf_thread_state *thread = NULL;
	uint32_t tid;
	int index;
	if (!generation)
		return NULL;
	if (cuf_tls.thread && cuf_tls.generation == generation)
		return cuf_tls.thread; /* only waited for the hand-over */
	if (searches_pause()) {
		decline(CUF_LOST_THREADS);
		return NULL;
	}
	if (!cuf_recording_is_intact()) {
		cuf_fault(CUF_FAULT_HEADER);
		return NULL;
	}
	tid = my_tid();
	if (!cuf_gate_is_home())
		cuf_liveness_has_task();
	index = find_slot(tid);
	if (index >= 0)
		thread = state_of((unsigned)index);
	if (!thread) {
		decline(CUF_LOST_THREADS);
		return NULL;
	}
	begin_state(thread, (unsigned)index, tid);
	cuf_tls.thread = thread;
	forget_calls_of_parent();
	cuf_tls.countdown_bytes = first_countdown(thread);
	__atomic_store_n(&cuf_tls.generation, generation, __ATOMIC_RELEASE);
	return thread;
}

/*
 * Another task runs with this thread's words, at the same time. Only the one that took the slot may
 * use it, and only it writes the guard.
 */
static struct cuf_thread_state *enter_shared(uint64_t generation)
{
	struct cuf_thread_state *thread = cuf_tls.thread;
	if (!generation)
		return NULL;
	if (!thread || thread->writer.tid != my_tid()) {
		decline(CUF_LOST_TASKS);
		return NULL;
	}
	if (cuf_tls.guard) {
		cuf_count_dropped(CUF_LOST_NESTED);
		return NULL;
	}
	cuf_tls.guard = 1;
	cuf_thread_announce(thread);
	if (__atomic_load_n(cuf_gate, __ATOMIC_ACQUIRE) == generation)
		return thread;
	cuf_thread_leave(thread);
	cuf_count_dropped(CUF_LOST_SWITCH);
	return NULL;
}

struct cuf_thread_state *cuf_thread_enter_slow(void)
{
	struct cuf_thread_state *thread = cuf_tls.thread;
	if (__builtin_expect(cuf_tls.is_shared, 0)) {
		uint64_t generation = admit();
		if (cuf_tls.is_shared)
			return enter_shared(generation);
	}
	if (cuf_tls.guard) {
		cuf_count_dropped(CUF_LOST_NESTED);
		return NULL;
	}
	cuf_tls.guard = 1;
	for (;;) {
		if (!cuf_thread_is_attached() && !(thread = attach()))
			break;
		cuf_thread_announce(thread);
		if (cuf_thread_is_attached())
			return thread;
		__atomic_store_n(&thread->writer.slot->busy, 0, __ATOMIC_RELEASE);
	}
	cuf_tls.guard = 0;
	return NULL;
}
